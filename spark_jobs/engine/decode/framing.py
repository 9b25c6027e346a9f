"""The five bytes before a body that name its schema (`framing = 'confluent'`)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.catalog import Stream
from schemas.avro_writers import CONFLUENT_BYTES

__all__ = ["NO_SCHEMA_ID", "bodies", "has_framed_json", "schema_ids"]

_END = 2**31 - 1
"""An index after the end of every value, because Arrow cannot slice bytes without an end."""
NO_SCHEMA_ID = "The value does not begin with a zero byte and four bytes of a schema id."


def has_framed_json(stream: Stream) -> bool:
    """Tell whether a stream's records are five bytes that name a schema, and then JSON."""
    return stream.format == "json" and stream.framing == "confluent"


def bodies(values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Return the bodies of values, and by row the faults of values that do not begin with the five bytes.

    A value without these bytes is NULL in the result.

    Example:
        >>> found, faults = bodies(pa.array([bytes(5) + b"{}", b"{}", None], pa.binary()))
        >>> found.to_pylist(), list(faults)
        ([b'{}', None, None], [1])
    """
    headers = pc.binary_slice(values, 0, CONFLUENT_BYTES)
    framed = pc.and_(pc.starts_with(headers, b"\0"), pc.equal(pc.binary_length(headers), CONFLUENT_BYTES))
    framed = pc.fill_null(framed, False)
    found = pc.if_else(framed, pc.binary_slice(values, CONFLUENT_BYTES, _END), pa.scalar(None, values.type))
    wrong = pc.indices_nonzero(pc.and_(values.is_valid(), pc.invert(framed))).to_pylist()
    return found, dict.fromkeys(wrong, NO_SCHEMA_ID)


def schema_ids(values: pa.Array) -> list[int]:
    """Return the distinct ids of the schemas of records, in the order of their first records.

    Example:
        >>> schema_ids(pa.array([bytes([0, 0, 0, 1, 2, 9]), b"?", bytes(5), bytes([0, 0, 0, 1, 2])], pa.binary()))
        [258, 0]
    """
    headers = pc.unique(pc.binary_slice(values, 0, CONFLUENT_BYTES)).to_pylist()
    return [
        int.from_bytes(each, "big")
        for each in headers
        if each is not None and len(each) == CONFLUENT_BYTES and not each[0]
    ]
