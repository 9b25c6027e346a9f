"""Groups that are results: parts of them put together, HAVING decided for many destinations at once, rows written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.digests.group_code import DigestGroups, GroupDestination, TooManyGroups, TooManyTogether
from grouping.digests.group_gather import GroupPart
from grouping.model.expression import Expression
from grouping.model.group import ConstantRow, GroupPlan, SelectList
from grouping.model.sql_type import SqlType
from grouping.store.constant_table import constants_array
from spark_jobs.batch.event_column import EventColumns
from spark_jobs.batch.events import arrow_type
from spark_jobs.groups.partials import Partials
from spark_jobs.match.residual import evaluate_expression, holds
from spark_jobs.results.encode import encode

__all__ = ["MOST_GROUPS", "GroupMerge", "MergedGroups", "kept_groups"]

MOST_GROUPS = 1_000_000
"""Groups of one digest: they are put together in memory, and everybody waits meanwhile, two seconds for so many."""
_MOST_BYTES = 256 << 20
"""Bytes of what is kept of them, which may be sets of distinct values."""
_TOGETHER = 2
"""So many times as much may be of several digests at once."""


class MergedGroups(NamedTuple):
    """The groups of one question, as rows of a table that has those of others too."""

    table: pl.DataFrame
    begin: int
    end: int


class GroupMerge:
    """Puts the parts of groups together as they are gathered, so that none of their records need stay in memory."""

    def __init__(
        self, select: SelectList, questions: int, most_groups: int = MOST_GROUPS, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._partials = _partials(select)
        self._count = questions
        self._most = (most_groups, most_bytes)
        self._next = self._most
        """The groups, and their bytes, at which the questions are looked at next."""
        self._tables: list[pl.DataFrame] = []
        self.late = np.zeros(questions, np.int64)
        """By question: matches of times before its digest."""

    def take(self, parts: Sequence[GroupPart]) -> None:
        """Take in what counts of some records, in the order of the log.

        Raises:
            TooManyGroups: Some questions have too many, or too large ones.
            TooManyTogether: All of them have.
        """
        own = []
        for part in parts:
            states = pl.read_ipc_stream(part.record.values[0])[part.rows]
            np.add.at(self.late, part.question[part.late], states["n"].to_numpy()[part.late])
            own.append(states.with_columns(pl.Series("question", part.question)))
        merged = self._partials.merged(pl.concat(own, how="diagonal_relaxed"), ["question"])
        self._tables.append(merged)
        groups, size = (sum(each) for each in zip(*map(_extent, self._tables), strict=True))
        if len(self._tables) > _MOST_TABLES or groups > self._next[0] or size > self._next[1]:
            self._tables = [self._whole()]
            self._check(self._tables[0])

    def _check(self, whole: pl.DataFrame) -> None:
        """Raise TooManyGroups, or TooManyTogether, where there are too many or too large ones."""
        most_groups, most_bytes = self._most
        groups, size = _extent(whole)
        large: set[int] = set()
        if groups > most_groups:
            large.update(np.flatnonzero(np.bincount(whole["question"].to_numpy()) > most_groups).tolist())
        if size > most_bytes:
            large.update(
                int(number) for (number,), own in whole.group_by("question") if own.estimated_size() > most_bytes
            )
        if large:
            raise TooManyGroups(large)
        if self._count > 1 and (groups > _TOGETHER * most_groups or size > _TOGETHER * most_bytes):
            raise TooManyTogether
        self._next = max(most_groups, 2 * groups), max(most_bytes, 2 * size)

    def _whole(self) -> pl.DataFrame:
        whole = pl.concat(self._tables, how="diagonal_relaxed")
        return whole if len(self._tables) == 1 else self._partials.merged(whole, ["question"])

    def groups(self) -> list[MergedGroups]:
        """Return the groups of each question.

        Raises:
            TooManyGroups: Some have too many, or too large ones.
            TooManyTogether: All of them have.
        """
        if not self._tables:
            return [MergedGroups(_NO_GROUPS, 0, 0)] * self._count
        whole = self._whole()
        self._check(whole)
        table = whole.sort("question", *self._partials.keys, nulls_last=True)
        bounds = np.searchsorted(table["question"].to_numpy(), np.arange(self._count + 1)).tolist()
        return [MergedGroups(table, *bounds[number : number + 2]) for number in range(self._count)]


def kept_groups(plan: GroupPlan, select: SelectList, destinations: Sequence[GroupDestination]) -> list[DigestGroups]:
    """Return what the destinations of one query get, by destination.

    Args:
        plan: Their group's.
        select: Their SELECT list.
        destinations: Whose, with the constants and the groups of each.
    """
    grouping = select.grouping
    assert grouping is not None, "the query is over groups"
    partials = _partials(select)
    table, spans = _joined([each.groups for each in destinations])
    columns, counts = partials.no_groups(), np.empty(0, np.int64)
    if table.height:
        columns, counts = partials.values(table), table["n"].to_numpy()
    if not grouping.keys and any(each.with_none for each in destinations):
        empty = partials.empty()
        columns = {name: pl.concat([values, empty[name]]) for name, values in columns.items()}
        none = (counts.size, counts.size + 1)
        counts = np.append(counts, 0)
        spans = [
            none if each.with_none and span[0] == span[1] else span
            for each, span in zip(destinations, spans, strict=True)
        ]
    groups = _Groups(columns, select, counts.size)
    found = _kept(plan, groups, [each.row for each in destinations], spans)
    bodies = _bodies(groups, select, found)
    total = np.append(0, np.cumsum(counts))
    return [
        DigestGroups([bodies[row] for row in rows.tolist()], int(total[end] - total[begin]))
        for rows, (begin, end) in zip(found, spans, strict=True)
    ]


def _joined(groups: Sequence[MergedGroups]) -> tuple[pl.DataFrame, list[tuple[int, int]]]:
    """Return the groups of several questions in one table, each once, and where those of each are."""
    tables: dict[int, tuple[pl.DataFrame, dict[tuple[int, int], int]]] = {}
    for each in groups:
        tables.setdefault(id(each.table), (each.table, {}))[1][each.begin, each.end] = 0
    found, base = [], 0
    for table, spans in tables.values():
        found.append(table[np.concatenate([np.arange(*span) for span in spans])])
        for begin, end in spans:
            spans[begin, end] = base
            base += end - begin
    own = ((tables[id(each.table)][1][each.begin, each.end], each.end - each.begin) for each in groups)
    joined = pl.concat(found, how="diagonal_relaxed")
    return joined, [(begin, begin + count) for begin, count in own]


def _extent(table: pl.DataFrame) -> tuple[int, int]:
    """Return how many groups a table has, and their bytes."""
    return table.height, int(table.estimated_size())


_MOST_TABLES = 16
"""Of merged parts, before they are merged themselves."""
_NO_GROUPS = pl.DataFrame({"n": pl.Series([], dtype=pl.Int64)})


@lru_cache(maxsize=256)
def _partials(select: SelectList) -> Partials:
    assert select.grouping is not None, "it is over groups"
    return Partials(select.grouping)


def _kept(
    plan: GroupPlan, groups: _Groups, rows: Sequence[ConstantRow], spans: Sequence[tuple[int, int]]
) -> list[NDArray[np.int64]]:
    """Return by destination the groups that HAVING leaves: destinations whose constants are of one type at once."""
    kept = plan.kept
    own = [np.arange(*span) for span in spans]
    if kept is None or not kept.having:
        return own
    by_types: dict[tuple[SqlType, ...], list[int]] = {}
    for number, row in enumerate(rows):
        by_types.setdefault(row.types, []).append(number)
    columns = EventColumns(groups)
    for types, numbers in by_types.items():
        values = [rows[number].values for number in numbers]
        constants = [
            constants_array(sql_type, [value[slot] for value in values]) if slot >= kept.slots else pa.nulls(0)
            for slot, sql_type in enumerate(types)
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
