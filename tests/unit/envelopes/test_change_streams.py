"""Streams of changes: each record is an event, and tombstones are none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from gateway.testing import Stream as DeclaredStream
from grouping.model.catalog import Stream, StreamColumn
from spark_jobs.engine.decode.decode import decode
from tests.unit.envelopes.changes import bytes_of, decimal_schema, envelope, field, schema_of
from tests.unit.matching.event_batches import FIRST_OFFSET, SETTINGS, batch, header

Row = dict[str, Any]


def _stream(*columns: tuple[str, str, str], form: str = "debezium-json", **options: Any) -> Stream:
    declared = tuple(StreamColumn(name, kind, place) for name, kind, place in columns)
    made = Stream("s_1", "quotes", declared, "source", form, {"0": 0}, "")  # type: ignore[arg-type]
    return msgspec.structs.replace(made, **options)


CHANGES = _stream(
    ("op", "STRING", ""),
    ("old", "DECIMAL(10,2)", "'$.before.price'"),
    ("new", "DECIMAL(10,2)", "'$.after.price'"),
    ("at", "TIMESTAMP", "'$.source.ts_ms'"),
    ("name", "STRING", "'$.after.name'"),
    ("id", "INT", "KEY '$.id'"),
)


def _events(of: Stream, *records: tuple[bytes | None, bytes | None]) -> tuple[list[Row], list[str]]:
    """Return the events with their offsets from 0 as `_at`, and the details of dead letters."""
    keys, values = [key for key, _ in records], [value for _, value in records]
    events, letters = decode(batch(values, keys), of, SETTINGS)
    names = [column.name for column in of.columns]
    columns = [events.column(name).to_pylist() for name in names]
    offsets = events.column("_offset").to_pylist()
    rows = [
        dict(zip(names, row, strict=True)) | {"_at": offset - FIRST_OFFSET}
        for offset, *row in zip(offsets, *columns, strict=True)
    ]
    return rows, [] if letters is None else [header(row, "detail") for row in letters.to_pylist()]


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_event_has_the_operation_and_both_rows(wrapped: bool) -> None:
    """Bare or beside its schema; the time of the source is in milliseconds by Debezium's definition."""
    price = bytes_of if wrapped else lambda unscaled: f"{Decimal(unscaled).scaleb(-2)}"
    schema = schema_of(decimal_schema("price", 2), field("name", "string")) if wrapped else None
    change = {
        "op": "u", "before": {"price": price(150)},
        "after": {"price": price(-1), "name": "__debezium_unavailable_value"},
        "source": {"ts_ms": 1_500, "table": "t"},
    }  # fmt: skip
    key = b'{"id": 7}' if not wrapped else b'{"schema": {"type": "struct"}, "payload": {"id": 7}}'
    rows, letters = _events(CHANGES, (key, envelope(change, schema)))
    at = datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    expected = {"op": "u", "old": Decimal("1.50"), "new": Decimal("-0.01"), "at": at, "name": None, "id": 7, "_at": 0}
    assert ([expected], []) == (rows, letters)


def test_tombstones_are_no_events() -> None:
    """Neither events nor dead letters; the others keep their offsets."""
    change = b'{"op": "d", "before": null, "after": null}'
    values = [None, b"null", change, b'{"schema": null, "payload": null}', b"{}", b"{", b'{"op": "t"}']
    rows, letters = _events(CHANGES, *((b'{"id": 1}', value) for value in values))
    assert [(2, "d"), (6, "t")] == [(row["_at"], row["op"]) for row in rows]
    assert 1 == len(letters)


def test_a_bad_value_is_a_dead_letter_or_null() -> None:
    """In a strict stream the record is a dead letter that names the option; in a lenient one the column is NULL."""
    record = b'{"id": 1}', b'{"op": "c", "after": {"price": "1234", "name": 5}}'
    rows, letters = _events(CHANGES, record)
    assert not rows
    [detail] = letters
    assert detail.startswith('Column "new" of type DECIMAL(10,2) cannot hold the value at $.after.price: ')
    assert "decimals = 'string' or 'base64'" in detail
    lenient = msgspec.structs.replace(CHANGES, lenient=True)
    events, letters = decode(batch([record[1]], [record[0]]), lenient, SETTINGS)
    assert letters is None
    assert {"new": 1, "name": 1} == dict(events.misfits)
    assert [None] == events.column("new").to_pylist()


def test_the_options_of_a_stream() -> None:
    """`decimals` and `timestamps`, where records have no schema."""
    of = _stream(
        ("price", "DECIMAL(10,2)", "'$.after.price'"), ("at", "TIMESTAMP", "'$.after.at'"),
        decimals="base64", timestamps="micros",
    )  # fmt: skip
    rows, _ = _events(of, (None, envelope({"op": "c", "after": {"price": bytes_of(150), "at": 1_500_000}})))
    at = datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert [{"price": Decimal("1.50"), "at": at, "_at": 0}] == rows


