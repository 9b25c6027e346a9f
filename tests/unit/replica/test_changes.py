"""Changes and dead letters of records, compared with a reading of single records in sequence."""

from __future__ import annotations

import io
import json
import random
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.table import Table
from schemas.avro_columns import single_object_header
from spark_jobs.engine.operators.lookup_join.changes import Changes, decode_changes
from tests.unit.matching.event_batches import header
from tests.unit.replica.table_records import SETTINGS, Record, batch_of, table

Row = dict[str, Any]
Step = tuple[int, tuple[Any, ...], Row | None]
"""Offset, key, and the row set; None for a removal."""

SYMBOLS = table("symbol STRING", "beta DOUBLE", key=["symbol"])
PRICES = table("price DECIMAL(6,2)", "day DATE", "n INT", key=["day", "price"])
DEBEZIUM = table("symbol STRING", "beta DOUBLE", key=["symbol"], form="debezium-json")


def _decoded(of: Table, records: list[Record]) -> tuple[list[Step], dict[int, str]]:
    """Return the changes and the dead letters' details by offset."""
    changes, letters = decode_changes(
        batch_of([(0, offset, record) for offset, record in enumerate(records)]), of, SETTINGS
    )
    details = {}
    for row in [] if letters is None else letters.to_pylist():
        assert header(row, "code") == "undecodable"
        assert row["topic"] == SETTINGS.topics.deadletters
        topic, _, offset = header(row, "source").split("/")
        assert topic == of.topic
        assert records[int(offset)] == (row["key"], row["value"])
        details[int(offset)] = header(row, "detail")
    return _steps(changes), details


def _steps(changes: Changes) -> list[Step]:
    rows = changes.rows.to_pylist()
    keys = zip(*(array.to_pylist() for array in changes.keys), strict=True)
    return [
        (int(offset), key, None if row < 0 else rows[row])
        for offset, key, row in zip(changes.offset, keys, changes.row, strict=True)
    ]


def _expected(record: Record, offset: int) -> list[Step] | None:
    """Return the changes by a record of SYMBOLS, None for a dead letter."""
    key, value = record
    if value is None:
        try:
            return None if key is None else [(offset, (key.decode(),), None)]
        except UnicodeDecodeError:
            return None
    try:
        row = json.loads(value)
        beta = row.get("beta")
        assert beta is None or (isinstance(beta, (int, float)) and not isinstance(beta, bool))
        assert isinstance(row["symbol"], str)
    except (ValueError, KeyError, AssertionError, AttributeError, TypeError):
        return None
    return [(offset, (row["symbol"],), {"symbol": row["symbol"], "beta": beta})]


_VALUES = [
    b'{"symbol": "INTC", "beta": 1.5}', b'{"symbol": "INTC"}', b'{"beta": 1}', b'{"symbol": null, "beta": 1}', b"{",
    b'{"symbol": "MSFT", "beta": "x"}', b'{"symbol": ""}', b"null", b"", None, None, None,
]  # fmt: skip
_KEYS = [b"INTC", b"", None, b"\xff", "é".encode()]


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_batch_is_what_its_records_are_one_by_one(seed: int) -> None:
    """Rows set and removed, in the order of their records, and a dead letter for each bad record."""
    rng = random.Random(seed)
    records: list[Record] = [(rng.choice(_KEYS), rng.choice(_VALUES)) for _ in range(rng.randint(0, 20))]
    single = [_expected(record, offset) for offset, record in enumerate(records)]
    steps, letters = _decoded(SYMBOLS, records)
    assert [step for found in single for step in found or []] == steps
    assert [offset for offset, found in enumerate(single) if found is None] == list(letters)


def test_keys_of_several_columns_are_json_objects() -> None:
    """DECIMAL and DATE as records have them; a key that lacks a column, or is no JSON, names no row's."""
    day = b'"day": "2026-11-22"'
    keys = [b'{"price": "1.50", ' + day + b', "more": 1}', b"{" + day + b', "price": null}', b"{" + day + b"}", b"1.50"]
    steps, letters = _decoded(PRICES, [(key, None) for key in keys])
    assert [(0, Decimal("1.50"))] == [(offset, price) for offset, (_, price), _ in steps]
    assert [1, 2, 3] == list(letters)
    naming = "The record has no value, and its key names no row. "
    assert naming + 'Column "price" of the PRIMARY KEY is NULL.' == letters[1]
    assert letters[3].startswith(naming + "The value is")


