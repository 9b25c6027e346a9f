"""An index below 0 of a union or an enum is refused: by fastavro alone it would be the last branch or symbol."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from gateway.testing import Record, Stream, evaluate
from schemas.avro_columns import single_object_header
from schemas.avro_indexes import index_checked
from schemas.codec import MalformedCommand, decode_command
from schemas.single_object import SingleObject, load_schema
from tests.unit.worker.avro_records import record_schema

_SIDE = {"type": "enum", "name": "Side", "symbols": ["buy", "sell"]}
_SCHEMA = record_schema(
    {"x": "long", "y": ["null", "string"], "e": _SIDE, "z": ["null", {"type": "map", "values": ["Side", "null"]}]}
)
_BODY = b"\x0e\x02\x02a\x02\x02\x02\x02k\x00\x02\x00"
"""The values 7, 'a', 'sell' and {'k': 'sell'}."""
_INDEXES = (1, 4, 5, 9, 10)
"""The places of indexes in the body."""
_COLUMNS = "x BIGINT, y STRING, e STRING, z MAP<STRING, STRING>"
_READERS = {
    "raw": (_COLUMNS, f"framing = 'raw', schema = '{_SCHEMA}'", b""),
    "single-object": (_COLUMNS, f"schema = '{_SCHEMA}'", single_object_header(_SCHEMA)),
    "confluent": (_COLUMNS, f"framing = 'confluent', schema = '{_SCHEMA}'", bytes(4) + b"\x04"),
    "schemas": (_COLUMNS, f"framing = 'confluent', schemas = '{{\"4\": {_SCHEMA}}}'", bytes(4) + b"\x04"),
    "one column": ("x BIGINT", f"framing = 'raw', schema = '{_SCHEMA}'", b""),
}
"""By name, the columns of a stream, its options, and the bytes before a body."""


@pytest.mark.parametrize("reader", _READERS)
@pytest.mark.parametrize("text", [b"a", b"\xff"])
def test_an_index_below_0_is_a_dead_letter(reader: str, text: bytes) -> None:
    """In each framing, beside broken UTF-8, and in fields without a column."""
    columns, options, before = _READERS[reader]
    stream = Stream(f"CREATE STREAM s ({columns}) WITH (topic = 't', format = 'avro', {options})")
    body = _BODY.replace(b"a", text)
    bodies = [body, *(body[:place] + bytes([index]) + body[place + 1 :] for place in _INDEXES for index in (1, 3, 5))]
    good, *bad = evaluate("SELECT x FROM s", stream, [Record(before + each) for each in bodies])
    if text == b"a" or reader == "one column":
        assert {"x": 7} == good.result
    assert {"undecodable"} == {row.dead_letter for row in bad}
    if text == b"a":
        assert all("with the index -" in str(row.why) for row in bad)


def test_a_command_with_an_index_below_0_is_malformed() -> None:
    """The optional fields of a command are unions."""
    codec = SingleObject(load_schema("command"))
    value = codec.encode({"command_id": "1", "subscriber": "alice", "text": "SHOW CQS"})
    assert "alice" == decode_command(value[:-1] + b"\x02\x00").subscriber
    for index in (1, 3):
        with pytest.raises(MalformedCommand):
            decode_command(value[:-1] + bytes([index, 0]))


@pytest.mark.parametrize(
    "kind",
    [
        ["null", {"type": "record", "name": "Q", "fields": [{"name": "again", "type": ["null", "Q"]}]}],
        {"type": "string", "symbols": 5, "items": "none", "values": 1.5},
        {"type": "array", "items": {"type": "fixed", "name": "F", "size": 1, "fields": "none"}},
    ],
)
def test_attributes_that_avro_does_not_know_are_ignored(kind: Any) -> None:
    """Only those that belong to a type count, and a type may hold itself."""
    schema: Any = fastavro.parse_schema(json.loads(record_schema({"a": kind})))
    body = b"\x02\x02\x00" if isinstance(kind, list) else b"\x02a\x00"
    plain, checked = (
        fastavro.schemaless_reader(io.BytesIO(body), each, None) for each in (schema, index_checked(schema))
    )
    assert plain == checked