def test_whole_rows_and_paths_into_them() -> None:
    """A column may be a whole row, and another one a part of it; MongoDB's row is JSON in a text."""
    of = _stream(
        ("after", "VARIANT", ""), ("row", "STRUCT<n: INT>", "'$.after'"), ("text", "STRING", "'$.after'"),
        ("n", "INT", "'$.after.n'"), ("k", "STRING", "KEY"),
    )  # fmt: skip
    expected = {"after": '{"n":1}', "row": {"n": 1}, "n": 1, "k": "x", "_at": 0}
    rows, letters = _events(of, (b"x", json.dumps({"op": "c", "after": '{"n": 1}'}).encode()))
    assert ([expected | {"text": '{"n": 1}'}], []) == (rows, letters)
    no_text = _stream(*((each.name, each.type_text, each.from_text) for each in of.columns if each.name != "text"))
    rows, letters = _events(no_text, (b"x", b'{"op": "c", "after": {"n": 1}}'))
    assert ([expected], []) == (rows, letters)


def test_the_whole_record_is_the_envelope() -> None:
    """`_value` has no schema around it."""
    events, _ = decode(batch([envelope({"op": "c"}, {"type": "struct"}), b'{"op": "r"}']), CHANGES, SETTINGS)
    assert ['{"op":"c"}', '{"op":"r"}'] == events.column("_value").to_pylist()


def test_maxwell_and_canal() -> None:
    """The change is the event; a record of Canal with several rows does not fit columns of one row."""
    of = _stream(
        ("type", "STRING", ""), ("price", "DECIMAL(8,2)", "'$.data.price'"), ("old", "DECIMAL(8,2)", "'$.old.price'"),
        ("ts", "TIMESTAMP", ""), form="maxwell-json",
    )  # fmt: skip
    record = b'{"type": "update", "ts": 1, "data": {"price": 2.5}, "old": {"price": 1234}}'
    rows, _ = _events(of, (None, record), (None, None))
    at = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert [{"type": "update", "price": Decimal("2.50"), "old": Decimal(1234), "ts": at, "_at": 0}] == rows
    of = _stream(
        ("type", "STRING", ""), ("n", "INT", "'$.data[0].n'"), ("es", "TIMESTAMP", ""), ("isDdl", "BOOLEAN", ""),
        form="canal-json",
    )  # fmt: skip
    one = b'{"type": "INSERT", "es": 1000, "isDdl": false, "data": [{"n": "7"}]}'
    two = b'{"type": "INSERT", "data": [{"n": "7"}, {"n": "8"}]}'
    rows, letters = _events(of, (None, one), (None, two), (None, b'{"type": "QUERY", "data": null}'))
    assert [("INSERT", 7, at, False), ("QUERY", None, None, None)] == [
        (row["type"], row["n"], row["es"], row["isDdl"]) for row in rows
    ]
    assert 1 == len(letters)
    assert "explode = '$.data[*]'" in letters[0]


def test_a_header_beside_a_change() -> None:
    """FROM HEADER is of the record, also behind tombstones that are left out."""
    of = _stream(("op", "STRING", ""), ("h", "STRING", "HEADER 'h'"))
    records = batch([None, b'{"op": "c"}'], headers=[(("h", b"0"),), (("h", b"1"),)])
    events, letters = decode(records, of, SETTINGS)
    assert (["1"], None) == (events.column("h").to_pylist(), letters)


def test_the_test_kit_has_streams_of_changes() -> None:
    """A whole CREATE STREAM declares one."""
    declared = DeclaredStream(
        "CREATE STREAM c (op STRING, p DECIMAL(5,1) FROM '$.after.p') WITH (topic = 'c', format = 'debezium-json',"
        " decimals = 'base64')"
    ).declared
    assert ("debezium-json", "base64") == (declared.encoding.form, declared.encoding.decimals)


@pytest.mark.parametrize("form", ["debezium-json", "maxwell-json", "canal-json"])
def test_blanks_around_a_record_change_nothing(form: str) -> None:
    """JSON allows blanks and line feeds before a value, in keys too."""
    of = _stream(("type", "STRING", "'$.type'"), ("op", "STRING", "'$.op'"), ("id", "INT", "KEY '$.id'"), form=form)
    value = b'{"op": "c", "type": "insert", "after": {"n": 1}, "data": {"n": 1}}'
    plain, _ = _events(of, (b'{"id": 1}', value))
    blank, letters = _events(of, (b' \t{"id": 1}\n', b"\n " + value + b"\r\n"))
    assert not letters
    assert plain == blank
    assert plain[0]["id"] == 1 and plain[0]["type"] == "insert"


def test_an_empty_envelope_on_two_lines_is_no_event() -> None:
    """An object without a field is passed over, whatever blanks are in it."""
    assert ([], []) == _events(CHANGES, (None, b"{\n\t}"))
