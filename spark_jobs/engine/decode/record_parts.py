"""Reads the columns that lie in a record's key or headers (FROM KEY, FROM HEADER)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from grouping.model.catalog import StreamColumn
from spark_jobs.engine.decode.json_events import JsonReader
from spark_jobs.engine.decode.json_exact import WrongRecord, read_text
from spark_jobs.engine.decode.json_lenient import Leniency

__all__ = ["PartsReader"]


class PartsReader:
    """Reads the columns of one stream that do not lie in the record's value."""

    def __init__(self, columns: Sequence[StreamColumn], leniency: Leniency) -> None:
        """Take the columns, and the options of the stream."""
        self._leniency = leniency
        self._key_paths = [column for column in columns if column.place.kind == "key" and column.place.path is not None]
        self._keys = JsonReader(self._key_paths, leniency)
        self._texts = [column for column in columns if column not in self._key_paths]
        self._headers = any(column.place.kind == "header" for column in columns)

    def __call__(self, batch: pa.RecordBatch, misfits: Counter[str]) -> tuple[dict[str, list[Any]], dict[int, str]]:
        """Read a batch.

        Args:
            batch: The records.
            misfits: By column of a lenient stream, the number of values that did not fit. The method adds to it.

        Returns:
            By column, the values of all records, good or bad; and by row, the faults of the bad records.
        """
        counted = misfits if self._leniency.lenient else None
        found: dict[str, list[Any]] = {}
        wrong: dict[int, str] = {}
        keys = batch["key"].to_pylist()
        if self._key_paths:
            self._add_key_paths(batch["key"], keys, found, wrong, misfits)
        headers = [dict(_entries(each)) for each in batch["headers"].to_pylist()] if self._headers else []
        for column in self._texts:
            header = column.place.header
            texts = [each.get(header) for each in headers] if column.place.kind == "header" else keys
            values = found[column.name] = [None] * len(keys)
            for row, text in enumerate(texts):
                if text is not None:
                    try:
                        values[row] = read_text(text, column, self._leniency, counted)
                    except WrongRecord as exc:
                        wrong.setdefault(row, str(exc))
        return found, wrong

    def _add_key_paths(
        self,
        array: pa.Array,
        keys: list[bytes | None],
        found: dict[str, list[Any]],
        wrong: dict[int, str],
        misfits: Counter[str],
    ) -> None:
        """Read the columns at paths in a JSON key. In a record without a key, these columns are NULL."""
        present = [row for row, key in enumerate(keys) if key is not None]
        read, refused, unfit = self._keys.read(array.filter(array.is_valid()))
        misfits.update(unfit)
        wrong.update({present[place]: f"The record's key is not as declared. {why}" for place, why in refused.items()})
        good = [row for place, row in enumerate(present) if place not in refused]
        for column in self._key_paths:
            values = found[column.name] = [None] * len(keys)
            for row, value in zip(good, read(column), strict=True):
                values[row] = value


def _entries(headers: list[dict[str, Any]] | None) -> list[tuple[str, bytes | None]]:
    """Return a record's headers as pairs. A dict of the pairs keeps the last header of a repeated name."""
    return [(each["key"], each["value"]) for each in headers or ()]
