"""Tables of changes: the row of a key after some records, in a replica that reads them in batches of any size."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.catalog import StreamColumn
from grouping.model.table import Table
from spark_jobs.engine.operators.lookup_join.changes import decode_changes
from spark_jobs.engine.operators.lookup_join.replica import Replica
from spark_jobs.engine.rows.events import arrow_type
from tests.unit.matching.event_batches import header
from tests.unit.replica.table_records import SETTINGS, MemoryLog, Record, batch_of, table

PEOPLE = table("id STRING", "name STRING", "photo BINARY", "n INT", key=["id"], form="debezium-json")
Row = dict[str, Any]

_UNAVAILABLE = "__debezium_unavailable_value"
_PROBES: dict[str, list[Any]] = {
    "STRING": ["a", "b", "c", '"a"', '{"$oid": "5f"}', '{"x": 1}', "[1]", "7", '"a', "{"],
    "INT": [1, 2, 3, 4],
    "DATE": [20778],
}
"""By type of the key, the keys that tests use, in their order."""


def _debezium(op: str, before: Row | None = None, after: Row | None = None) -> Record:
    return b"k", json.dumps({"op": op, "before": before, "after": after}).encode()


def _rows(of: Table, log: MemoryLog, pins: list[dict[int, int]]) -> list[list[Row]]:
    """Return the rows at each pin that have the keys a, b and so on; no record may be a dead letter."""
    letters: list[Any] = []
    replica = Replica(of, log, SETTINGS, letters.append)
    shown = []
    for pin in pins:
        view = replica.at(pin)
        kind = arrow_type(view.type_of(of.key[0]))
        probes = pa.array(_PROBES[str(view.type_of(of.key[0]))], kind)
        _, rows = view.find(of.key, [probes])
        assert view.count == rows.size
        columns = [view.take(column.name, rows).to_pylist() for column in of.columns]
        names = [column.name for column in of.columns]
        shown.append([dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)])
    assert not letters
    return shown


def _last(of: Table, *records: Record) -> list[Row]:
    log = MemoryLog([dict(enumerate(records))])
    return _rows(of, log, [{0: len(records)}])[0]


def _details(of: Table, *records: Record, partitions: int = 1) -> list[str]:
    batch = batch_of([(0, offset, record) for offset, record in enumerate(records)])
    _, letters = decode_changes(batch, of, SETTINGS, partitions)
    return [] if letters is None else [header(row, "detail") for row in letters.to_pylist()]


def test_a_column_that_was_not_sent_keeps_its_value() -> None:
    """The placeholder stands for texts and bytes; the row's other columns are set."""
    photo = b64encode(b"png").decode()
    placeholder = b64encode(_UNAVAILABLE.encode()).decode()
    first = {"id": "a", "name": "Ann", "photo": photo, "n": 1}
    found = _last(
        PEOPLE,
        _debezium("c", after=first),
        _debezium("u", after={"id": "a", "name": _UNAVAILABLE, "photo": placeholder, "n": 2}),
        _debezium("u", before={"id": "a"}, after={"id": "a", "name": _UNAVAILABLE, "photo": None, "n": 3}),
    )
    assert [{"id": "a", "name": "Ann", "photo": None, "n": 3}] == found


def test_without_a_row_before_the_column_is_null() -> None:
    """Its value is unknown: the key is new, or its row was removed."""
    found = _last(
        PEOPLE,
        _debezium("c", after={"id": "a", "name": "Ann"}),
        _debezium("d", before={"id": "a"}),
        _debezium("c", after={"id": "a", "name": _UNAVAILABLE, "n": 1}),
        _debezium("u", after={"id": "b", "name": _UNAVAILABLE, "n": 2}),
    )
    assert [("a", None, 1), ("b", None, 2)] == [(row["id"], row["name"], row["n"]) for row in found]


