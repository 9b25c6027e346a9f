"""Dead letters of a table's records. Every worker decodes the records, but only one worker writes the dead letters."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from grouping.store.table_store import TableStore
from spark_jobs.engine.rows.headers import unpacked_headers

__all__ = ["TableLetters"]

_MOST = 1_000
"""The largest number of batches of dead letters that a worker holds while another worker writes them."""


class TableLetters:
    """The dead letters of one table that may be missing in Kafka."""

    def __init__(self, table_id: str) -> None:
        """Begin without letters."""
        self._table_id = table_id
        self._writer = secrets.token_hex(8)  # made here, since all forks of a daemon have the same module values
        self._held: list[pa.RecordBatch] = []
        self._written: dict[int, int] = {}
        """By partition: the offset after the records whose dead letters the last task wrote.

        When the next task runs, Kafka has these dead letters.
        """

    def add(self, letters: pa.RecordBatch) -> None:
        """Hold dead letters until Kafka is known to have them."""
        self._held.append(letters)
        del self._held[:-_MOST]

    def due(self, store: TableStore) -> Iterator[pa.RecordBatch]:
        """Yield the dead letters to write, if this worker is in charge of them; forget those that Kafka has.

        Raises:
            OperationalError: Redis did not answer.
        """
        if self._written:
            store.letters_written(self._table_id, self._written)
            self._written = {}
        if not self._held:
            return
        noted = store.letters_of(self._table_id)
        places = [[_place(headers) for headers in each["headers"].to_pylist()] for each in self._held]
        left = [
            (rows, each)
            for rows, each in zip(places, self._held, strict=True)
            if any(offset >= noted.get(partition, 0) for partition, offset in rows)
        ]
        self._held = [each for _, each in left]
        if not left or not store.writes_letters(self._table_id, self._writer):
            return
        for rows, each in left:
            new = np.array([offset >= noted.get(partition, 0) for partition, offset in rows])
            for partition, offset in rows:
                self._written[partition] = max(self._written.get(partition, 0), offset + 1)
            yield each.filter(pa.array(new))


def _place(headers: bytes) -> tuple[int, int]:
    """Return partition and offset of the record that a dead letter's headers name."""
    _, partition, offset = dict(unpacked_headers(headers))["source"].rsplit(b"/", 2)
    return int(partition), int(offset)
