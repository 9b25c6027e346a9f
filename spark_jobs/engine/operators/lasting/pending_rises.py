"""The state of `LastingMatches` in one source partition: the last row of each key, rises, and exits.

A *rise* is a row that is a match for some constants, while the previous row of its key was no match for them. The state
keeps for each rise the lowest value of the rise and of the rows that followed within the interval. The key entered and
stayed in for the constants between the value of the key's previous row and this lowest value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.lasting.key_extremes import SPECIAL
from spark_jobs.engine.operators.lasting.lowest_values import LastMatches
from spark_jobs.engine.operators.lasting.waiting_rows import NO_MATCH, Exits, Rises, WaitingRows
from spark_jobs.engine.operators.placed_rows import PlacedRows
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.timed_state import ELEMENT, TimedState
from spark_jobs.engine.rows.silent_rows import CHAIN

__all__ = ["PendingRises"]

_SECTION, _KEY, _FIELD, _COLUMN = "section", "key.", "field.", "column."
_LAST = {"offset": NO_MATCH, "time": 0, "value": 0}
_FEW = 1_000


class PendingRises(TimedState):
    """The last row of each key, the rises and the exits, at a position of the partition's log."""

    form: ClassVar[bytes] = b"lasting 2\n"

    def __init__(self, position: int = 0) -> None:
        """Begin without rows, at a position of the log."""
        super().__init__(position)
        self.kept_ms = 1 << 60
        """The largest difference of the event times of a row and its previous row; an older previous row is ignored."""
        self._most_keys = _FEW
        """If the state has more keys than this, it looks for keys without rows."""
        self._clear()

    def _clear(self) -> None:
        self._last = PlacedRows(_LAST)
        """The last row of each key, at the place of the key's number; `NO_MATCH` as offset if the row was no match."""
        self.rises = WaitingRows(Rises)
        """The rises that wait for the watermark."""
        self.lasted = WaitingRows(Rises)
        """The rises whose interval the watermark has passed, as long as an earlier rise of the key may still wait.

        Their only columns are those for UNTIL."""
        self.exits = WaitingRows(Exits)
        """The exits that wait for the watermark."""

    @property
    def _tables(self) -> tuple[WaitingRows[Any], ...]:
        return self.rises, self.lasted, self.exits

    @property
    def earliest(self) -> int:
        """The earliest time of a rise or an exit that waits."""
        return min(self.rises.earliest, self.exits.earliest)

    def begin(self) -> None:
        """Begin a task: earlier changes can no longer be undone."""
        self._last.begin()
        for each in self._tables:
            each.begin()
        super().begin()
        self.tidy()

    def tidy(self) -> None:
        """Remove the keys without rows, if most keys have none."""
        if self.keys.count > self._most_keys:
            used = self._used()
            if 2 * used.size < self.keys.count:
                self._shrink(used)
            self._most_keys = max(_FEW, 2 * used.size)

    def keep(self, names: Collection[str]) -> None:
        """Remove all columns but those in `names`, since the operator no longer fills the other columns."""
        super().keep(names)
        for each in self._tables:
            each.keep({*names, ELEMENT, *SPECIAL})

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self._last.undo()
        for each in self._tables:
            each.undo()
        super().undo()

    def last(self, keys: Ints) -> LastMatches:
        """Return the last row of each of some keys; the offset is `NO_MATCH` if the row is missing or was no match."""
        self._last.grow(self.keys.count)
        return LastMatches(*(self._last.numbers(name)[keys] for name in _LAST))

    def chains(self, keys: Ints) -> list[bytes | None]:
        """Return the packed extremes of each of some keys; None for a key without extremes."""
        for values in self._last.taken([CHAIN], keys).values():
            found: list[bytes | None] = values.to_pylist()
            return found
        return [None] * keys.size

    def put_last(self, keys: Ints, rows: LastMatches, columns: Mapping[str, pa.Array], *, undoable: bool) -> None:
        """Set the last rows of some distinct keys; for UNTIL, the column `CHAIN` of `columns` has their extremes."""
        self._last.grow(self.keys.count)
        self._last.put(keys, rows._asdict(), columns, undoable=undoable)
        self.changed += keys.size

    def index_of(self, keys: Ints) -> Ints:
        """Return for each key of the state its index in `keys`; -1 if `keys` does not have the key."""
        index = np.full(self.keys.count, -1, np.int64)
        index[keys] = np.arange(keys.size)
        return index

    def complete_rows(self, offsets: Ints, columns: Mapping[str, pa.Array]) -> None:
        """Fill columns of rises and exits from rows of the log (`WaitingRows.complete`)."""
        self.rises.complete(offsets, columns)
        self.exits.complete(offsets, columns)

    def _has_last(self) -> NDArray[np.bool_]:
        self._last.grow(self.keys.count)
        found: NDArray[np.bool_] = self._last.numbers("offset")[: self.keys.count] != NO_MATCH
        return found

    def _used(self) -> Ints:
        """Return the numbers of the keys that have a rise or an exit, or a last match that is not too old."""
        used = self._has_last() & (self._last.numbers("time")[: self.keys.count] >= self.watermark - self.kept_ms)
        for each in self._tables:
            used[each.owners[each.owners >= 0]] = True
        return np.flatnonzero(used)

    def _shrink(self, used: Ints) -> None:
        """Remove all keys but those in `used`."""
        kept = self._packed_rows(used)
        self.keys = KeyNumbers()
        self._clear()
        self._put_rows(kept)

    @property
    def _replaced(self) -> Ints:
        """The keys that had events in the last task.

        Rises and exits of other keys may have ended in the task, too. A worker that has called `put_changes` must
        remove them by `TimedOperator.advance`.
        """
        return self._last.replaced

    def _packed_rows(self, keys: Ints) -> pa.Table:
        """Return the rows of some keys as a table; the numbers of the keys must ascend.

        The table has a section for the keys' last rows, then a section for each of `_tables`.
        """
        index = self.index_of(keys)
        columns = self._last.taken(self._last.columns, keys)
        sections = [self._section(0, keys, self.last(keys)._asdict(), columns)]
        for number, each in enumerate(self._tables):
            places, of = each.of_keys(index)
            sections.append(self._section(number + 1, keys[of], each.at(places)._asdict(), each.columns(places)))
        return pa.concat_tables(sections, promote_options="default").combine_chunks()

    def _section(
        self, number: int, keys: Ints, fields: Mapping[str, Ints], columns: Mapping[str, pa.Array]
    ) -> pa.Table:
        arrays = {_SECTION: pa.array(np.full(keys.size, number))}
        if self.keys.count:
            arrays |= {f"{_KEY}{at}": column for at, column in enumerate(self.keys.columns(keys))}
        arrays |= {_FIELD + name: pa.array(values) for name, values in fields.items()}
        return pa.table(arrays | {f"{_COLUMN}{number}.{name}": values for name, values in columns.items()})

    def _put_rows(self, rows: pa.Table) -> None:
        """Set rows in place of all rows of their keys."""
        if not rows.num_rows:
            return
        arrays = {name: rows[name].chunk(0) for name in rows.schema.names}
        sections = arrays[_SECTION].to_numpy()
        keys = self.keys.of([array for name, array in arrays.items() if name.startswith(_KEY)])

        def columns(number: int, which: Ints) -> dict[str, pa.Array]:
            own, begin = pa.array(which), f"{_COLUMN}{number}."
            return {
                name.removeprefix(begin): array.take(own) for name, array in arrays.items() if name.startswith(begin)
            }

        def fields(kind: Any, which: Ints) -> Any:
            own = pa.array(which)
            return kind(*(arrays[_FIELD + name].take(own).to_numpy() for name in kind._fields))

        lasts = np.flatnonzero(sections == 0)
        index = self.index_of(keys[lasts])
        self.put_last(keys[lasts], fields(LastMatches, lasts), columns(0, lasts), undoable=False)
        for number, each in enumerate(self._tables):
            each.remove(each.of_keys(index)[0], undoable=False)
            which = np.flatnonzero(sections == number + 1)
            each.add(keys[which], fields(each.kind, which), columns(number + 1, which), undoable=False)

    @property
    def changed_bytes(self) -> int:
        """An estimate of the bytes that were written into the state since the last snapshot."""
        return self.changed * 96

    @property
    def rows(self) -> int:
        """The number of rows: the last rows that are matches, the rises and the exits."""
        return int(np.count_nonzero(self._has_last())) + sum(each.count for each in self._tables)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.keys.nbytes + self._last.nbytes + sum(each.nbytes for each in self._tables)
