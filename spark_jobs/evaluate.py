"""Matching: which entries of the constant tables does each event of a batch meet?

For each table: filters on events, look-up in the index, and on candidate pairs what is left of the predicate.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from polars.exceptions import PanicException, PolarsError

from grouping.errors import InternalError
from spark_jobs.constant_cache import ConstantTable, Snapshot
from spark_jobs.constant_part import ConstantPart
from spark_jobs.event_column import EventColumns, EventSource
from spark_jobs.index import Ints, Pairs
from spark_jobs.load import Load, Loads
from spark_jobs.matches import Matches
from spark_jobs.residual import holds
from spark_jobs.union_lookup import AnyCandidates

__all__ = ["NO_NUMBER", "match", "matches"]

log = logging.getLogger(__name__)

_FAULTS = (InternalError, PolarsError, PanicException)

NO_NUMBER = -1
"""The number of a virtual match: it stands for all destinations of its group, and is counted for none."""

_PAIRS = 4_000_000
"""Pairs held at once: some 300 MB with their columns."""
_RESIDUAL_PAIRS = 500_000
"""Pairs for which constants are gathered and expressions evaluated at once."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The candidates of one part of a table, for the whole batch."""

    group: int
    table: ConstantTable
    part: ConstantPart
    candidates: AnyCandidates
    load: Load


@dataclass(frozen=True, slots=True)
class _Met:
    """Pairs that matched, and their columns."""

    event: Ints
    destination: pa.FixedSizeBinaryArray
    variant: NDArray[np.int32]
    partition: NDArray[np.int32]
    number: NDArray[np.int32]
    group: int


def match(snapshot: Snapshot, source: EventSource) -> Matches:
    """Return all matches of a batch of events at once."""
    (found,) = matches(snapshot, source, limit=np.iinfo(np.int64).max)
    return found


def matches(
    snapshot: Snapshot, source: EventSource, limit: int = _PAIRS, loads: Loads | None = None
) -> Iterator[Matches]:
    """Yield the matches of a batch, in slices of its events, so that memory is bounded however many there are.

    Args:
        snapshot: The tables.
        source: The events.
        limit: Candidate pairs in one slice, unless one event alone has more.
        loads: Where to count what each table costs.
    """
    events = EventColumns(source)
    loads = loads or Loads()
    groups: dict[str, int] = {}
    lookups = []
    for table in snapshot.tables:
        load = loads.of(table.shape)
        load.events += source.count
        load.rows = sum(len(part.rows) for part in table.parts)
        began = time.perf_counter()
        try:
            selected = _selected(table, events)
        except _FAULTS:
            _report(table)
            continue
        if selected.size:
            group = groups.setdefault(table.shape.plan.group_id, len(groups))
            for part in table.parts:
                lookups.append(_Lookup(group, table, part, part.lookup.find(events, selected), load))
        load.seconds += time.perf_counter() - began
    names = tuple(groups)
    for first, last in _slices(lookups, source.count, limit):
        met = [found for lookup in lookups for found in _guarded(lookup, events, first, last)]
        yield _assembled(snapshot, names, _once_per_group(met))


def _guarded(lookup: _Lookup, events: EventColumns, first: int, last: int) -> list[_Met]:
    """Keep a group that cannot be evaluated, which is a fault of ours, from stopping all others."""
    try:
        began = time.perf_counter()
        met = list(_meet(lookup, events, first, last))
        lookup.load.seconds += time.perf_counter() - began
        lookup.load.matches += sum(found.event.size for found in met)
        return met
    except _FAULTS:
        _report(lookup.table)
        return []


def _report(table: ConstantTable) -> None:
    plan = table.shape.plan
    log.exception("group not evaluated", extra={"group": plan.group_id, "signature": plan.signature})


def _selected(table: ConstantTable, events: EventColumns) -> Ints:
    """Return the events that still count for the table and that the conjuncts without constants let through."""
    everything = np.arange(events.source.count)
    if table.shape.until:
        # A partition that was added since has no event that counts.
        until = np.array([*table.shape.until, 0])
        ends = until[np.minimum(events.source.partitions, until.size - 1)]
        everything = np.flatnonzero(events.source.offsets < ends)
    if not table.shape.filters:
        return everything
    return everything[holds(table.shape.filters, events, everything)]


