"""The matches of one digest: few in memory, many in a file that is gone with them."""

from __future__ import annotations

import struct
import tempfile
import weakref
from collections.abc import Iterator
from typing import IO, NamedTuple

__all__ = ["Row", "Rows"]

_IN_MEMORY = 16 << 20
_HEAD = struct.Struct("<iqqi")


class Row(NamedTuple):
    """A match that waited."""

    partition: int
    offset: int
    time_ms: int
    body: bytes
    """The JSON object."""


class Rows:
    """Rows in the order of their coming; read as often as wanted, so that a digest of any size is written in passes."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._count = 0
        self.size = 0
        """Bytes of all rows."""

    def append(self, row: Row) -> None:
        """Take in one more."""
        self._count += 1
        self.size += len(row.body)
        self._rows.append(row)
        self._bytes += len(row.body)
        if self._bytes > _IN_MEMORY:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="cq-digest-")
            weakref.finalize(self, self._file.close)
        for row in self._rows:
            self._file.write(_HEAD.pack(row.partition, row.offset, row.time_ms, len(row.body)) + row.body)
        self._rows, self._bytes = [], 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        if self._file is None:
            yield from self._rows
            return
        self._spill()
        self._file.seek(0)
        while head := self._file.read(_HEAD.size):
            partition, offset, time_ms, size = _HEAD.unpack(head)
            yield Row(partition, offset, time_ms, self._file.read(size))