def test_keys_of_one_column_that_is_no_text_are_json_objects() -> None:
    """Only a STRING is plain text."""
    numbers = table("n INT", key=["n"])
    steps, letters = _decoded(numbers, [(b'{"n": 7}', None), (b"7", None), (b'{"n": 7.5}', None)])
    assert [(0, (7,), None)] == steps
    assert [1, 2] == list(letters)


def test_avro_rows_are_removed_by_text_too() -> None:
    """The format is that of values; keys are the same for both."""
    schema = {
        "type": "record",
        "name": "Profile",
        "fields": [{"name": "symbol", "type": ["null", "string"]}, {"name": "beta", "type": ["null", "double"]}],
    }
    of = table("symbol STRING", "beta DOUBLE", key=["symbol"], form="avro", schema=json.dumps(schema))
    values = []
    for row in ({"symbol": "INTC", "beta": 1.0}, {"symbol": None, "beta": 1.0}):
        values.append(_single_object(schema, row))
    steps, letters = _decoded(of, [(b"k", values[0]), (b"k", values[1]), (b"INTC", None), (b"k", b"\xc3")])
    assert [(0, ("INTC",), {"symbol": "INTC", "beta": 1.0}), (2, ("INTC",), None)] == steps
    assert [1, 3] == list(letters)


def _single_object(schema: Any, row: Row) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return single_object_header(json.dumps(schema)) + out.getvalue()


A, B = {"symbol": "A", "beta": 1.0}, {"symbol": "B", "beta": None}

ENVELOPES: list[tuple[Any, list[tuple[str, Row | None]] | None]] = [
    ({"op": "c", "after": A}, [("A", A)]),
    ({"op": "r", "before": None, "after": A}, [("A", A)]),
    ({"op": "u", "before": None, "after": A}, [("A", A)]),
    ({"op": "u", "before": A, "after": B}, [("A", None), ("B", B)]),
    ({"op": "u", "before": {"symbol": "A"}, "after": A}, [("A", A)]),
    ({"op": "d", "before": A, "after": None}, [("A", None)]),
    ({"op": "d", "before": {"symbol": "A", "beta": "unavailable"}}, [("A", None)]),
    ({"op": "m", "message": {"prefix": "x"}}, []),
    ({"schema": {"type": "struct"}, "payload": {"op": "c", "after": A, "source": {"lsn": 1}}}, [("A", A)]),
    ({"payload": {"op": "d", "before": A}}, [("A", None)]),
    ({"op": "t"}, []),
    ({"op": 1, "after": A}, None),
    ({"after": A}, None),
    ({"payload": {"after": A}}, None),
    ({"payload": 7}, None),
    ({"op": "c"}, None),
    ({"op": "c", "after": 7}, None),
    ({"op": "c", "after": {"beta": 1.0}}, None),
    ({"op": "c", "after": {"symbol": "A", "beta": "x"}}, None),
    ({"op": "d", "before": None}, [("k", None)]),
    ({"op": "d", "before": {"beta": 1.0}}, None),
    ({"op": "u", "before": {"beta": 1.0}, "after": A}, None),
    ({"op": "u", "before": A, "after": {"beta": 1.0}}, None),
    ([], None),
    (7, None),
]


@pytest.mark.parametrize(("envelope", "expected"), ENVELOPES)
def test_debezium(envelope: Any, expected: list[tuple[str, Row | None]] | None) -> None:
    """Each operation alone, between records that are none of its business."""
    records: list[Record] = [(b"k", None), (b"k", json.dumps(envelope).encode()), (b"k", b'{"op": "m"}')]
    steps, letters = _decoded(DEBEZIUM, records)
    assert [(1, (symbol,), row) for symbol, row in expected or []] == steps
    assert ([1] if expected is None else []) == list(letters)
