"""Protobuf records: types, presence, framing, dead letters; and the check of a descriptor at CREATE STREAM."""

from __future__ import annotations

import random
import time
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.message_factory import GetMessageClass

from gateway.testing import Stream as CheckedStream
from gateway.testing import evaluate
from grouping.model.errors import InputError
from schemas.avro_columns import AvroMismatch
from schemas.avro_writers import id_header
from schemas.proto_columns import check_proto_columns, message_type
from spark_jobs.engine.decode.decode import decode
from tests.fuzz.mutations import broken_bytes
from tests.unit.matching.event_batches import SETTINGS, batch, header

KINDS = descriptor_pb2.FieldDescriptorProto
OPTIONAL, REPEATED = KINDS.LABEL_OPTIONAL, KINDS.LABEL_REPEATED


class _Message:
    """A message under construction."""

    def __init__(self, proto: Any) -> None:
        self.proto = proto

    def add(self, name: str, kind: int, of: str = "", label: int = OPTIONAL, *, optional: bool = False) -> _Message:
        number = len(self.proto.field) + 1
        field = self.proto.field.add(name=name, number=number, type=kind, label=label)
        if of:
            field.type_name = of
        if optional:
            field.proto3_optional = True
            field.oneof_index = len(self.proto.oneof_decl)
            self.proto.oneof_decl.add(name=f"_{name}")
        return self


def trade_file() -> Any:
    """Return a file with the messages ``x.Other``, ``x.Trade`` and ``x.Trade.Leg``."""
    imports = ["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"]
    file = descriptor_pb2.FileDescriptorProto(name="trade.proto", package="x", syntax="proto3", dependency=imports)
    side = file.enum_type.add(name="Side")
    for number, name in enumerate(("NONE", "BUY", "SELL")):
        side.value.add(name=name, number=number)
    _Message(file.message_type.add(name="Other")).add("a", KINDS.TYPE_INT32)
    trade = file.message_type.add(name="Trade")
    leg = trade.nested_type.add(name="Leg")
    _Message(leg).add("price", KINDS.TYPE_DOUBLE).add("inner", KINDS.TYPE_MESSAGE, ".x.Trade.Leg")
    entry = trade.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    _Message(entry).add("key", KINDS.TYPE_STRING).add("value", KINDS.TYPE_INT32)
    of_int = trade.nested_type.add(name="NumbersEntry")
    of_int.options.map_entry = True
    _Message(of_int).add("key", KINDS.TYPE_INT32).add("value", KINDS.TYPE_INT32)
    (
        _Message(trade)
        .add("symbol", KINDS.TYPE_STRING)
        .add("i", KINDS.TYPE_INT32)
        .add("u", KINDS.TYPE_UINT64)
        .add("l", KINDS.TYPE_SINT64, optional=True)
        .add("f", KINDS.TYPE_FLOAT)
        .add("b", KINDS.TYPE_BOOL)
        .add("raw", KINDS.TYPE_BYTES)
        .add("side", KINDS.TYPE_ENUM, ".x.Side")
        .add("at", KINDS.TYPE_MESSAGE, ".google.protobuf.Timestamp")
        .add("leg", KINDS.TYPE_MESSAGE, ".x.Trade.Leg")
        .add("legs", KINDS.TYPE_MESSAGE, ".x.Trade.Leg", REPEATED)
        .add("ns", KINDS.TYPE_INT32, "", REPEATED)
        .add("tags", KINDS.TYPE_MESSAGE, ".x.Trade.TagsEntry", REPEATED)
        .add("maybe", KINDS.TYPE_MESSAGE, ".google.protobuf.Int64Value")
        .add("numbers", KINDS.TYPE_MESSAGE, ".x.Trade.NumbersEntry", REPEATED)
        .add("from", KINDS.TYPE_STRING)
    )
    return file


def encoded(*files: Any) -> str:
    """Return a descriptor of files."""
    return b64encode(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()).decode()


