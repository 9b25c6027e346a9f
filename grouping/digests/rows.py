"""The rows of a digest: in memory while they are few, then in a temporary file."""

from __future__ import annotations

import os
import struct
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from grouping.model.errors import OperationalError

__all__ = ["IN_MEMORY", "DigestRow", "RowFile", "DigestRows", "RowsUnavailable", "size_of"]

IN_MEMORY = 16 << 20
"""The largest number of bytes of a digest's rows in memory."""
_HEAD = struct.Struct("<iqqi")
_ROW_BYTES = 250
"""The approximate bytes of memory that a row takes in addition to its body."""
_READ_BYTES = 64 << 10
_WRITE_BYTES = 1 << 20


class RowsUnavailable(OperationalError):
    """The rows of a digest cannot be written or read: the disk is full, or the folder is gone."""


class DigestRow(NamedTuple):
    """A match, or an aggregate, in a digest."""

    partition: int
    offset: int
    time_ms: int
    body: bytes
    """The row as JSON, in the form of `stored_rows.py`."""


def size_of(row: DigestRow) -> int:
    """Return the approximate bytes that a row takes in memory."""
    return len(row.body) + _ROW_BYTES


class RowFile:
    """A temporary file of rows, in runs; the file is removed with this object."""

    def __init__(self) -> None:
        """Make the file.

        Raises:
            RowsUnavailable: There is no room or no folder for the file.
        """
        with _kept():
            self._file = tempfile.TemporaryFile(buffering=0, prefix="cq-digest-")
        weakref.finalize(self, self._file.close)
        self._end = 0

    def write(self, rows: Iterable[DigestRow]) -> tuple[int, int]:
        """Append a run of rows, and return where it begins and ends.

        Raises:
            RowsUnavailable: The disk is full.
        """
        begin = self._end
        heads_and_bodies: list[bytes] = []
        size = 0
        with _kept():
            for row in rows:
                heads_and_bodies += (_HEAD.pack(row.partition, row.offset, row.time_ms, len(row.body)), row.body)
                size += len(row.body)
                if size > _WRITE_BYTES:
                    self._put(b"".join(heads_and_bodies))
                    heads_and_bodies, size = [], 0
            self._put(b"".join(heads_and_bodies))
        return begin, self._end

    def _put(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            written = self._file.write(left)
            self._end += written
            left = left[written:]

    def read(self, begin: int, end: int) -> Iterator[DigestRow]:
        """Yield the rows of a run; several runs may be read at once.

        Raises:
            RowsUnavailable: The rows cannot be read.
        """
        data, at = b"", 0
        while begin < end or at < len(data):
            if len(data) - at < _HEAD.size:
                data, at, begin = self._more(data[at:], begin, end, _HEAD.size)
            partition, offset, time_ms, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            if len(data) - at < size:
                data, at, begin = self._more(data[at:], begin, end, size)
            yield DigestRow(partition, offset, time_ms, data[at : at + size])
            at += size

    def _more(self, left: bytes, begin: int, end: int, least: int) -> tuple[bytes, int, int]:
        """Read more of the file. Return the unread bytes, the position in them, and the next position in the file."""
        wanted = min(max(_READ_BYTES, least - len(left)), end - begin)
        with _kept():
            read = os.pread(self._file.fileno(), wanted, begin)
            if len(left) + len(read) < least:
                raise OSError("the file is shorter than the data that were written")
        return left + read, 0, begin + len(read)


@contextmanager
def _kept() -> Iterator[None]:
    """Turn file errors of the system into `RowsUnavailable`."""
    try:
        yield
    except OSError as exc:
        raise RowsUnavailable(
            "the rows of a digest cannot be kept",
            detail=f"{exc.strerror or exc}.",
            hint="Free disk space in the folder of temporary files (TMPDIR); the digest is tried again.",
        ) from exc


class DigestRows:
    """Rows in the order in which they were appended; they can be read several times.

    Rows that exceed a limit of memory are in a file, so a digest can be of any size.
    """

    def __init__(self, rows: Iterable[DigestRow] = (), *, in_memory: int = IN_MEMORY) -> None:
        """Begin with the given rows.

        Args:
            rows: Appended one by one.
            in_memory: The largest number of bytes of rows that are not in a file.
        """
        self._rows: list[DigestRow] = []
        self._in_memory = self._most = in_memory
        self._file: RowFile | None = None
        self._written = self._spilled = 0
        self.size = 0
        """Bytes of all rows, in memory and in the file."""
        for row in rows:
            self.append(row)

    def append(self, row: DigestRow) -> None:
        """Append a row.

        Raises:
            RowsUnavailable: There is no room for the row.
        """
        self._rows.append(row)
        self.size += len(row.body) + _ROW_BYTES
        if self.size > self._most:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = RowFile()
        _, self._written = self._file.write(self._rows)
        self._spilled += len(self._rows)
        self._rows, self._most = [], self.size + self._in_memory

    def __len__(self) -> int:
        return self._spilled + len(self._rows)

    def __iter__(self) -> Iterator[DigestRow]:
        if self._file is not None:
            yield from self._file.read(0, self._written)
        yield from self._rows
