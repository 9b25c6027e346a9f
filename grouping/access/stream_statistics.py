"""Statistics of a stream from its workers (samples of columns, cost of each group), and estimates from the statistics.

EXPLAIN shows the estimates; admission and the choice of an index use them. The estimates are rough, and no result
depends on them: values are rounded to doubles, strings are truncated, and conjuncts are assumed to be independent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from heapq import merge
from itertools import takewhile
from math import inf, prod

import msgspec

from grouping.access.access_path import AccessPath
from grouping.model.expression import Call, Column, Expression, Slot
from grouping.model.group import ConstantRow
from grouping.model.ids import GroupId
from grouping.values.like_pattern import like_prefix

__all__ = ["ColumnSample", "GroupLoad", "PartitionStatistics", "Rounded", "StreamStatistics", "rounded"]

_UNKNOWN = 0.1
"""The share of events assumed to satisfy a conjunct without an estimate, as in System R."""
_ENOUGH = 100
"""The least number of sampled events for an estimate."""
_STALE_MS = 60_000
"""Statistics of a partition are ignored if they are older than the newest statistics by this number of milliseconds."""
_TEXT = 64

Rounded = float | str
"""The rounded form of a value in samples."""


def rounded(value: object) -> Rounded | None:
    """Return the rounded form of a column's value or a constant; None for NULL."""
    if isinstance(value, str):
        return value[:_TEXT]
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    if value != value:  # noqa: PLR0124  NaN, which Spark puts above every number
        return inf
    return float(value) if isinstance(value, bool | int | float | Decimal) else None


class ColumnSample(msgspec.Struct, frozen=True, array_like=True):
    """A column's values in the sampled events."""

    nulls: int
    values: list[Rounded]
    """The sampled values without NULLs, sorted."""

    @property
    def size(self) -> int:
        """The number of sampled events."""
        return self.nulls + len(self.values)

    def below(self, constant: Rounded, *, equal: bool) -> int:
        """Return the number of values that are less than a constant. With `equal`, values equal to it count too."""
        found = bisect_right if equal else bisect_left
        return found(self.values, constant)


class GroupLoad(msgspec.Struct, frozen=True, array_like=True):
    """The recent cost of a group.

    The numbers after `rows` are sums over recent events. Older events weigh less, so the sums are no whole numbers.
    """

    path: AccessPath
    """The index in use."""
    rows: int
    """The number of entries in the group's constant table."""
    events: float
    """The sum of the events that were evaluated for the group."""
    candidates: float
    """The sum of the candidates of the index."""
    matches: float
    """The sum of the matches, counted as records: one for each destination of a match.

    Virtual destinations share the records of their group, so they add at most one record for each event.
    """
    micros: float
    """The sum of the time in microseconds."""

    def per_event(self, total: float) -> float:
        """Return a total divided by the number of events."""
        return total / self.events if self.events else 0.0


class PartitionStatistics(msgspec.Struct, frozen=True, array_like=True):
    """The recent observations of the tasks of one source partition."""

    at_ms: int
    """When the statistics were written, epoch milliseconds."""
    epoch: int
    version: int
    """The version of the constant tables."""
    columns: dict[str, ColumnSample]
    groups: dict[str, GroupLoad]
    table_bytes: int = 0
    """Bytes of the stream's constant tables in the worker's memory."""


