"""Groups that are results: parts of them put together, HAVING decided for many destinations at once, rows written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.digests.group_gather import GroupAnswer
from grouping.digests.pending_matches import PendingMatches
from grouping.model.expression import Expression
from grouping.model.group import ConstantRow, GroupPlan, SelectList
from grouping.model.sql_type import SqlType
from grouping.store.constant_table import constants_array
from spark_jobs.batch.event_column import EventColumns
from spark_jobs.batch.events import arrow_type
from spark_jobs.batch.faults import FAULTS
from spark_jobs.groups.partials import Partials
from spark_jobs.index import Ints
from spark_jobs.match.residual import evaluate_expression, holds
from spark_jobs.results.encode import encode

__all__ = ["FAULTS", "DigestGroups", "GroupDestination", "kept_groups"]


class GroupDestination(NamedTuple):
    """One destination of a query."""

    answer: int
    """Which of the answers is its own: destinations that differ in HAVING's constants alone share one."""
    row: ConstantRow
    from_ms: int
    """Where its digest begins."""
    with_none: bool
    """Whether without GROUP BY and without matches there is a row."""


class DigestGroups(NamedTuple):
    """What a destination's digest is made of."""

    rows: list[bytes]
    """The groups that HAVING leaves, as JSON objects in the order of their keys."""
    matches: int
    """All that were counted, whatever HAVING leaves."""
    late: int
    """Those of times before the digest begins."""


def kept_groups(
    plan: GroupPlan, select: SelectList, answers: Sequence[GroupAnswer], destinations: Sequence[GroupDestination]
) -> list[DigestGroups]:
    """Return what the destinations of one query get, by destination.

    Args:
        plan: Their group's.
        select: Their SELECT list.
        answers: Partial groups that were gathered.
        destinations: Whose, with the constants of each.
    """
    grouping = select.grouping
    assert grouping is not None and plan.kept is not None, "the query is over groups"
    partials = _partials(select)
    table = _parts(answers)
    late = _late(table, destinations)
    none = len(answers)
    if table.height:
        merged = partials.merged(table, ["answer"]).sort("answer", *partials.keys, nulls_last=True)
        columns, counts, answer = partials.values(merged), merged["n"].to_numpy(), merged["answer"].to_numpy()
    else:
        columns, counts, answer = partials.no_groups(), np.empty(0, np.int64), np.empty(0, np.int64)
    if not grouping.keys and any(each.with_none for each in destinations):
        empty = partials.empty()
        columns = {name: pl.concat([values, empty[name]]) for name, values in columns.items()}
        counts, answer = np.append(counts, 0), np.append(answer, none)
    groups = _Groups(columns, select, counts.size)
    bounds = np.searchsorted(answer, np.arange(none + 2))
    matches = np.add.reduceat(np.append(counts, 0), np.minimum(bounds[:-1], counts.size)) * (np.diff(bounds) > 0)
    own = [_own(each, matches, none) for each in destinations]
    found = _kept(plan, groups, [each.row for each in destinations], [(bounds[at], bounds[at + 1]) for at in own])
    bodies = _bodies(groups, select, found)
    return [
        DigestGroups([bodies[row] for row in rows.tolist()], int(matches[at]), behind)
        for rows, at, behind in zip(found, own, late, strict=True)
    ]


def _own(destination: GroupDestination, matches: NDArray[np.int64], none: int) -> int:
    return none if destination.with_none and not matches[destination.answer] else destination.answer


_NO_PARTS = pl.DataFrame({"n": pl.Series([], dtype=pl.Int64)})


@lru_cache(maxsize=256)
def _partials(select: SelectList) -> Partials:
    assert select.grouping is not None, "it is over groups"
    return Partials(select.grouping)


