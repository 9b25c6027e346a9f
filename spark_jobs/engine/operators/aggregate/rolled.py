"""Rolled records: one record of `cq.pending` replaces all records of some stores before an offset of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from msgspec.structs import replace

from grouping.digests.cursor import SourceOffsets
from grouping.digests.pending_matches import ID_BYTES, PendingMatches, aggregate_record
from grouping.digests.rolling import RolledParts, StoreReaders, plan_roll
from grouping.plan.group import SelectList
from spark_jobs.engine.operators.aggregate.partials import Partials, packed_states

__all__ = ["rolled_records"]

_RECORD_BYTES = 900_000
"""The largest size of a rolled record in bytes; a larger record is divided by stores."""
_LEAST_GAIN = 2
"""See `rolled_records`."""


def rolled_records(
    select: SelectList,
    records: Sequence[tuple[int, PendingMatches]],
    readers: Mapping[bytes, StoreReaders],
    covered: SourceOffsets,
    before: int,
    least_gain: int = _LEAST_GAIN,
) -> list[bytes]:
    """Return rolled records.

    A store is not rolled if `plan_roll` leaves it out, or if a rolled record of only this store would be too large. If
    the rows of the stores would hardly become fewer (`least_gain`), no store is rolled.

    Args:
        select: The SELECT list of the stores.
        records: All records of the stores before the offset, rolled records first, then in the order of the log.
        readers: The readers of each store.
        covered: The source offsets that are committed.
        before: The offset of the log before which records are replaced.
        least_gain: No store is rolled unless, on average, at least this many rows are merged into one.
    """
    assert select.aggregation is not None, "the SELECT list has aggregates"
    names = sorted(readers)
    whole = [(position, each) for position, record in records for each in record.whole]
    plan = plan_roll(whole, names, readers, covered, before)
    record = _merged(Partials(select.aggregation), plan, names, before, least_gain)
    if record is None:
        return []
    body = record.encode()
    if len(body) <= _RECORD_BYTES:
        return [body]
    if len(names) == 1:
        return []
    halves = (names[: len(names) // 2], names[len(names) // 2 :])
    return [
        body
        for half in halves
        for body in rolled_records(select, records, {name: readers[name] for name in half}, covered, before, least_gain)
    ]


def _merged(
    partials: Partials, plan: RolledParts, names: Sequence[bytes], before: int, least_gain: int
) -> PendingMatches | None:
    """Return a record of all merged parts; None if there are no parts, or if merging gains less than `least_gain`."""
    own = [
        pl.read_ipc_stream(piece.record.values[0])[piece.rows].with_columns(pl.Series("part", piece.parts))
        for piece in plan.pieces
    ]
    if not own:
        return None
    parts = pl.concat(own, how="diagonal_relaxed")
    merged = partials.merged(parts, ["part"])
    if least_gain * merged.height > parts.height:
        return None
    ids = np.frombuffer(b"".join(names), np.uint8).reshape(-1, ID_BYTES)
    part = merged["part"].to_numpy()
    stream_id, found = plan.pieces[0].record.stream_id, []
    for number, version in enumerate(plan.known_versions):
        rows = np.flatnonzero(plan.versions[part] == number)
        if not rows.size:
            continue
        of = part[rows]
        aggregates = plan.aggregates.at(of)
        # From each source partition, a reader of a store takes only items (partial aggregates) whose pair of offset and
        # ordinal is greater than that of the item before. The reader drops any other item as a repeat. So the items
        # are sorted by store, partition, offset and ordinal.
        order = np.lexsort((aggregates.ordinals, aggregates.last, aggregates.partitions, plan.stores[of]))
        aggregates = aggregates.at(order)._replace(rows=np.arange(rows.size, dtype=np.int32))
        states = packed_states(merged[rows[order]].drop("part"))
        record = aggregate_record(stream_id, version, ids[plan.stores[of[order]]], aggregates, states)
        found.append(replace(record, before=before))
    return replace(found[-1], earlier=tuple(found[:-1]))
