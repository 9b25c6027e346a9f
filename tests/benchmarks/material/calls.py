"""The events of the benchmarks with nested values: records of calls, each of a user, with a tag and an order."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from grouping.model.catalog import Stream, StreamColumn
from tests.benchmarks.material.quotes import PARTITIONS, send

__all__ = ["FLAT", "NESTED", "VARIANT", "flat_record", "nested_record", "publish", "stream", "tag"]

NESTED = {
    "body": "STRING",
    "tags": "ARRAY<STRING>",
    "attrs": "MAP<STRING, STRING>",
    "payload": "STRUCT<user: STRUCT<id: BIGINT, name: STRING>, items: ARRAY<STRUCT<sku: STRING, n: INT>>>",
}
VARIANT = NESTED | {"payload": "VARIANT"}
"""The same records, nobody having declared the content of a payload."""
FLAT = {
    "body": "STRING",
    **{f"tag{n}": "STRING" for n in range(3)},
    **{f"attr{n}": "STRING" for n in range(2)},
    "id": "BIGINT",
    "name": "STRING",
    **{name: kind for n in range(3) for name, kind in ((f"sku{n}", "STRING"), (f"n{n}", "INT"))},
}
"""The same values, each in a column of its own."""
_ENCODER = msgspec.json.Encoder()


def stream(stream_id: str, topic: str) -> Stream:
    """Return a stream of calls as the gateway would have registered it, read from the topic's beginning."""
    columns = tuple(StreamColumn(*column) for column in NESTED.items())
    offsets = {str(partition): 0 for partition in range(PARTITIONS)}
    return Stream(stream_id, "calls", columns, topic, "json", offsets, "2026-01-01T00:00:00Z")


def tag(number: int) -> str:
    """Return the tag of a number."""
    return f"t{number:06d}"


def publish(bootstrap: str, topic: str, count: int, users: int) -> None:
    """Write a number of calls of a number of users, about 300 bytes each, always the same."""
    send(bootstrap, topic, _records(count, users))


def _records(count: int, users: int) -> Iterator[tuple[str, bytes]]:
    for numbers in np.random.default_rng(1).integers(0, users, (count, 3)).tolist():
        yield str(numbers[0]), _ENCODER.encode(nested_record(*numbers))


def _body(user: int, order: int) -> str:
    return f'{{"user": "u{user:06d}", "text": "order {order:06d} has three lines, the last of them is a note"}}'


def nested_record(user: int, tagged: int, order: int) -> dict[str, object]:
    """Return a call in columns of `NESTED`."""
    return {
        "body": _body(user, order),
        "tags": ["call", tag(tagged), "eu"],
        "attrs": {"tier": "gold", "lang": "es"},
        "payload": {
            "user": {"id": user, "name": f"User {user:06d} of many"},
            "items": [{"sku": f"k{n}", "n": n} for n in range(3)],
        },
    }


def flat_record(user: int, tagged: int, order: int) -> dict[str, object]:
    """Return the same call in columns of `FLAT`."""
    return {
        "body": _body(user, order),
        "tag0": "call",
        "tag1": tag(tagged),
        "tag2": "eu",
        "attr0": "gold",
        "attr1": "es",
        "id": user,
        "name": f"User {user:06d} of many",
        **{name: value for n in range(3) for name, value in ((f"sku{n}", f"k{n}"), (f"n{n}", n))},
    }