def _parts(answers: Sequence[GroupAnswer]) -> pl.DataFrame:
    """Return all partial groups with the numbers of their answers; what several have of a record is taken at once."""
    records: dict[int, tuple[int, PendingMatches, list[tuple[int, Ints]]]] = {}
    for number, answer in enumerate(answers):
        for position, record, rows in answer.parts:
            records.setdefault(id(record), (position, record, []))[2].append((number, rows))
    tables = []
    for _, record, wanted in sorted(records.values(), key=lambda each: each[0]):
        rows = np.concatenate([rows for _, rows in wanted])
        own = np.repeat([number for number, _ in wanted], [rows.size for _, rows in wanted])
        times = record.groups.times[rows]  # items and rows of states stand in one order
        tables.append(_table(record.values[0])[rows].with_columns(pl.Series("answer", own), pl.Series("time", times)))
    return pl.concat(tables, how="diagonal_relaxed") if tables else _NO_PARTS


@lru_cache(maxsize=256)
def _table(states: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(states)


def _late(table: pl.DataFrame, destinations: Sequence[GroupDestination]) -> list[int]:
    """Return by destination how many matches are of times before its digest begins; mostly none is."""
    late = [0] * len(destinations)
    earliest = int(table["time"].min()) if table.height else None  # type: ignore[arg-type]
    for number, each in enumerate(destinations):
        if earliest is not None and earliest < each.from_ms:
            own = (table["answer"] == each.answer) & (table["time"] < each.from_ms)
            late[number] = int(table["n"].filter(own).sum())
    return late


def _kept(
    plan: GroupPlan, groups: _Groups, rows: Sequence[ConstantRow], spans: Sequence[tuple[int, int]]
) -> list[NDArray[np.int64]]:
    """Return by destination the groups that HAVING leaves: destinations whose constants are of one type at once."""
    kept = plan.kept
    assert kept is not None
    own = [np.arange(*span) for span in spans]
    if not kept.having:
        return own
    by_types: dict[tuple[SqlType, ...], list[int]] = {}
    for number, row in enumerate(rows):
        by_types.setdefault(row.types, []).append(number)
    columns = EventColumns(groups)
    for types, numbers in by_types.items():
        values = [rows[number].values for number in numbers]
        constants = [
            constants_array(kind, [value[slot] for value in values]) if slot >= kept.slots else pa.nulls(0)
            for slot, kind in enumerate(types)
        ]
        sizes = [own[number].size for number in numbers]
        positions = np.concatenate([own[number] for number in numbers])
        true = holds(kept.having, columns, positions, types, constants, np.repeat(np.arange(len(numbers)), sizes))
        ends = np.cumsum(sizes)
        for number, begin, end in zip(numbers, (ends - sizes).tolist(), ends.tolist(), strict=True):
            own[number] = own[number][true[begin:end]]
    return own


def _bodies(groups: _Groups, select: SelectList, found: Sequence[NDArray[np.int64]]) -> dict[int, bytes]:
    """Return the JSON objects of the groups that somebody gets, each made once."""
    wanted = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
    if not wanted.size:
        return {}
    encoded = encode(groups, select, wanted.astype(np.int32), partial(_evaluated))  # type: ignore[arg-type]
    return dict(zip(wanted.tolist(), encoded.values.to_pylist(), strict=True))


def _evaluated(expression: Expression, groups: Any, rows: NDArray[np.int32]) -> pa.Array:
    return evaluate_expression(expression, groups, rows)


class _Groups:
    """Groups as rows that predicates and SELECT lists are evaluated on, like the events of a batch."""

    def __init__(self, columns: dict[str, pl.Series], select: SelectList, count: int) -> None:
        grouping = select.grouping
        assert grouping is not None
        self.count = count
        self.partitions = np.zeros(count, np.int32)
        self.offsets = np.zeros(count, np.int64)
        self.time_ms = np.zeros(count, np.int64)
        self._columns = columns
        named = [(key.name, key.expression) for key in grouping.keys]
        self._types: dict[str, SqlType] = {name: expression.type for name, expression in named}  # type: ignore[union-attr]
        self._types.update({aggregate.name: aggregate.type for aggregate in grouping.aggregates})
        self._arrays: dict[str, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        """Return a column of the groups."""
        found = self._arrays.get(name)
        if found is None:
            found = self._arrays[name] = self._columns[name].to_arrow().cast(arrow_type(self._types[name]))
        return found

    def encoded(self, name: str) -> pa.Array:
        """Return a column, of which no repeats are known."""
        return self.column(name)

    def declares(self, name: str) -> bool:
        """No source declares a column of groups."""
        return False
