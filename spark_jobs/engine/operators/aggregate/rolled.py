"""Rolled records: a record of `cq.pending` in place of all records of some stores of aggregates before an offset."""

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
_LEAST_GAIN = 2


def rolled_records(
    select: SelectList,
    records: Sequence[tuple[int, PendingMatches]],
    readers: Mapping[bytes, StoreReaders],
    covered: SourceOffsets,
    before: int,
    least_gain: int = _LEAST_GAIN,
) -> list[bytes]:
    """Return rolled records; stores without enough gain, or with fixed records, are left unchanged.

    Args:
        select: The SELECT list of the stores.
        records: All that the stores have before the offset, rolled records first, then in the order of the log.
        readers: The readers of each store.
        covered: The source offsets that are committed.
        before: The offset.
        least_gain: The least average number of rows merged into one, for rolling to pay.
    """
    assert select.aggregation is not None, "it is over aggregates"
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
    """Return the record of all parts; None where there is nothing, or too little becomes one."""
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
        # The last item of a store and source partition names its repeats.
        order = np.lexsort((aggregates.ordinals, aggregates.last, aggregates.partitions, plan.stores[of]))
        aggregates = aggregates.at(order)._replace(rows=np.arange(rows.size, dtype=np.int32))
        states = packed_states(merged[rows[order]].drop("part"))
        record = aggregate_record(stream_id, version, ids[plan.stores[of[order]]], aggregates, states)
        found.append(replace(record, before=before))
    return replace(found[-1], earlier=tuple(found[:-1]))