@pytest.mark.parametrize(
    "value",
    [[_UNAVAILABLE], list(_UNAVAILABLE.encode()), {_UNAVAILABLE: _UNAVAILABLE}],
    ids=["texts", "numbers", "map"],
)
def test_placeholders_of_arrays_and_maps(value: Any) -> None:
    """Debezium writes arrays and maps that were not sent in forms of their own."""
    kind = (
        "MAP<STRING, STRING>"
        if isinstance(value, dict)
        else f"ARRAY<{'INT' if isinstance(value[0], int) else 'STRING'}>"
    )
    of = table("id STRING", f"tags {kind}", key=["id"], form="debezium-json")
    kept = {"x": "y"} if isinstance(value, dict) else [7] if isinstance(value[0], int) else ["x"]
    found = _last(of, _debezium("c", after={"id": "a", "tags": kept}), _debezium("u", after={"id": "a", "tags": value}))
    assert [[{"key": "x", "value": "y"}] if isinstance(kept, dict) else kept] == [row["tags"] for row in found]


def _expected(records: list[Record]) -> list[Row]:
    rows: dict[str, Row] = {}
    for _, value in records:
        change = json.loads(value or b"{}")
        before, after = change["before"], change["after"]
        if change["op"] == "t":
            rows.clear()
        old = rows.get(after["id"]) if after else None
        if before:
            rows.pop(before["id"], None)
        if after:
            name = after["name"]
            kept = (old or {}).get("name") if name == _UNAVAILABLE else name
            rows[after["id"]] = {"id": after["id"], "name": kept, "photo": None, "n": after["n"]}
    return [rows[key] for key in sorted(rows)]


def _some_record(rng: random.Random) -> Record:
    key, kind = rng.choice("abc"), rng.random()
    if kind < 0.1:
        return _debezium("t")
    if kind < 0.3:
        return _debezium("d", before={"id": key})
    after = {"id": key, "name": rng.choice([_UNAVAILABLE, _UNAVAILABLE, "Ann", "Bob", None]), "n": rng.randrange(9)}
    return _debezium("u", before={"id": key} if rng.random() < 0.3 else None, after=after)


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_rows_are_those_of_the_records_one_by_one(seed: int) -> None:
    """Truncates, removals and values that were not sent, at every pin and however the topic is cut into batches."""
    rng = random.Random(seed)
    records = [_some_record(rng) for _ in range(rng.randint(1, 25))]
    log = MemoryLog([dict(enumerate(records))], rng)
    ends = sorted({rng.randint(0, len(records)) for _ in range(3)} | {len(records)})
    shown = _rows(PEOPLE, log, [{0: end} for end in ends])
    assert [_expected(records[:end]) for end in ends] == shown


def test_truncate_needs_one_partition() -> None:
    """With several partitions the rows before it are unknown, and the dead letter says so."""
    assert [] == _details(PEOPLE, _debezium("t"))
    [detail] = _details(PEOPLE, _debezium("t"), partitions=2)
    assert "Give the topic one partition." in detail


def test_tombstones_and_empty_envelopes_are_passed_over() -> None:
    """A tombstone follows each delete, as the converter of the connector writes it."""
    row = {"id": "a", "name": "Ann", "photo": None, "n": 1}
    empty = [None, b"null", b'{"schema": null, "payload": null}', b'{"payload":null}', b"{}"]
    assert [row] == _last(PEOPLE, _debezium("c", after=row), *((b"a", value) for value in empty))


@pytest.mark.parametrize(
    "key",
    [
        b"a", b'"a"', b'{"id": "a"}', b'{"id": "a", "more": 1}',
        b'{"schema": {"type": "struct", "fields": [{"type": "string", "field": "id"}]}, "payload": {"id": "a"}}',
        b'{"schema": {"type": "string"}, "payload": "a"}',
    ],
)  # fmt: skip
def test_the_forms_of_a_key(key: bytes) -> None:
    """A delete without the row before goes by the key; so does a record without a value of a JSON table."""
    row = {"id": "a", "name": "Ann", "photo": None, "n": 1}
    other = row | {"id": "b"}
    delete = key, b'{"op": "d", "before": null, "after": null}'
    assert [other] == _last(PEOPLE, _debezium("c", after=row), _debezium("c", after=other), delete)
    plain = table("id STRING", "n INT", key=["id"])
    assert [] == _last(plain, (key, b'{"id": "a", "n": 1}'), (key, None))


def test_keys_in_a_form_of_their_own_are_texts() -> None:
    """A JSON text without the key's column is the key itself."""
    plain = table("id STRING", "n INT", key=["id"])
    for text in ('{"x": 1}', "[1]", "7", '"a', "{"):
        assert [] == _last(plain, (b"k", json.dumps({"id": text}).encode()), (text.encode(), None))


