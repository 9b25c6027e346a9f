"""Avro bodies that hold far more than their bytes, or nest without end, are dead letters and cost nothing."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.avro_columns import AvroMismatch, check_avro_columns, reading_schema
from schemas.avro_limits import MAX_DEPTH, body_check
from schemas.codec import MalformedCommand, decode_command
from schemas.single_object import SingleObject, load_schema
from spark_jobs.engine.decode.decode import decode
from tests.unit.matching.event_batches import SETTINGS, batch, header, stream
from tests.unit.worker.avro_records import record_schema

_COLUMN = {"name": "i", "type": "int"}
_EMPTY = {"type": "record", "name": "Empty", "fields": []}
_NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
_OWN = {"type": "record", "name": "Own", "fields": [{"name": "a", "type": "Own"}]}
_PAIR = {"type": "record", "name": "Pair", "fields": [_COLUMN, {"name": "x", "type": "double"}]}
_TREE = {"type": "record", "name": "Tree", "fields": [{"name": "below", "type": {"type": "array", "items": "Tree"}}]}


def _schema(*kinds: Any) -> str:
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(kinds)]
    return json.dumps({"type": "record", "name": "Event", "fields": [_COLUMN, *fields]})


def _number(value: int) -> bytes:
    """Return a number as Avro writes it."""
    value = (value << 1) ^ (value >> 63)
    written = b""
    while value > 0x7F:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def _doubling(levels: int) -> dict[str, Any]:
    """Return a record without a byte and with 2^levels values."""
    record: dict[str, Any] = {"type": "record", "name": "L0", "fields": [{"name": "a", "type": "null"}]}
    for level in range(1, levels):
        fields = [{"name": "a", "type": record}, {"name": "b", "type": f"L{level - 1}"}]
        record = {"type": "record", "name": f"L{level}", "fields": fields}
    return record


def _chain(length: int) -> list[dict[str, Any]]:
    """Return types that each hold the type before, although none of their JSON is nested."""
    inner: Any = "int"
    chain = []
    for number in range(length):
        chain.append({"type": "record", "name": f"C{number}", "fields": [{"name": "a", "type": inner}]})
        inner = f"C{number}"
    return chain


_HUGE = [10**8, 2**62, -(10**8), -(2**63)]
HOSTILE = {
    "a list of 5,000 links": (_schema(_NODE), b"\x02" * 5_000 + b"\x00"),
    "a list of 500,000 links": (_schema(_NODE), b"\x02" * 500_000 + b"\x00"),
    "a tree of 5,000 levels": (_schema(_TREE), b"\x02" * 5_000 + b"\x00" * 5_000),
    "a record that holds itself": (_schema(_OWN), b""),
    **{f"{size} nulls": (_schema({"type": "array", "items": "null"}), _number(size) + b"\x00\x00") for size in _HUGE},
    **{f"{size} records": (_schema({"type": "array", "items": _EMPTY}), _number(size) + b"\x00\x00") for size in _HUGE},
    "a map's values": (_schema({"type": "map", "values": _doubling(12)}), _number(10**4) + b"\x00" * 10_001),
    "a schema that doubles": (_schema(_doubling(30)), b""),
    "a chain of records": (_schema(*_chain(3_000)), bytes(3_000)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_body_that_holds_too_much_is_a_dead_letter(name: str) -> None:
    """The body is refused before decoding, and a good record of the same schema beside it is not."""
    schema, rest = HOSTILE[name]
    source = stream("i INT", form="avro", schema=schema, framing="raw")
    events, dead = decode(batch([b"\x02" + rest]), source, SETTINGS)

    assert (0, 1) == (events.count, dead.num_rows)


@pytest.mark.parametrize(
    ("kind", "rest"),
    [
        (_NODE, b"\x02" * (MAX_DEPTH - 2) + b"\x00"),
        (_TREE, b"\x04\x00\x00\x00"),
        ({"type": "array", "items": "null"}, _number(1_000) + b"\x00"),
        ({"type": "array", "items": _EMPTY}, _number(-1_000) + b"\x00\x00"),
    ],
)
def test_what_such_schemas_hold_in_measure_is_read(kind: Any, rest: bytes) -> None:
    """A schema is not refused for the possible size of its bodies."""
    source = stream("i INT", form="avro", schema=_schema(kind), framing="raw")
    events, dead = decode(batch([b"\x0e" + rest]), source, SETTINGS)

    assert ([7], None) == (events.column("i").to_pylist(), dead)


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "int"},
        {"type": "map", "values": {"type": "array", "items": ["null", "boolean"]}},
        {"type": "array", "items": _PAIR},
        ["null", {"type": "fixed", "name": "F", "size": 16}],
    ],
)
def test_ordinary_schemas_are_not_checked(kind: Any) -> None:
    """Records of a schema whose bodies are bounded by their bytes cost nothing more."""
    assert body_check(reading_schema(_schema(kind), ["i"])) is None
    assert body_check(load_schema("command")) is None


@pytest.mark.parametrize("size", [*_HUGE, -1, 2**31, 2**63 - 1])
def test_a_command_of_hostile_lengths_is_malformed(size: int) -> None:
    """Whatever length a command's body claims, reading stops at its end."""
    header = SingleObject(load_schema("command")).header
    texts = b"\x02a" * 3
    for body in (_number(size), b"\x02a" + _number(size), texts + _number(size), texts + b"\x00\x02" + _number(size)):
        with pytest.raises(MalformedCommand):
            decode_command(header + body)


