"""The constant tables of a stream in a worker process, kept between batches and brought forward by deltas."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.constant_table import MODES, Block, Segment
from grouping.errors import OperationalError
from grouping.group import GroupPlan, SelectList
from spark_jobs.bundle import Bundle
from spark_jobs.bundles import Bundles
from spark_jobs.constant_part import ConstantPart, added
from spark_jobs.constant_rows import ConstantRows, destinations
from spark_jobs.table_shape import TableShape

__all__ = ["ConstantTable", "ConstantTables", "Snapshot", "TableReader", "Version"]

log = logging.getLogger(__name__)


class Version(Protocol):
    """A version of a stream's tables: `grouping.redis_store.TableVersion`."""

    @property
    def epoch(self) -> int:
        """Which life of Redis; versions of different epochs have nothing to do with each other."""

    @property
    def version(self) -> int:
        """Grows within the epoch."""


class TableReader(Protocol):
    """Where tables come from: `grouping.redis_store.TableStore`."""

    def segments(self, stream_id: str, since: int, until: int) -> list[bytes] | None:
        """Return the segments of (since, until] in order, None when `since` is no boundary of segments any more."""

    def plans(self, stream_id: str, ids: list[str]) -> dict[str, GroupPlan]:
        """Return the plans of groups."""

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""


@dataclass(frozen=True, slots=True)
class ConstantTable:
    """A group's rows with the same constant types."""

    shape: TableShape
    parts: tuple[ConstantPart, ...]
    """From the largest and oldest to the smallest and newest."""

    @property
    def rows(self) -> int:
        """How many entries there are, those struck out and not yet swept included."""
        return sum(len(part.rows) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All tables of a stream at one version. Good until `ConstantTables.at` is called again, in the same thread."""

    tables: tuple[ConstantTable, ...]
    selects: tuple[SelectList, ...]
    select_of: NDArray[np.int32]
    """By variant: index into `selects`."""
    mode_of: NDArray[np.int8]
    """By variant: index into `grouping.constant_table.MODES`."""
    bundles: tuple[Bundle, ...] = ()
    """The parts that have no index of their own."""

    @property
    def rows(self) -> int:
        """How many entries there are, those struck out and not yet swept included."""
        return sum(table.rows for table in self.tables)

    @property
    def nbytes(self) -> int:
        """Memory of rows and indexes in bytes."""
        parts = sum(part.nbytes for table in self.tables for part in table.parts)
        return parts + sum(bundle.nbytes for bundle in self.bundles)


_Key = tuple[str, tuple[str, ...], bool, tuple[int, ...]]


class ConstantTables:
    """One stream's tables. Process-wide; a worker process runs one task at a time, so nothing is locked."""

    def __init__(self, stream_id: str) -> None:
        """Begin with nothing loaded."""
        self._stream_id = stream_id
        self._clear()

    def _clear(self) -> None:
        self._epoch: int | None = None
        self._version = 0
        self._tables: dict[_Key, ConstantTable] = {}
        self._plans: dict[str, GroupPlan] = {}
        self._selects: dict[str, SelectList] = {}
        self._variants: dict[tuple[str, str], int] = {}
        self._bundles = Bundles()
        self._snapshot: Snapshot | None = None

    def at(self, version: Version, reader: TableReader) -> Snapshot:
        """Return the tables at a version, loading what changed since the last call.

        Raises:
            OperationalError: The tables of that version could not be read; nothing has changed.
        """
        if self._snapshot is not None and (self._epoch, self._version) == (version.epoch, version.version):
            return self._snapshot
        if self._epoch != version.epoch or version.version < self._version:
            self._clear()
        data = reader.segments(self._stream_id, self._version, version.version)
        if data is None:
            self._clear()
            data = reader.segments(self._stream_id, 0, version.version)
        if data is None:
            raise OperationalError(
                f'the constant tables of stream "{self._stream_id}" cannot be read', detail="No segment begins them."
            )
        change = Segment.merge([Segment.decode(item) for item in data], oldest=self._version == 0)
        self._learn(change.added, reader)
        try:
            self._remove(destinations(change.removed))
            self._add(change.added)
        except BaseException:
            self._clear()  # half a change must not be seen; the next call loads afresh
            raise
        self._epoch, self._version = version.epoch, version.version
        self._snapshot = self._publish()
        return self._snapshot

    def rebuild(self, table: ConstantTable, shape: TableShape) -> None:
        """Look a table of the last snapshot up another way; results stay the same, that snapshot is not good any more.

        Args:
            table: One of the snapshot.
            shape: Its own, with another path.
        """
        key = next((key for key, known in self._tables.items() if known is table), None)
        if key is not None:
            parts = tuple(ConstantPart(shape, part.live_rows()) for part in table.parts)
            self._tables[key] = ConstantTable(shape, parts)
            self._snapshot = self._publish()

    def _learn(self, blocks: Iterable[Block], reader: TableReader) -> None:
        """Read the plans and SELECT lists that were not met before."""
        blocks = list(blocks)
        if groups := sorted({block.group_id for block in blocks} - self._plans.keys()):
            self._plans.update(reader.plans(self._stream_id, groups))
        if selects := sorted({block.select_id for block in blocks} - self._selects.keys()):
            self._selects.update(reader.selects(self._stream_id, selects))

    def _remove(self, ids: NDArray[np.void]) -> None:
        if not ids.size:
            return
        for key, table in list(self._tables.items()):
            parts = tuple(left for part in table.parts if (left := part.remove(ids)) is not None)
            if parts:
                self._tables[key] = ConstantTable(table.shape, parts)
            else:
                del self._tables[key]

    def _add(self, blocks: dict[Block, pa.Table]) -> None:
        by_table: dict[_Key, list[ConstantRows]] = {}
        for block, table in blocks.items():
            if block.group_id not in self._plans or block.select_id not in self._selects:
                # The group's last member has left since this version, and its plan went with it.
                log.warning("constant rows without a plan", extra={"group": block.group_id, "rows": table.num_rows})
                continue
            variant = self._variants.setdefault((block.select_id, block.mode), len(self._variants))
            rows = ConstantRows.of(table, variant, len(block.types))
            key = (block.group_id, block.types, block.mode == "virtual", block.until)
            by_table.setdefault(key, []).append(rows)
        for key, blocks_rows in by_table.items():
            self._tables[key] = self._grown(key, blocks_rows)

    def _grown(self, key: _Key, blocks_rows: Sequence[ConstantRows]) -> ConstantTable:
        group, types, virtual, until = key
        table = self._tables.get(key)
        shape = table.shape if table else TableShape.of(self._plans[group], types, virtual=virtual, until=until)
        rows = ConstantRows.concat(blocks_rows) if len(blocks_rows) > 1 else blocks_rows[0]
        return ConstantTable(shape, added(shape, table.parts if table else (), rows))

    def _publish(self) -> Snapshot:
        small = (part for table in self._tables.values() for part in table.parts if part.lookup is None)
        index = {select: position for position, select in enumerate(self._selects)}
        return Snapshot(
            tuple(self._tables.values()),
            tuple(self._selects.values()),
            np.array([index[select] for select, _ in self._variants], np.int32),
            np.array([MODES.index(mode) for _, mode in self._variants], np.int8),
            self._bundles.of(small),
        )
