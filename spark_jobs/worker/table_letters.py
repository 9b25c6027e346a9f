"""Dead letters of a table's records: every worker decodes them, and one of them writes what none has written."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from grouping.store.table_store import TableStore
from spark_jobs.batch.headers import unpacked_headers

__all__ = ["TableLetters"]

_WORKER = secrets.token_hex(8)
_MOST = 1_000
"""So many batches of letters are held by a worker that does not write them."""


class TableLetters:
    """The dead letters of one table that are not known to be written."""

    def __init__(self, table_id: str) -> None:
        """Begin without any."""
        self._table_id = table_id
        self._held: list[pa.RecordBatch] = []
        self._written: dict[int, int] = {}
        """What the last task wrote: by partition the offset after it. That the next one runs means that it is out."""

    def add(self, letters: pa.RecordBatch) -> None:
        """Hold letters until it is known that they are written."""
        self._held.append(letters)
        del self._held[:-_MOST]

    def due(self, store: TableStore) -> Iterator[pa.RecordBatch]:
        """Yield those that this worker is to write, if it is the one that writes; the others are let go when written.

        Raises:
            OperationalError: Redis did not answer.
        """
        if self._written:
            store.letters_written(self._table_id, self._written)
            self._written = {}
        if not self._held:
            return
        told = store.letters_of(self._table_id)
        places = [[_place(headers) for headers in each["headers"].to_pylist()] for each in self._held]
        left = [
            (rows, each)
            for rows, each in zip(places, self._held, strict=True)
            if any(offset >= told.get(partition, 0) for partition, offset in rows)
        ]
        self._held = [each for _, each in left]
        if not left or not store.writes_letters(self._table_id, _WORKER):
            return
        for rows, each in left:
            new = np.array([offset >= told.get(partition, 0) for partition, offset in rows])
            for partition, offset in rows:
                self._written[partition] = max(self._written.get(partition, 0), offset + 1)
            yield each.filter(pa.array(new))


def _place(headers: bytes) -> tuple[int, int]:
    """Return partition and offset of the record that a dead letter's headers name."""
    _, partition, offset = dict(unpacked_headers(headers))["source"].rsplit(b"/", 2)
    return int(partition), int(offset)
