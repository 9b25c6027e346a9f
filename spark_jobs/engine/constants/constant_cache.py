"""The constant tables of a stream in a worker process, kept between batches and updated by the changes of versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from grouping.model.errors import OperationalError
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.model.sql_type import SqlType
from grouping.plan.columns_read import reads_column
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan, SelectList
from grouping.store.constant_table import FRAMES, MODES, Block, Segment
from spark_jobs.engine.constants.constant_part import ConstantPart, added
from spark_jobs.engine.constants.constant_rows import ConstantRows, destinations
from spark_jobs.engine.constants.shared_index import SharedIndex
from spark_jobs.engine.constants.shared_indexes import SharedIndexes
from spark_jobs.engine.constants.table_shape import TableShape

__all__ = ["ConstantTable", "ConstantTables", "Snapshot", "TableReader", "Version"]


class Version(Protocol):
    """A version of a stream's tables; implemented by `grouping.store.notes.TableVersion`."""

    @property
    def epoch(self) -> int:
        """The epoch of Redis; versions of different epochs are not comparable."""

    @property
    def version(self) -> int:
        """The number of the version; it grows within the epoch."""


class TableReader(Protocol):
    """The source of the tables; implemented by `grouping.store.table_store.TableStore`."""

    def changes(self, stream_id: StreamId, epoch: int, since: int, until: int) -> Iterator[Segment] | None:
        """Yield the net changes of the versions in (since, until]; None if no segment ends at `since` any more."""

    def plans(self, stream_id: StreamId, ids: Sequence[GroupId]) -> dict[GroupId, GroupPlan]:
        """Return the plans of groups."""

    def selects(self, stream_id: StreamId, ids: Sequence[SelectId]) -> dict[SelectId, SelectList]:
        """Return SELECT lists."""


