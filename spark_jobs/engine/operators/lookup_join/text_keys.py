"""Keys of records in plain text: for tables with a single STRING column as PRIMARY KEY."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from grouping.model.catalog import StreamColumn

__all__ = ["read_text_keys"]


def read_text_keys(keys: pa.Array) -> tuple[Callable[[StreamColumn], list[object]], dict[int, str]]:
    """Decode keys, as a `spark_jobs.engine.decode.decode.FormatReader` does.

    Example:
        >>> read, wrong = read_text_keys(pa.array([b"INTC", bytes([255])]))
        >>> read(StreamColumn("symbol", "STRING")), wrong
        (['INTC'], {1: 'The key is no valid UTF-8.'})
    """
    texts: list[object] = []
    wrong: dict[int, str] = {}
    for place, key in enumerate(keys.to_pylist()):
        try:
            texts.append(key.decode())
        except UnicodeDecodeError:
            wrong[place] = "The key is no valid UTF-8."
    return lambda _: texts, wrong
