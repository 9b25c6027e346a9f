"""Columns of short numbers, FLOAT and BINARY: values of JSON and Avro records, and dead letters."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from gateway.testing import Stream, evaluate
from grouping.model.catalog import StreamColumn
from spark_jobs.engine.decode.avro_events import AvroReader
from spark_jobs.engine.decode.json_events import JsonReader

_COLUMNS = [StreamColumn(*column) for column in (("t", "TINYINT"), ("m", "SMALLINT"), ("r", "FLOAT"), ("b", "BINARY"))]


def test_values_come_out_as_they_are() -> None:
    """A FLOAT has as few digits as tell it from others, a BINARY is base64."""
    stream = Stream("q (t TINYINT, m SMALLINT, r FLOAT, b BINARY)")
    row = {"t": -128, "m": 32767, "r": 0.1, "b": "YWI="}
    (found,) = evaluate(
        "SELECT *, r + 1F AS more, CAST(m AS TINYINT) AS none FROM q WHERE r > 0 AND t < 1", stream, [row]
    )
    assert found.result == {**row, "more": 1.1, "none": None}


@pytest.mark.parametrize(
    "wrong",
    [{"t": 128}, {"t": 1.5}, {"m": -32769}, {"r": 3.5e38}, {"r": "1"}, {"b": "YWI"}, {"b": "Y WI="}, {"b": 1}],
    ids=str,
)
def test_what_a_column_cannot_hold_is_a_dead_letter(wrong: dict[str, Any]) -> None:
    """A number out of range, and a text that is no base64."""
    _, refused = JsonReader(_COLUMNS)(pa.array([json.dumps(wrong).encode()]))
    assert list(refused) == [0]


def test_avro_gives_what_is_in_range() -> None:
    """An int is a short number where the column is one, a float a FLOAT, bytes a BINARY."""
    types = {"t": "int", "m": "int", "r": "float", "b": "bytes"}
    schema = {"type": "record", "name": "Q", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}
    good = {"t": 127, "m": -32768, "r": 0.5, "b": b"\xff"}
    bodies = []
    for record in (good, {**good, "t": 200}, {**good, "m": 40_000}):
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(schema), record)
        bodies.append(body.getvalue())
    read, refused = AvroReader.of_schema(_COLUMNS, json.dumps(schema), "raw")(pa.array(bodies))
    assert [read(column) for column in _COLUMNS] == [[value] for value in good.values()]
    assert list(refused) == [1, 2]