def _slices(lookups: list[_Lookup], count: int, limit: int) -> Iterator[tuple[int, int]]:
    counts = np.zeros(count, np.int64)
    for lookup in lookups:
        if not _by_existence(lookup.table):
            lookup.load.candidates += lookup.candidates.add_counts(counts)
    total = np.cumsum(counts)
    if not count or total[-1] <= limit:
        yield 0, count
        return
    first = 0
    while first < count:
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + limit, side="right")))
        yield first, last
        first = last


def _by_existence(table: ConstantTable) -> bool:
    """Tell whether the index alone says that an event is wanted."""
    return table.shape.virtual and not table.shape.residual


def _meet(lookup: _Lookup, events: EventColumns, first: int, last: int) -> Iterator[_Met]:
    part = lookup.part
    candidates = lookup.candidates.between(first, last)
    if _by_existence(lookup.table):
        # START and EXPIRE of a virtual destination are its reader's to keep (contract §6).
        yield _virtual(lookup.group, candidates.any(part.alive, part.version), part)
        return
    limit = _RESIDUAL_PAIRS if lookup.table.shape.residual else _PAIRS
    for pairs in candidates.pairs(limit):
        found, rows = _checked(lookup, events, pairs)
        if not found.size:
            continue
        if lookup.table.shape.virtual:
            yield _virtual(lookup.group, np.unique(found), part)
        else:
            entries = part.rows
            yield _Met(
                found,
                entries.ids(rows),
                entries.variant[rows],
                entries.partition[rows],
                entries.number[rows],
                lookup.group,
            )


def _checked(lookup: _Lookup, events: EventColumns, pairs: Pairs) -> Pairs:
    """Return the pairs whose entry is alive, whose time is in the entry's window and whose residual holds."""
    found, rows = pairs
    part = lookup.part
    keep: NDArray[np.bool_] | None = None if part.alive is None else part.alive[rows]
    if not lookup.table.shape.virtual and (part.rows.starts is not None or part.rows.expires is not None):
        times = events.source.time_ms[found]
        keep = np.ones(found.size, np.bool_) if keep is None else keep
        if part.rows.starts is not None:
            keep &= times >= part.rows.starts[rows]
        if part.rows.expires is not None:
            keep &= times < part.rows.expires[rows]
    if keep is not None:
        found, rows = found[keep], rows[keep]
    shape = lookup.table.shape
    if shape.residual and found.size:
        true = holds(shape.residual, events, found, shape.types, part.rows.constants, rows)
        found, rows = found[true], rows[true]
    return found, rows


def _virtual(group: int, found: Ints, part: ConstantPart) -> _Met:
    nothing = np.zeros(found.size, np.int32)
    blank = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(12), found.size, [None, pa.py_buffer(bytes(12 * found.size))]
    )
    variant = np.full(found.size, part.rows.variant[0], np.int32)
    return _Met(found, blank, variant, nothing, np.full(found.size, NO_NUMBER, np.int32), group)


def _once_per_group(met: list[_Met]) -> list[_Met]:
    """Keep the first virtual match of an event and group: several parts and tables of a group may have met it."""
    seen: dict[int, Ints] = {}
    kept = []
    for found in met:
        if not found.number.size or found.number[0] != NO_NUMBER:
            kept.append(found)
            continue
        before = seen.get(found.group)
        fresh = np.arange(found.event.size) if before is None else np.flatnonzero(~np.isin(found.event, before))
        seen[found.group] = found.event if before is None else np.union1d(before, found.event)
        kept.append(
            _Met(
                found.event[fresh],
                found.destination.slice(0, fresh.size),  # all alike: blank
                found.variant[fresh],
                found.partition[fresh],
                found.number[fresh],
                found.group,
            )
        )
    return kept


def _assembled(snapshot: Snapshot, groups: tuple[str, ...], met: list[_Met]) -> Matches:
    variant = _joined([found.variant for found in met])
    return Matches(
        event=_joined([found.event.astype(np.int32) for found in met]),
        destination=pa.concat_arrays([pa.array([], pa.binary(12)), *(found.destination for found in met)]),
        mode=snapshot.mode_of[variant],
        partition=_joined([found.partition for found in met]),
        number=_joined([found.number for found in met]),
        select=snapshot.select_of[variant],
        group=np.repeat(
            np.array([found.group for found in met], np.int32), np.array([found.event.size for found in met], np.intp)
        ),
        selects=snapshot.selects,
        groups=groups,
    )


def _joined(arrays: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.empty(0, np.int32), *arrays])