class StreamStatistics:
    """The statistics of all partitions together."""

    def __init__(self, parts: Iterable[PartitionStatistics] = ()) -> None:
        """Take the statistics of the partitions' tasks. Statistics that are much older than the newest are ignored."""
        found = list(parts)
        newest = max((part.at_ms for part in found), default=0)
        self._parts = [part for part in found if part.at_ms > newest - _STALE_MS]
        self._columns: dict[str, ColumnSample | None] = {}
        self._groups: dict[str, GroupLoad | None] = {}
        self.version = min(((part.epoch, part.version) for part in self._parts), default=(0, 0))
        """The lowest epoch and version of the constant tables among the statistics."""
        self.table_bytes = max((part.table_bytes for part in self._parts), default=None)
        """Bytes of the constant tables in the worker with the largest tables; None without a worker's report."""

    def column(self, name: str) -> ColumnSample | None:
        """Return the sample of a column; None if too few events were sampled."""
        if name not in self._columns:
            samples = [part.columns[name] for part in self._parts if name in part.columns]
            values = list(merge(*(sample.values for sample in samples)))
            whole = ColumnSample(sum(sample.nulls for sample in samples), values)
            self._columns[name] = whole if whole.size >= _ENOUGH else None
        return self._columns[name]

    def group(self, group_id: GroupId) -> GroupLoad | None:
        """Return the cost of a group; None if no event was evaluated for the group recently."""
        if group_id not in self._groups:
            loads = [part.groups[group_id] for part in self._parts if group_id in part.groups]
            last = max(loads, key=lambda load: load.events, default=None)
            self._groups[group_id] = last and GroupLoad(
                last.path,
                max(load.rows for load in loads),
                sum(load.events for load in loads),
                sum(load.candidates for load in loads),
                sum(load.matches for load in loads),
                sum(load.micros for load in loads),
            )
        return self._groups[group_id]

    def matches(self, conjuncts: Sequence[Expression], row: ConstantRow) -> float | None:
        """Return the expected share of events that match a query; None if no conjunct has an estimate."""
        if not conjuncts:
            return 1.0
        if not self._parts:
            return None
        bounds = self._bounds(conjuncts, row)
        parts = [self._part(each, row) for each in conjuncts if _bounded(each) not in bounds]
        parts += bounds.values()
        known = [part for part in parts if part is not None]
        # If no conjunct has an estimate, the query has none. Otherwise `_UNKNOWN` stands for each conjunct without an
        # estimate.
        return prod(known) * _UNKNOWN ** (len(parts) - len(known)) if known else None

    def candidates(self, path: AccessPath, conjuncts: Sequence[Expression], row: ConstantRow) -> float | None:
        """Return the expected share of events for which an index finds a query's row as a candidate."""
        return self.matches([conjuncts[position] for position in path.keys], row)

    def _bounds(self, conjuncts: Sequence[Expression], row: ConstantRow) -> dict[str, float]:
        """Return, for each column with lower and upper bounds, the share of events between these bounds."""
        sides: dict[str, tuple[list[float], list[float]]] = {}
        for conjunct in conjuncts:
            part, name = self._part(conjunct, row), _bounded(conjunct)
            if name and part is not None and isinstance(conjunct, Call):
                sides.setdefault(name, ([], []))[conjunct.op.startswith("<")].append(part)
        return {
            name: max(0.0, min(above) + min(below) - (self._part(_present(name), row) or 0.0))
            for name, (above, below) in sides.items()
            if above and below
        }

    def _part(self, conjunct: Expression, row: ConstantRow) -> float | None:
        match conjunct:
            case Call("not", (inner,)):
                part = self._part(inner, row)
                return None if part is None else 1.0 - part
            case Call("and", parts):
                return self.matches(parts, row)
            case Call("or", parts):
                found = [self._part(part, row) for part in parts]
                known = [part for part in found if part is not None]
                return min(1.0, sum(known)) if len(known) == len(found) else None
            case Call("is_null", (Column(name),)):
                sample = self.column(name)
                return None if sample is None else sample.nulls / sample.size
            case Call(op, (Column(name), Slot(index))):
                sample = self.column(name)
                return None if sample is None else _compared(op, sample, row.values[index])
        return None


def _bounded(conjunct: Expression) -> str:
    """Return the column of a bound such as ``column < :c``; "" for any other expression."""
    match conjunct:
        case Call("<" | "<=" | ">" | ">=", (Column(name), Slot())):
            return name
    return ""


def _present(name: str) -> Expression:
    return Call("not", (Call("is_null", (Column(name, ""),), "BOOLEAN"),), "BOOLEAN")


def _compared(op: str, sample: ColumnSample, constant: object) -> float | None:
    """Return the share of sampled events for which a comparison is TRUE."""
    if op == "in" and isinstance(constant, tuple):
        return min(1.0, sum(_compared("=", sample, member) or 0.0 for member in constant))
    value = rounded(constant)
    if value is None:
        return 0.0
    if op in ("like", "startswith"):
        return _beginning(sample, (value, True) if op == "startswith" else like_prefix(str(value)))
    if sample.values and isinstance(value, str) != isinstance(sample.values[0], str):
        return None
    less, up_to, count = sample.below(value, equal=False), sample.below(value, equal=True), len(sample.values)
    counted = {
        "=": up_to - less,
        "<>": count - up_to + less,
        "<": less,
        "<=": up_to,
        ">": count - up_to,
        ">=": count - less,
    }
    return counted[op] / sample.size if op in counted else None


def _beginning(sample: ColumnSample, prefix: tuple[Rounded, bool] | None) -> float | None:
    """Return the share of sampled events whose text has a prefix.

    The share is 0 if `prefix` is None, since the pattern then matches no text. The result is None, which means no
    estimate, for a pattern that checks more than the prefix.
    """
    if prefix is None:
        return 0.0
    text, is_all = prefix
    if not is_all:
        return None
    first = sample.below(text, equal=False)
    return (
        sum(1 for _ in takewhile(lambda value: str(value).startswith(str(text)), sample.values[first:])) / sample.size
    )
