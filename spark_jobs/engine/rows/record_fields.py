"""Keys and headers of source records as columns; every stream has these fields in addition to its declared columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.engine.rows.arrays import Ints, distinct_values

__all__ = ["HEADERS", "header_maps", "key_texts", "once_each", "readable_headers", "repeated_records"]

HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
"""The Arrow type of the headers of a record: a list of names and values. Headers as a map have the same type."""
_WRONG = "\ufffd"
"""The character that stands for bytes that are not UTF-8."""
_LONG = ("key", "value", "headers")
"""The columns of source records that are kept only once for all events of a record."""


def repeated_records(batch: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
    """Return the source record of each event, for records that hold several events.

    Key, value and headers are dictionary-encoded, so each of them is kept only once for all events of a record.

    Args:
        batch: The records.
        rows: For each event, the row of its record.

    Example:
        >>> repeated_records(pa.record_batch({"key": [b"a", b"b"], "offset": [7, 8]}), np.array([1, 1])).to_pylist()
        [{'key': b'b', 'offset': 8}, {'key': b'b', 'offset': 8}]
    """
    places = pa.array(rows, pa.int32())
    columns = {
        name: pa.DictionaryArray.from_arrays(places, batch[name]) if name in _LONG else batch[name].take(places)
        for name in batch.schema.names
    }
    return pa.RecordBatch.from_pydict(columns)


def readable_headers(headers: pa.Array) -> pa.Array:
    """Return the headers of records, with NULL for each record that has a header whose name is not UTF-8.

    Spark's source writes U+FFFD for the wrong bytes of a name, and librdkafka's Python client gives no headers of such
    a record. With NULL, the record is the same event whoever reads the record.

    Args:
        headers: The headers, of the type `HEADERS`.

    Example:
        >>> readable_headers(pa.array([[("a", b"1")], [("a", b"1"), ("\ufffd", b"2")]], HEADERS)).to_pylist()
        [[{'key': 'a', 'value': b'1'}], None]
    """
    names = pc.struct_field(pc.list_flatten(headers), "key")
    if not pc.any(pc.match_substring(names, _WRONG)).as_py():
        return headers
    wrong = [any(_WRONG in each["key"] for each in some or ()) for some in headers.to_pylist()]
    return pc.if_else(pa.array(wrong), pa.scalar(None, headers.type), headers)


def once_each(compute: Callable[[pa.Array], pa.Array], values: pa.Array) -> pa.Array:
    """Return `compute(values)`; for dictionary-encoded values, `compute` gets only the distinct values.

    Example:
        >>> once_each(key_texts, pa.array([b"a", b"a", None]).dictionary_encode()).to_pylist()
        ['a', 'a', None]
    """
    if pa.types.is_dictionary(values.type):
        return compute(values.dictionary).take(values.indices)
    return compute(values)


def key_texts(keys: pa.Array) -> pa.Array:
    """Return record keys as strings; NULL for a key that is no UTF-8."""
    try:
        return pc.cast(keys, pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text_or_none(key) for key in keys.to_pylist()], pa.string())


def _text_or_none(key: bytes | None) -> str | None:
    try:
        return None if key is None else key.decode()
    except UnicodeDecodeError:
        return None


def header_maps(headers: pa.Array) -> pa.Array:
    """Return the headers of each record as a map. A repeated name has its last value, at the place where it came first.

    Args:
        headers: Lists of names and values, as Spark's Kafka source gives them; NULL for a record without headers.

    Returns:
        An array of type `HEADERS`, with an empty map for a record without headers.

    Example:
        >>> twice = [{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "a", "value": b"2"}]
        >>> header_maps(pa.array([twice, None], HEADERS)).to_pylist()
        [[{'key': 'a', 'value': b'2'}, {'key': 'b', 'value': None}], []]
    """
    headers = headers.cast(HEADERS)
    if headers.null_count == 0 and not _names_repeat(headers):
        return headers
    entries = ({each["key"]: each["value"] for each in record or ()} for record in headers.to_pylist())
    return pa.array([[{"key": name, "value": value} for name, value in each.items()] for each in entries], HEADERS)


def _names_repeat(headers: pa.Array) -> bool:
    """Tell whether a record has two headers with the same name."""
    names = headers.flatten().field("key").dictionary_encode()
    records = np.repeat(np.arange(len(headers)), pc.list_value_length(headers).to_numpy())
    pairs = records * (len(names.dictionary) + 1) + names.indices.to_numpy(zero_copy_only=False)
    return len(distinct_values(pairs)) < len(pairs)