def test_a_schema_nested_too_deep_is_refused() -> None:
    """The gateway refuses a schema that the evaluator's stack might not bear."""
    kind: Any = "int"
    for _ in range(MAX_DEPTH):
        kind = {"type": "array", "items": kind}
    with pytest.raises(AvroMismatch) as refused:
        check_avro_columns(_schema(kind), [("i", "INT")])
    assert f"The schema is nested deeper than {MAX_DEPTH} levels." == refused.value.detail


_PRIMITIVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "string", "bytes"])


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda values: {"type": "map", "values": values}, inner)
        | inner.filter(lambda kind: kind != "null" and not isinstance(kind, list)).map(lambda kind: ["null", kind])
    )


_KINDS = st.recursive(_PRIMITIVES, _containers, max_leaves=4)


@given(kinds=st.lists(_KINDS, max_size=3), body=st.binary(max_size=40))
def test_the_check_reads_as_the_decoder_does(kinds: list[Any], body: bytes) -> None:
    """A body that passes the check is read or refused by fastavro, and passes again when rewritten."""
    schema = fastavro.parse_schema(json.loads(_schema(_NODE, *kinds)))
    check = body_check(schema)
    try:
        check(body, 0)
    except (ValueError, EOFError):
        return
    try:
        again = fastavro.schemaless_reader(io.BytesIO(body), schema, None)
    except UnicodeDecodeError:
        return
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, again)
    check(written.getvalue(), 0)


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("float", b"\0\0", "it is cut short"),
        ("string", b"\x08ab", "it is cut short"),
        ("string", b"", "it is cut short"),
        (["null", "long"], b"\x04", "it names the branch of a union with the index 2, and there are 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "it names the symbol of an enum with the index 1"),
        (["null", "long"], b"\x01\x02", "it names the branch of a union with the index -1, and there are 2"),
        (
            {"type": "array", "items": ["null", "long"]},
            b"\x02\x03\0",
            "it names the branch of a union with the index -2",
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01", "it names the symbol of an enum with the index -1"),
    ],
)
def test_a_body_that_does_not_fit_the_schema_names_the_field(kind: Any, body: bytes, reason: str) -> None:
    """Each replay has the same detail."""
    of = stream("x BIGINT", form="avro", framing="raw", schema=record_schema({"x": "long", "y": kind}))
    _, dead = decode(batch([b"\x02" + body]), of, SETTINGS)
    detail = header(dead.to_pylist()[0], "detail")
    assert detail.startswith(f'The value does not fit the Avro schema at field "y": {reason}')