@dataclass(frozen=True, slots=True)
class ConstantTable:
    """The entries of a group whose constants have the same types."""

    shape: TableShape
    parts: tuple[ConstantPart, ...]
    """The parts, from the largest and oldest to the smallest and newest."""

    @property
    def rows(self) -> int:
        """The number of entries, including entries that are struck out but still in memory."""
        return sum(len(part.rows) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All tables of a stream at one version.

    A snapshot is valid until the next call of `ConstantTables.at` or `rebuild`, and only in the thread that got it.
    """

    tables: tuple[ConstantTable, ...]
    selects: tuple[SelectList, ...]
    select_of: NDArray[np.int32]
    """For each variant (SELECT list, mode and kind of edges of an entry), the index of its SELECT list in `selects`."""
    mode_of: NDArray[np.int8]
    """For each variant, the index of its mode in `grouping.store.constant_table.MODES`."""
    shared_indexes: tuple[SharedIndex, ...] = ()
    """The indexes of the parts without an index of their own. All parts of a shared index are over one computation."""
    computations: tuple[Computation, ...] = ()
    """The computations that groups use."""
    bounds: Mapping[int, bytes] = field(default_factory=dict)
    """The bounds of each store's panes, by the number of the store (`ConstantRows.number`)."""
    reads_headers: bool = False
    """Whether a group, or a SELECT list of a present or earlier query of the stream, reads the field `_headers`."""
    enters: NDArray[np.bool_] | None = None
    """For each variant, whether an enter is a result; None if no entry has edges."""
    exits: NDArray[np.bool_] | None = None
    """For each variant, whether an exit is a result; None if no entry has edges."""
    changes: NDArray[np.bool_] | None = None
    """For each variant, whether each change of a table's row is a result; None if no CQ has EMIT CHANGES."""

    @property
    def rows(self) -> int:
        """The number of entries, including entries that are struck out but still in memory."""
        return sum(table.rows for table in self.tables if not table.shape.ending)

    @property
    def groups(self) -> list[GroupId]:
        """The groups that have entries."""
        return list(dict.fromkeys(table.shape.plan.group_id for table in self.tables))

    @property
    def used(self) -> Iterator[tuple[GroupPlan, SelectList]]:
        """Each group with each of its SELECT lists."""
        for table in self.tables:
            for variant in {int(each) for part in table.parts for each in part.variants}:
                yield table.shape.plan, self.selects[self.select_of[variant]]

    def only(self, groups: Collection[str]) -> Snapshot:
        """Return only the tables of some groups, with their existing indexes."""
        kept = frozenset(groups)
        tables = tuple(table for table in self.tables if table.shape.plan.group_id in kept)
        shared_indexes = tuple(part for shared in self.shared_indexes if (part := shared.only(kept)) is not None)
        return replace(self, tables=tables, shared_indexes=shared_indexes)

    def without(self, groups: Collection[str]) -> Snapshot:
        """Return the snapshot without the tables of some groups, and without computations that no other group uses."""
        kept = self.only([group for group in self.groups if group not in groups])
        over = {table.shape.plan.computation_id for table in kept.tables}
        return replace(kept, computations=tuple(each for each in self.computations if each.computation_id in over))

    def over(self, computation_id: str) -> Snapshot:
        """Return the tables of the groups over a computation; `computation_id` is "" for the events themselves."""
        return self.by_computation().get(computation_id) or replace(self, tables=(), shared_indexes=())

    def by_computation(self) -> dict[str, Snapshot]:
        """Return the tables by the id of their groups' computation; it is "" for groups over the events themselves."""
        if not self.computations:
            return {"": self}
        tables: dict[str, list[ConstantTable]] = defaultdict(list)
        shared: dict[str, list[SharedIndex]] = defaultdict(list)
        for table in self.tables:
            tables[table.shape.plan.computation_id].append(table)
        for index in self.shared_indexes:
            shared[index.members[0].shape.plan.computation_id].append(index)
        return {
            name: replace(self, tables=tuple(own), shared_indexes=tuple(shared.get(name, ())))
            for name, own in tables.items()
        }

    @property
    def nbytes(self) -> int:
        """Memory of rows and indexes in bytes."""
        parts = sum(part.nbytes for table in self.tables for part in table.parts)
        return parts + sum(shared.nbytes for shared in self.shared_indexes)


_TableKey = tuple[GroupId, tuple[SqlType, ...], bool, tuple[int, ...], bool]
"""Group, types of the constants, and the fields `virtual`, `until` and `ending` of `TableShape`."""
_RowsByTable = dict[_TableKey, list[ConstantRows]]
_SMALL = 1_000
"""The largest number of rows of a small part. Removed destinations are searched in all small parts at once."""
_Part = TypeVar("_Part", GroupPlan, SelectList)
_Id = TypeVar("_Id", GroupId, SelectId)


class ConstantTables:
    """The tables of a stream, shared by the tasks of a worker process. As one task runs at a time, there is no lock."""

    def __init__(self, stream_id: StreamId) -> None:
        """Begin with nothing loaded."""
        self._stream_id = stream_id
        self._clear()

    def _clear(self) -> None:
        self._epoch: int | None = None
        self._version = 0
        self._tables: dict[_TableKey, ConstantTable] = {}
        self._plans: dict[GroupId, GroupPlan] = {}
        self._selects: dict[SelectId, SelectList] = {}
        self._variants: dict[tuple[SelectId, str, str], int] = {}
        self._bounds: dict[int, bytes] = {}
        self._header_readers: set[str] = set()
        """Ids of the groups and SELECT lists that read the field `_headers`."""
        self._shared_indexes = SharedIndexes()
        self._snapshot: Snapshot | None = None

    def at(self, version: Version, reader: TableReader) -> Snapshot:
        """Return the tables at a version, loading the changes since the last call.

        Raises:
            OperationalError: The tables of that version could not be read. A later call may try again.
        """
        if self._snapshot is not None and (self._epoch, self._version) == (version.epoch, version.version):
            return self._snapshot
        if self._epoch != version.epoch or version.version < self._version:
            self._clear()
        changes = reader.changes(self._stream_id, version.epoch, self._version, version.version)
        if changes is None:
            self._clear()
            changes = reader.changes(self._stream_id, version.epoch, 0, version.version)
        if changes is None:
            raise OperationalError(
                f'the constant tables of stream "{self._stream_id}" cannot be read',
                detail="Their first segment is missing.",
            )
        removed, rows = self._read(changes, reader)
        try:
            if removed:
                self._remove(np.concatenate(removed))
            for key in list(rows):
                self._tables[key] = self._grown(key, rows.pop(key))
        except BaseException:
            self._clear()  # no task may see a part of the change; the next call loads all tables again
            raise
        self._epoch, self._version = version.epoch, version.version
        self._snapshot = self._publish()
        return self._snapshot

    def rebuild(self, table: ConstantTable, shape: TableShape) -> None:
        """Give a table of the last snapshot another index. Results stay the same, but the snapshot becomes invalid.

        Args:
            table: A table of the snapshot.
            shape: The shape of the table, with another access path.
        """
        key = next((key for key, known in self._tables.items() if known is table), None)
        if key is not None:
            parts = tuple(ConstantPart(shape, part.live_rows()) for part in table.parts)
            self._tables[key] = ConstantTable(shape, parts)
            self._snapshot = self._publish()

    def _read(self, changes: Iterable[Segment], reader: TableReader) -> tuple[list[NDArray[np.void]], _RowsByTable]:
        """Return the removed destinations and the added rows. The segments themselves do not stay in memory."""
        removed, rows = [], defaultdict(list)
        for piece in changes:
            self._learn(piece.added, reader)
            removed += [destinations(piece.removed)] if len(piece.removed) else []
            for block, table in piece.added.items():
                variant = self._variants.setdefault((block.select_id, block.mode, block.edge), len(self._variants))
                plan = self._plans[block.group_id]
                added = ConstantRows.of(table, variant, len(block.types), at_expire=plan.timed is not None)
                for ending in (False, True) if plan.stay else (False,):
                    rows[block.group_id, block.types, block.mode == "virtual", block.until, ending].append(added)
                if "bounds" in table.column_names:
                    bounds = table["bounds"].to_pylist()
                    self._bounds.update(zip(table["number"].to_pylist(), bounds, strict=True))
        return removed, rows

    def _learn(self, blocks: Iterable[Block], reader: TableReader) -> None:
        """Read the plans and SELECT lists that are not known yet."""
        blocks = list(blocks)
        if groups := sorted({block.group_id for block in blocks} - self._plans.keys()):
            self._plans.update(self._known(groups, reader.plans(self._stream_id, groups)))
        if selects := sorted({block.select_id for block in blocks} - self._selects.keys()):
            self._selects.update(self._known(selects, reader.selects(self._stream_id, selects)))

    def _known(self, names: Sequence[_Id], found: dict[_Id, _Part]) -> dict[_Id, _Part]:
        """Return the plans or SELECT lists that were found.

        Raises:
            OperationalError: One of `names` is missing. Its rows could not be evaluated, and matches would be lost.
        """
        if missing := sorted(set(names) - found.keys()):
            raise OperationalError(
                f'the constant tables of stream "{self._stream_id}" are not complete',
                detail=f'They have rows of "{missing[0]}", which is not stored.',
            )
        self._header_readers |= {name for name, part in found.items() if reads_column(part, "_headers")}
        return found

    def _remove(self, ids: NDArray[np.void]) -> None:
        for key in self._holding(ids):
            table = self._tables[key]
            parts = tuple(left for part in table.parts if (left := part.remove(ids)) is not None)
            if parts:
                self._tables[key] = ConstantTable(table.shape, parts)
            else:
                del self._tables[key]

    def _holding(self, ids: NDArray[np.void]) -> list[_TableKey]:
        """Return the keys of the tables that may have entries of some destinations.

        Each table with a large part is returned. The small parts of other tables are searched for the destinations; a
        stream may have tens of thousands of small tables, so all their parts are searched at once.
        """
        small = [(key, part) for key, table in self._tables.items() for part in table.parts if len(part.rows) <= _SMALL]
        held = {key for key, table in self._tables.items() if any(len(part.rows) > _SMALL for part in table.parts)}
        if small:
            owner = np.repeat(np.arange(len(small)), [len(part.rows) for _, part in small])
            high = np.concatenate([part.rows.high for _, part in small])
            held |= {small[number][0] for number in np.unique(owner[np.isin(high, ids["high"])]).tolist()}
        return list(held)

    def _grown(self, key: _TableKey, blocks_rows: list[ConstantRows]) -> ConstantTable:
        group, types, virtual, until, ending = key
        table = self._tables.get(key)
        shape = (
            table.shape
            if table
            else TableShape.of(self._plans[group], types, virtual=virtual, until=until, ending=ending)
        )
        rows = ConstantRows.concat(blocks_rows) if len(blocks_rows) > 1 else blocks_rows[0]
        blocks_rows.clear()  # frees the blocks before the index is built, since `rows` has a copy of them
        return ConstantTable(shape, added(shape, table.parts if table else (), rows))

    def _publish(self) -> Snapshot:
        plans = [table.shape.plan for table in self._tables.values()]
        found = {plan.computation.computation_id: plan.computation for plan in plans if plan.computation}
        small = (part for table in self._tables.values() for part in table.parts if part.lookup is None)
        used = dict.fromkeys(select for select, _, _ in self._variants)
        edges = ["" if edge == FRAMES else edge for _, _, edge in self._variants]
        index = {select: position for position, select in enumerate(used)}
        return Snapshot(
            tuple(self._tables.values()),
            tuple(self._selects[select] for select in used),
            np.array([index[select] for select, _, _ in self._variants], np.int32),
            np.array([MODES.index(mode) for _, mode, _ in self._variants], np.int8),
            self._shared_indexes.of(small),
            tuple(found.values()),
            self._bounds,
            not self._header_readers.isdisjoint((*used, *(plan.group_id for plan in plans))),
            np.array([edge in ("enter", "both") for edge in edges], np.bool_) if any(edges) else None,
            np.array([edge in ("exit", "both") for edge in edges], np.bool_) if any(edges) else None,
            np.array([edge == "changes" for edge in edges], np.bool_) if "changes" in edges else None,
        )