def test_a_key_is_read_by_its_schema() -> None:
    """A DATE is a number of days in the key, too."""
    of = table("day DATE", "n INT", key=["day"], form="debezium-json")
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "day", "name": "io.debezium.time.Date"}]}
    key = json.dumps({"schema": schema, "payload": {"day": 20778}}).encode()
    assert [] == _last(of, (key, b'{"op": "c", "after": {"day": 20778, "n": 1}}'), (key, b'{"op": "d"}'))


def test_a_delete_that_names_no_row_is_a_dead_letter() -> None:
    """Neither the row before nor a key that has the columns."""
    numbers = table("n INT", key=["n"], form="debezium-json")
    details = _details(numbers, (None, b'{"op": "d"}'), (b"7", b'{"op": "d"}'), (b'{"m": 7}', b'{"op": "d"}'))
    assert 'The record has neither a "before" nor a key.' == details[0]
    assert details[1].startswith('The record has no "before", and its key names no row. ')
    assert 3 == len(details)


def _keyed(place: str, form: str = "json") -> Table:
    base = table("id STRING", "n INT", key=["id"], form=form)
    columns = (StreamColumn("id", "STRING", place), StreamColumn("n", "INT"))
    return Table(base.table_id, base.name, columns, ("id",), base.topic, form, "")


def test_the_primary_key_from_the_records_key() -> None:
    """FROM KEY is the whole key, FROM KEY '$.id' a field in it; the value needs no such field."""
    assert [{"id": "a", "n": 2}] == _last(
        _keyed("KEY"), (b"a", b'{"n": 1}'), (b"b", b'{"n": 1}'), (b"b", None), (b"a", b'{"n": 2}')
    )
    assert [{"id": '"a"', "n": 1}] == _last(_keyed("KEY"), (b'"a"', b'{"n": 1}'), (b"a", None))
    of = _keyed("KEY '$.id'")
    assert [] == _last(of, (b'{"id": "a"}', b'{"n": 1}'), (b'{"id": "a", "x": 1}', None))
    wrapped = b'{"schema": {"type": "struct"}, "payload": {"id": "a"}}'
    of = _keyed("KEY '$.id'", "debezium-json")
    assert [{"id": "a", "n": 1}] == _last(
        of, (wrapped, b'{"op": "c", "after": {"n": 1}}'), (b'{"id": "b"}', b'{"op": "d"}')
    )
    assert ['Column "id" of the PRIMARY KEY is NULL.'] == _details(_keyed("KEY"), (None, b'{"n": 1}'))


def test_a_plain_table_with_a_key_reads_plain_values() -> None:
    """A number is no DATE there, decimal text has one meaning, and Debezium's placeholder is a text like another."""
    columns = (
        StreamColumn("id", "STRING", "KEY"),
        StreamColumn("day", "DATE"),
        StreamColumn("p", "DECIMAL(9,2)"),
        StreamColumn("name", "STRING"),
    )
    of = Table("t_1", "plain", columns, ("id",), "plain", "json", "")
    [row] = _last(of, (b"a", json.dumps({"p": "1234", "name": _UNAVAILABLE}).encode()))
    assert ("1234.00", _UNAVAILABLE) == (str(row["p"]), row["name"])
    assert 1 == len(_details(of, (b"a", b'{"day": 20778}')))
    assert 1 == len(_details(table("id INT", "day DATE", key=["id"], form="maxwell-json"), (None, _DAYS)))


_DAYS = b'{"type": "insert", "data": {"id": 1, "day": 20778}}'


def test_mongodb_has_rows_in_texts() -> None:
    """`after` is JSON in a text; the key of the record names the document."""
    columns = (
        StreamColumn("id", "STRING", "KEY '$.id'"),
        StreamColumn("oid", "STRING", "'$._id[\"$oid\"]'"),
        StreamColumn("n", "INT"),
    )
    of = Table("t_1", "docs", columns, ("id",), "docs", "debezium-json", "")
    key = b'{"id": "{\\"$oid\\": \\"5f\\"}"}'
    document = json.dumps({"op": "c", "after": '{"_id": {"$oid": "5f"}, "n": 1}', "source": {}}).encode()
    assert [{"id": '{"$oid": "5f"}', "oid": "5f", "n": 1}] == _last(of, (key, document))
    assert [] == _last(of, (key, document), (key, b'{"op": "d", "after": null}'), (key, None))
    [detail] = _details(of, (key, b'{"op": "u", "after": null}'))
    assert "capture.mode = change_streams_update_full" in detail