DESCRIPTOR = encoded(trade_file())
Trade = GetMessageClass(message_type(DESCRIPTOR, "x.Trade"))
COLUMNS = """symbol STRING, i INT, u DECIMAL(20,0), l BIGINT, f FLOAT, b BOOLEAN, raw BINARY, side STRING, at TIMESTAMP,
    leg STRUCT<price: DOUBLE, inner: STRUCT<price: DOUBLE>>, legs ARRAY<STRUCT<price: DOUBLE>>, ns ARRAY<BIGINT>,
    tags MAP<STRING, INT>, maybe BIGINT, "from" STRING"""


def declared(columns: str = COLUMNS, message: str = "x.Trade", descriptor: str = DESCRIPTOR, more: str = "") -> Any:
    """Return a stream of Protobuf records."""
    options = f"topic = 't', format = 'protobuf', descriptor = '{descriptor}', message = '{message}'{more}"
    return CheckedStream(f"CREATE STREAM q ({columns}) WITH ({options})")


def rows(stream: Any, values: list[bytes | None]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the events of records, and the details of the dead letters."""
    events, letters = decode(batch(values), stream.declared, SETTINGS)
    found = events.count and [
        dict(zip((column.name for column in events.stream.columns), each, strict=True))
        for each in zip(*(events.values(column.name) for column in events.stream.columns), strict=True)
    ]
    for column in events.stream.columns:
        assert events.count == len(events.column(column.name))
    return found or [], [] if letters is None else [header(row, "detail") for row in letters.to_pylist()]


def test_every_type() -> None:
    """Each type of a field gives its exact value; a field without presence has its default, others are NULL."""
    trade = Trade(symbol="é", i=-5, u=2**64 - 1, l=-(2**63), f=0.5, b=True, raw=b"\xff", side=2, ns=[1, 2])
    trade.at.FromDatetime(datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC))
    trade.leg.inner.price = 1.5
    trade.legs.add(price=2.5)
    trade.tags["a"] = 7
    trade.maybe.value = 0
    setattr(trade, "from", "here")
    found, letters = rows(declared(), [trade.SerializeToString(), b""])
    assert [] == letters
    assert {
        "symbol": "é", "i": -5, "u": Decimal(2**64 - 1), "l": -(2**63), "f": 0.5, "b": True, "raw": b"\xff",
        "side": "SELL", "at": datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC),
        "leg": {"price": 0.0, "inner": {"price": 1.5}}, "legs": [{"price": 2.5}], "ns": [1, 2], "tags": {"a": 7},
        "maybe": 0, "from": "here",
    } == found[0]  # fmt: skip
    assert {
        "symbol": "", "i": 0, "u": Decimal(0), "l": None, "f": 0.0, "b": False, "raw": b"", "side": "NONE",
        "at": None, "leg": None, "legs": [], "ns": [], "tags": {}, "maybe": None, "from": "",
    } == found[1]  # fmt: skip


def _timestamp(seconds: int, nanos: int) -> bytes:
    trade = Trade()
    trade.at.seconds, trade.at.nanos = seconds, nanos
    return trade.SerializeToString()


@pytest.mark.parametrize(
    ("columns", "value", "detail"),
    [
        (COLUMNS, None, "The record has no value."),
        (COLUMNS, b"\xff\xff", "The value is no Protobuf message x.Trade."),
        (COLUMNS, b"\x0a\x05a", "The value is no Protobuf message x.Trade."),
        (COLUMNS, b"\x0a\x01\xff", "The value is no Protobuf message x.Trade."),
        ("i TINYINT", Trade(i=128).SerializeToString(), "the number is out of range"),
        ("u BIGINT", Trade(u=2**63).SerializeToString(), "the number is out of range"),
        ("at TIMESTAMP", _timestamp(2**60, 0), "the time is beyond the years 1 to 9999"),
        ("at TIMESTAMP", _timestamp(0, 10**9), "its nanoseconds are out of range"),
        ("at TIMESTAMP", _timestamp(0, -1), "its nanoseconds are out of range"),
        ("ns ARRAY<TINYINT>", Trade(ns=[1, 300]).SerializeToString(), 'Field "ns[1]" of type TINYINT cannot'),
    ],
)
def test_a_bad_record_is_a_dead_letter(columns: str, value: bytes | None, detail: str) -> None:
    """The detail says what does not fit, and the neighbours are events."""
    good = Trade(symbol="a").SerializeToString()
    found, letters = rows(declared(columns), [good, value, good])
    assert (2, 1) == (len(found), len(letters))
    assert detail in letters[0]


def test_an_unknown_number_of_an_enum_is_its_text() -> None:
    """A producer with a later descriptor may write numbers that have no name here."""
    assert [{"side": "9"}] == rows(declared("side STRING"), [Trade(side=9).SerializeToString()])[0]


def test_wide_elements_are_bounded() -> None:
    """Elements of two bytes with many fields cannot fill the memory."""
    file = descriptor_pb2.FileDescriptorProto(name="w.proto", package="w", syntax="proto3")
    wide = _Message(file.message_type.add(name="Wide"))
    for number in range(300):
        wide.add(f"f{number}", KINDS.TYPE_INT32)
    _Message(file.message_type.add(name="R")).add("some", KINDS.TYPE_MESSAGE, ".w.Wide", REPEATED)
    fields = ", ".join(f"f{number}: INT" for number in range(300))
    stream = declared(f"some ARRAY<STRUCT<{fields}>>", "w.R", encoded(file))
    found, letters = rows(stream, [b"\x0a\x00" * 100_000, b"\x0a\x00" * 10])
    assert (10, 1) == (len(found[0]["some"]), len(letters))
    assert "the record holds far more values than bytes" in letters[0]


def test_framing() -> None:
    """Behind the schema id, the place of the message in its schema is checked; any id is read."""
    framed = ", framing = 'confluent'"
    body = Trade(symbol="a").SerializeToString()
    stream = declared("symbol STRING", more=framed)
    found, letters = rows(stream, [id_header(7) + b"\x02\x02" + body, id_header(7) + b"\0" + body, b"\0\0", body])
    assert [{"symbol": "a"}] == found
    assert "The record is another message of its schema than x.Trade." == letters[0]
    assert 2 == letters.count("The value does not begin with a zero byte and four bytes of a schema id.")
    leg = declared("price DOUBLE", "x.Trade.Leg", more=framed)
    price = b"\x09" + bytes(6) + b"\xf8\x3f"
    assert [{"price": 1.5}] == rows(leg, [id_header(1) + b"\x04\x02\x00" + price])[0]
    first = declared("a INT", "x.Other", more=framed)
    values = [id_header(1) + index + b"\x08\x05" for index in (b"\0", b"\x02\x00")]
    assert [{"a": 5}, {"a": 5}] == rows(first, values)[0]


def test_the_test_kit_writes_rows() -> None:
    """Rows of a test become messages."""
    for more in ("", ", framing = 'confluent'"):
        [row] = evaluate("SELECT symbol, tags FROM q WHERE i > 1", declared(more=more), [{"symbol": "a", "i": 2}])
        assert {"symbol": "a", "tags": {}} == row.result


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("nope INT", 'column "nope" is not in the message'),
        ("i STRING", "The field is of type INT there."),
        ("symbol INT", "The field is of type STRING there."),
        ("ns INT", "The field is of type ARRAY<INT> there."),
        ("leg STRING", "The field is of type STRUCT<> there."),
        ("leg STRUCT<price: INT>", "The field is of type STRUCT<price: DOUBLE> there."),
        ("numbers MAP<STRING, INT>", "The field has a type that no column can hold there."),
        ("at BIGINT", "The field is of type TIMESTAMP there."),
        ("u INT", "The field is of type DECIMAL(20,0) there."),
        ("maybe STRING", "The field is of type BIGINT there."),
    ],
)
def test_other_columns_are_refused(columns: str, words: str) -> None:
    """A column that the message lacks, or has in another type, is reported in full."""
    with pytest.raises(InputError) as refused:
        declared(columns)
    assert "stream-mismatch" == refused.value.code
    assert words in refused.value.line


@pytest.mark.parametrize(
    ("descriptor", "message", "words"),
    [
        ("", "x.Trade", "The descriptor has 0 files"),
        ("????", "x.Trade", "The descriptor is no FileDescriptorSet in base64"),
        ("AAAA", "x.Trade", "The descriptor is no FileDescriptorSet in base64"),
        (DESCRIPTOR, "x.Trad", 'The descriptor has the messages: "x.Other", "x.Trade".'),
        (DESCRIPTOR, "", "The descriptor has the messages"),
    ],
)
def test_refused_descriptors(descriptor: str, message: str, words: str) -> None:
    """The refusal says what is missing."""
    with pytest.raises(AvroMismatch) as refused:
        check_proto_columns(descriptor, message, [])
    assert words in refused.value.detail


def _missing(file: Any) -> None:
    file.dependency.append("other.proto")


def _circle(file: Any) -> None:
    file.dependency.append("trade.proto")


def _bad_type(file: Any) -> None:
    file.message_type[0].field.add(name="z", number=9, type=KINDS.TYPE_MESSAGE, label=OPTIONAL, type_name=".x.Nope")


def _twice(file: Any) -> None:
    file.message_type.add(name="Trade")


@pytest.mark.parametrize("change", [_missing, _circle, _bad_type, _twice])
def test_broken_files_are_refused(change: Callable[[Any], None]) -> None:
    """A file that Protobuf does not take, or that is missing, is named."""
    file = trade_file()
    change(file)
    with pytest.raises(AvroMismatch, match='the option "descriptor" cannot be used') as refused:
        check_proto_columns(encoded(file), "x.Trade", [])
    assert refused.value.detail.startswith('File "')


def test_files_in_any_order() -> None:
    """A file may come before the files that it imports, and may have Protobuf's own files beside it."""
    file = trade_file()
    file.dependency.append("late.proto")
    late = descriptor_pb2.FileDescriptorProto(name="late.proto", dependency=["google/protobuf/any.proto"])
    check_proto_columns(encoded(file, late), "x.Trade", [("i", "INT")])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("format = 'protobuf', message = 'x'", 'option "descriptor" is missing'),
        ("format = 'protobuf', descriptor = 'x'", 'option "message" is missing'),
        ("format = 'json', message = 'x'", 'option "message" is for Protobuf only'),
        (
            "format = 'protobuf', descriptor = 'x', message = 'x', framing = 'single-object'",
            "is not for format = 'protobuf'",
        ),
        ("format = 'protobuf', descriptor = 'x', message = 'x', lenient = true", '"lenient" is for JSON only'),
        ("format = 'protobuf', descriptor = 'x', message = 'x', schema = '{}'", '"schema" is for Avro only'),
    ],
)
def test_options_that_contradict_each_other(options: str, words: str) -> None:
    """The refusal names the option."""
    with pytest.raises(InputError, match=words):
        CheckedStream(f"CREATE STREAM q (x INT) WITH (topic = 't', {options})")


