"""The index over the constant rows of a group for comparisons, chosen by an access path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.access.access_path import AccessPath
from grouping.model.errors import InternalError
from grouping.model.expression import Call, Expression, LookupKey, Reference, Slot, lookup_key
from grouping.model.sql_type import SqlType
from spark_jobs.engine.index import (
    CompositeIndex,
    ContainingIntervals,
    EqualityIndex,
    IntervalIndex,
    Ints,
    OrderedIndex,
    Pairs,
    Ranges,
)
from spark_jobs.engine.index.key_codes import JointCodes, KeyCodes
from spark_jobs.engine.index.keys import key_space
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import EventColumn, EventColumns

__all__ = ["AliveRows", "Candidates", "Lookup", "comparison"]

_RARE = 4
"""If at most 1 / `_RARE` of the distinct values satisfy any row, only these values are looked up."""

RowNumbers = NDArray[np.int32]
FoundRows = Ranges | ContainingIntervals


class AliveRows:
    """Counts for each position of an index how many of the rows before the position are alive."""

    def __init__(self, rows: RowNumbers) -> None:
        """Take the rows in the order of the index."""
        self._rows = rows
        self._before: tuple[int, Ints] | None = None

    def before(self, alive: NDArray[np.bool_], version: int) -> Ints:
        """Return the counts; they are kept until `version` changes.

        Args:
            alive: By row number, whether the row is alive.
            version: A number that changes whenever `alive` changes.
        """
        if self._before is None or self._before[0] != version:
            self._before = (version, np.concatenate(([0], np.cumsum(alive[self._rows]))))
        return self._before[1]


class Candidates:
    """The candidates that an index gives for the events of a batch."""

    def __init__(self, events: Ints, found: FoundRows, alive: AliveRows, *, repeated: bool = False) -> None:
        """Take the found rows.

        Args:
            events: The events that were looked up, ascending.
            found: The rows that the index gives for each of these events.
            alive: Counts the live rows of the index.
            repeated: Whether `events` may contain an event several times, each time with other rows.
        """
        self._events = events
        self._repeated = repeated
        self._found = found
        self._alive = alive

    def add_counts(self, counts: Ints) -> int:
        """Add to `counts` the number of candidates of each event; return the sum of the added numbers."""
        own = self._found.counts()
        if self._repeated:
            np.add.at(counts, self._events, own)
        else:
            counts[self._events] += own
        return int(own.sum())

    def between(self, first: int, last: int) -> Candidates:
        """Return the candidates of the events in [first, last)."""
        part = slice(*np.searchsorted(self._events, (first, last)))
        return Candidates(self._events[part], self._found[part], self._alive, repeated=self._repeated)

    def runs(self) -> tuple[Ints, Ranges] | None:
        """Return the events, ascending, and the run of rows of each; None if an event may have several runs."""
        return None if self._repeated or not isinstance(self._found, Ranges) else (self._events, self._found)

    def pairs(self, limit: int) -> Iterator[Pairs]:
        """Yield pairs of events and rows, at most `limit` at a time, unless a single event has more rows."""
        for events, rows in self._found.pairs(limit):
            yield self._events[events], rows

    def any(self, alive: NDArray[np.bool_] | None, version: int) -> Ints:
        """Return the events that have a candidate that is alive, without making pairs.

        Args:
            alive: By row number, whether the row is alive; None if all rows are.
            version: A number that changes whenever `alive` changes.
        """
        if isinstance(self._found, ContainingIntervals):
            hit = self._found.any(alive, version)
        else:
            hit = self._found.any(None if alive is None else self._alive.before(alive, version))
        return distinct_values(self._events[hit]) if self._repeated else self._events[hit]


class Lookup:
    """The index of some constant rows by equality, by one or two bounds, or by both.

    The index does not change after it is built. If the access path has no key, every row is a candidate for every
    event.
    """

    def __init__(
        self,
        conjuncts: Sequence[Expression],
        path: AccessPath,
        types: Sequence[SqlType],
        constants: Sequence[pa.Array],
        count: int,
    ) -> None:
        """Index the rows.

        Args:
            conjuncts: The conjuncts of the group.
            path: The access path, which says by which conjuncts rows are looked up.
            types: The types of the slots.
            constants: For each slot, its constant in each row.
            count: The number of rows.
        """
        self._codes: JointCodes | None = None
        self._column: Reference = ""
        rows = np.arange(count, dtype=np.int32)
        codes: NDArray[np.int32] | None = None
        if path.equal:
            terms = [comparison(conjuncts[i]) for i in path.equal]
            keys = [KeyCodes(key.reference, key.type, types[slot], constants[slot]) for _, key, slot in terms]
            self._codes, codes = JointCodes.of(keys, [constants[slot] for _, _, slot in terms])
        elif path.set_member is not None:
            _, key, slot = comparison(conjuncts[path.set_member])
            rows = constants[slot].value_parent_indices().to_numpy().astype(np.int32)
            elements = constants[slot].flatten()
            members = KeyCodes(key.reference, key.type, types[slot].member, elements)
            self._codes, codes = JointCodes.of([members], [elements])
            # A set may have the same value in two spellings; an event must find the set's row only once.
            _, once = np.unique(rows.astype(np.int64) << 32 | codes.view(np.uint32), return_index=True)
            rows, codes = rows[once], codes[once]
        bounds = [comparison(conjuncts[i]) for i in (path.lower, path.upper) if i is not None]
        self._index = self._build(bounds, types, constants, rows, codes)
        self._alive = AliveRows(self._all if self._index is None else self._index.rows)

    def _build(
        self,
        bounds: list[tuple[str, LookupKey, int]],
        types: Sequence[SqlType],
        constants: Sequence[pa.Array],
        rows: RowNumbers,
        codes: NDArray[np.int32] | None,
    ) -> EqualityIndex | OrderedIndex | CompositeIndex | IntervalIndex | None:
        valid = np.ones(rows.size, np.bool_) if codes is None else codes >= 0
        for _, _, slot in bounds:
            if constants[slot].null_count:
                valid &= constants[slot].is_valid().to_numpy(zero_copy_only=False)[rows]
        kept = slice(None) if valid.all() else np.flatnonzero(valid)
        rows = rows[kept]
        codes = None if codes is None else codes[kept]
        count = self._codes.count if self._codes is not None else 0
        if not bounds:
            self._all = rows
            return None if codes is None else EqualityIndex(codes, count, rows)
        self._column = bounds[0][1].reference
        slots = [slot for _, _, slot in bounds]
        values = [constants[slot] for slot in slots]
        self._space = key_space(bounds[0][1].type, (types[slot] for slot in slots), values)
        keys = [self._space.constants(array)[rows] for array in values]
        ops = [op for op, _, _ in bounds]
        if len(bounds) == 2:
            return IntervalIndex((ops[0], ops[1]), keys[0], keys[1], rows, codes)
        if codes is None:
            return OrderedIndex(ops[0], keys[0], rows)
        return CompositeIndex(ops[0], codes, count, keys[0], rows)

    def find(self, events: EventColumns, selected: Ints) -> Candidates:
        """Return the candidates of the events at the positions `selected`."""
        codes: NDArray[np.int32] | None = None
        if self._codes is not None:
            codes = self._codes.find(events)[selected]
            known = np.flatnonzero(codes >= 0)
            selected, codes = selected[known], codes[known]
        if not self._column:
            if isinstance(self._index, EqualityIndex) and codes is not None:
                return Candidates(selected, self._index.find(codes), self._alive)
            zero = np.zeros(selected.size, np.int64)
            return Candidates(selected, Ranges(self._all, zero, zero + self._all.size), self._alive)
        column = events[self._column]
        if column.nulls is not None:
            known = np.flatnonzero(~column.nulls[selected])
            selected, codes = selected[known], None if codes is None else codes[known]
        if isinstance(self._index, OrderedIndex):
            return self._reached(self._index, column, selected)
        return Candidates(selected, self._within(column, selected, codes), self._alive)

    def _reached(self, index: OrderedIndex, column: EventColumn, selected: Ints) -> Candidates:
        """Look up events by one bound.

        If few of the distinct values satisfy any row, only these values are looked up. So a group that rarely matches
        takes little time.
        """
        keys = self._space.events(column)
        order = column.order(self._space.name, keys)
        reached = index.reach(keys, order)
        if reached.size * _RARE <= keys.size:
            selected = column.among(reached, selected)
            return Candidates(selected, index.at(index.cuts(column.take(keys, selected))), self._alive)
        return Candidates(selected, index.at(column.take(index.cuts(keys, order), selected)), self._alive)

    def _within(self, column: EventColumn, selected: Ints, codes: NDArray[np.int32] | None) -> FoundRows:
        """Look up events by a code and one bound, or by two bounds with or without a code.

        For two bounds, ranks are computed only for the distinct values. The order of the values is computed once for
        all groups.
        """
        keys = self._space.events(column)
        match self._index:
            case CompositeIndex() if codes is not None:
                return self._index.find(codes, column.spread(keys)[selected])
            case IntervalIndex():
                ranks = self._index.ranks(keys, column.order(self._space.name, keys))
                return self._index.at(column.spread(ranks)[selected], codes)
        raise InternalError("an index without its key")

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        own = self._index.nbytes if self._index is not None else self._all.nbytes
        return own + (0 if self._codes is None else self._codes.nbytes)


def comparison(conjunct: Expression) -> tuple[str, LookupKey, int]:
    """Return the operator, the key and the slot of a conjunct that an index looks up.

    Raises:
        InternalError: The conjunct does not compare a key with a slot.
    """
    match conjunct:
        case Call(op, (left, Slot(index))):
            return op, lookup_key(left), index
    raise InternalError(f"not a key: {conjunct}")