MAXWELL = table("id INT", "price DECIMAL(8,2)", "at TIMESTAMP", key=["id"], form="maxwell-json")


def test_maxwell() -> None:
    """`data` and `old`; numbers are numbers, and times are texts."""
    records: list[Record] = [
        (b"k", json.dumps(each).encode())
        for each in (
            {"type": "bootstrap-start", "table": "t", "data": {}},
            {"type": "bootstrap-insert", "data": {"id": 1, "price": 4.25, "at": "2026-11-21 10:00:00.5"}},
            {"type": "insert", "data": {"id": 2, "price": 1}},
            {"type": "update", "data": {"id": 3, "price": 5}, "old": {"id": 2, "price": 1}},
            {"type": "update", "data": {"id": 1, "price": 9}, "old": {"price": 4.25}},
            {"type": "delete", "data": {"id": 3}},
            {"type": "table-alter", "def": {}},
        )
    ]
    assert [(1, "9.00", None)] == [
        (row["id"], str(row["price"]), row["at"]) for row in _last(MAXWELL, *records, (b"k", None))
    ]
    details = _details(
        MAXWELL,
        (b"k", b'{"type": "x", "data": {}}'),
        (b"k", b'{"type": "insert"}'),
        (b"k", b"[]"),
        (b"k", b'{"data": {}}'),
    )
    assert 4 == len(details)


CANAL = table("id INT", "price DECIMAL(8,2)", "ok BOOLEAN", "w DOUBLE", "at TIMESTAMP", key=["id"], form="canal-json")


def test_canal() -> None:
    """Values are texts, and a record has several rows."""
    records: list[Record] = [
        (b"k", json.dumps(each).encode())
        for each in (
            {
                "type": "INSERT",
                "data": [
                    {"id": "1", "price": "1234", "ok": "1", "w": "0.5", "at": "2026-11-21 10:00:00"},
                    {"id": "2"},
                    {"id": "3"},
                ],
            },
            {"type": "UPDATE", "data": [{"id": "4"}, {"id": "3", "w": "1"}], "old": [{"id": "2"}, {"w": None}]},
            {"type": "DELETE", "data": [{"id": "4"}]},
            {"type": "ALTER", "isDdl": True, "data": None, "sql": "ALTER TABLE t"},
        )
    ]
    found = _last(CANAL, *records)
    assert [(1, "1234.00", True, 0.5), (3, "None", None, 1.0)] == [
        (row["id"], str(row["price"]), row["ok"], row["w"]) for row in found
    ]
    assert [] == _last(CANAL, *records, (b"k", b'{"type": "TRUNCATE", "isDdl": true, "data": null}'))
    name = b'{"type": "UPDATE", "data": [{"id": "1"}], "old": [{"\xff": "1"}]}'
    assert 1 == len(_details(CANAL, (b"k", name)))
    bad = [b'{"type": "INSERT", "data": [{"id": "1"}, {"id": "x"}]}', b'{"type": "INSERT"}', b'{"type": "Z"}', b"7"]
    assert 4 == len(_details(CANAL, *((b"k", value) for value in bad)))


@given(
    st.lists(
        st.tuples(
            st.binary(max_size=40) | st.sampled_from(["x"]).map(str.encode),
            st.sampled_from(["debezium-json", "maxwell-json", "canal-json"]),
        )
    )
)
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_a_dead_letter_or_no_change(values: list[tuple[bytes, str]]) -> None:
    """Nothing else comes of them."""
    for value, form in values:
        of = table("id STRING", "v DECIMAL(5,1)", key=["id"], form=form)
        for body in (
            value,
            b'{"op": "c", "after": ' + value + b"}",
            b'{"schema": ' + value + b', "payload": {"op": "c", "after": {"id": "a", "v": 1}}}',
        ):
            decode_changes(batch_of([(0, 0, (value, body))]), of, SETTINGS)