def test_broken_descriptors_and_records() -> None:
    """Each broken descriptor is refused or read, each broken record is an event or a dead letter, in bounded time."""
    rng, began = random.Random(43), time.monotonic()
    plain = descriptor_pb2.FileDescriptorSet(file=[trade_file()]).SerializeToString()
    for _ in range(300):
        try:
            check_proto_columns(b64encode(broken_bytes(rng, plain)).decode(), "x.Trade", [("i", "INT")])
        except AvroMismatch as error:
            assert len(error.detail) < 2_000
    trade = Trade(symbol="abc", i=7, ns=[1, 2, 3], tags={"a": 1})
    stream = declared()
    values = [broken_bytes(rng, trade.SerializeToString()) for _ in range(1_000)]
    found, letters = rows(stream, values)
    assert len(values) == len(found) + len(letters)
    assert time.monotonic() - began < 30


def test_large_descriptors_take_linear_time() -> None:
    """Many messages, fields and files are read once."""
    files = []
    for number in range(200):
        imports = [f"f{number - 1}.proto"] if number else []
        file = descriptor_pb2.FileDescriptorProto(
            name=f"f{number}.proto", package="p", syntax="proto3", dependency=imports
        )
        message = _Message(file.message_type.add(name=f"M{number}"))
        for field in range(20):
            message.add(f"a{field}", KINDS.TYPE_INT32)
        files.append(file)
    began = time.monotonic()
    check_proto_columns(encoded(*reversed(files)), "p.M199", [("a3", "INT")])
    assert time.monotonic() - began < 5
