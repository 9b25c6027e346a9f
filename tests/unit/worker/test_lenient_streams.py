"""Lenient streams, and numbers as TIMESTAMP: fitting values, values that are NULL and counted, and dead letters."""

from __future__ import annotations

import json
import math
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.cli.scripts.definitions import create_statement
from gateway.sources.streams import describe_stream
from grouping.model.catalog import Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.statements.command import parse
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.decode.json_events import JsonReader
from spark_jobs.engine.decode.json_exact import WrongRecord, read_record
from spark_jobs.engine.decode.json_lenient import Leniency
from spark_jobs.engine.rows.events import arrow_type
from tests.unit.matching.event_batches import SETTINGS, batch


def declared(columns: str, options: str = "lenient = true") -> Stream:
    """Return the stream of a declaration."""
    statement = parse(f"CREATE STREAM s ({columns}) WITH (topic = 't', format = 'json', {options})")
    lenient, timestamps = statement.lenient, statement.timestamps
    return Stream(
        "s_1", "s", statement.stream_columns, "t", "json", {"0": 0}, "", lenient=lenient, timestamps=timestamps
    )


MISFIT = "misfit"
AT = datetime(2025, 11, 21, 10, tzinfo=UTC)

FIT = [
    ("DOUBLE", '"1.5"', 1.5),
    ("DOUBLE", '"1e3"', 1000.0),
    ("DOUBLE", '""', None),
    ("DOUBLE", '"null"', None),
    ("DOUBLE", '".50"', 0.5),
    ("DOUBLE", '"-.5"', -0.5),
    ("DOUBLE", '"5."', 5.0),
    ("DOUBLE", '"+5"', 5.0),
    ("DOUBLE", '"-00.5e1"', -5.0),
    ("DOUBLE", '"."', MISFIT),
    ("DOUBLE", '"+-5"', MISFIT),
    ("DOUBLE", '"1,234"', MISFIT),
    ("DOUBLE", '"NaN"', MISFIT),
    ("DOUBLE", '"-inf"', MISFIT),
    ("DOUBLE", '" 1"', MISFIT),
    ("DOUBLE", "1e400", MISFIT),
    ("DOUBLE", "{}", MISFIT),
    ("INT", "1.0", 1),
    ("INT", '"7"', 7),
    ("INT", '"7.0"', 7),
    ("INT", '"007"', 7),
    ("INT", '"+7."', 7),
    ("BIGINT", '"+009007199254740993.0"', 9007199254740993),
    ("DECIMAL(4,2)", '"+.5"', Decimal("0.50")),
    ("INT", "1.5", MISFIT),
    ("INT", "2147483648", MISFIT),
    ("INT", "0.9999999999999999999", MISFIT),
    ("BIGINT", "9007199254740993.0", 9007199254740993),
    ("BIGINT", '"9007199254740993.0"', 9007199254740993),
    ("BIGINT", "9.007199254740993e15", 9007199254740993),
    ("BIGINT", "1e999999999", MISFIT),
    ("BIGINT", "1e99999999999999999999", MISFIT),
    ("ARRAY<INT>", "[-1e-99999999999999999999]", MISFIT),
    ("BIGINT", "1732000000000.0001", MISFIT),
    ("BIGINT", "123456789012345.06", MISFIT),
    ("BOOLEAN", '"true"', True),
    ("BOOLEAN", '"FALSE"', False),
    ("BOOLEAN", "1", True),
    ("BOOLEAN", '"0"', False),
    ("BOOLEAN", "2", MISFIT),
    ("BOOLEAN", '"yes"', MISFIT),
    ("STRING", "7", MISFIT),
    ("STRING", '""', ""),
    ("STRING", '"a\\ud800b"', "a\N{REPLACEMENT CHARACTER}b"),
    ("DATE", '""', None),
    ("DATE", '"20261121"', date(2026, 11, 21)),
    ("DATE", '"21/11/2026"', MISFIT),
    ("TIMESTAMP", "1763719200", MISFIT),
    ("TIMESTAMP", '"2025-11-21 10:00:00 +0000 UTC"', AT),
    ("TIMESTAMP", '"2025-11-21T10:00:00Z"', AT),
    ("ARRAY<INT>", '["1", 2.0, ""]', [1, 2, None]),
    ("ARRAY<INT>", '["1", "x"]', MISFIT),
    ("STRUCT<a: BIGINT>", '{"a": "5"}', {"a": 5}),
    ("STRUCT<a: BIGINT>", '""', None),
]


@pytest.mark.parametrize(("kind", "text", "expected"), FIT)
def test_what_fits_and_what_is_null_and_counted(kind: str, text: str, expected: object) -> None:
    """The record is an event whatever its values; the other columns have theirs."""
    events, letters = decode(
        batch([f'{{"x": {text}, "s": "kept"}}'.encode()]), declared(f"x {kind}, s STRING"), SETTINGS
    )
    assert letters is None
    assert events.values("x") == [None if expected == MISFIT else expected]
    assert events.values("s") == ["kept"]
    assert events.misfits == ({"x": 1} if expected == MISFIT else {})


def test_what_is_no_json_object_stays_a_dead_letter() -> None:
    """A lenient stream takes objects."""
    _, letters = decode(batch([b"{", b"[]", None, b"{}"]), declared("x INT"), SETTINGS)
    assert letters.num_rows == 3


@pytest.mark.parametrize("lenient", ["", ", lenient = true"])
@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        ("seconds", "1763719200", AT),
        ("seconds", "1763719200.25", AT.replace(microsecond=250_000)),
        ("millis", "1763719200250", AT.replace(microsecond=250_000)),
        ("micros", "1763719200000001", AT.replace(microsecond=1)),
        ("micros", "1763719200000001.9", AT.replace(microsecond=1)),
        ("seconds", "-1", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("seconds", '"2025-11-21T10:00:00Z"', AT),
        ("seconds", "1e999999999", None),
        ("seconds", "1e99999999999999999999", None),
        ("seconds", "1763719200000", None),
    ],
)
def test_numbers_are_times_in_the_unit(unit: str, text: str, expected: datetime | None, lenient: str) -> None:
    """Digits behind the microseconds are cut off; a time of no year is a dead letter, or NULL in a lenient stream."""
    stream = declared("x TIMESTAMP, y ARRAY<TIMESTAMP>", f"timestamps = '{unit}'{lenient}")
    events, letters = decode(batch([f'{{"x": {text}, "y": [{text}]}}'.encode()]), stream, SETTINGS)
    if expected is not None:
        assert (events.values("x"), events.values("y")) == ([expected], [[expected]])
    elif lenient:
        assert (events.values("x"), events.misfits) == ([None], {"x": 1, "y": 1})
    else:
        assert letters.num_rows == 1


def test_headers_and_keys_of_a_lenient_stream() -> None:
    """They are counted by column, too."""
    stream = declared(
        "n INT FROM HEADER 'n', at TIMESTAMP FROM HEADER 'at', id INT FROM KEY '$.id'",
        "lenient = TRUE, timestamps = 'seconds'",
    )
    given = [(("n", b"1.0"), ("at", b"1763719200")), (("n", b"seven"), ("at", b"soon"))]
    events, letters = decode(batch([b"{}"] * 2, [b'{"id": "5"}', b'{"id": "x"}'], headers=given), stream, SETTINGS)
    assert letters is None
    assert [events.values(name) for name in ("n", "at", "id")] == [[1, None], [AT, None], [5, None]]
    assert events.misfits == {"n": 1, "at": 1, "id": 1}


TYPES = ["STRING", "BOOLEAN", "INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(6,2)", "DATE", "TIMESTAMP", "BINARY"]
NESTED = ["VARIANT", "ARRAY<INT>", "MAP<STRING, DOUBLE>", "STRUCT<a: BIGINT>"]
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
DIGITS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?\Z")
TEXTS = st.sampled_from(["", "null", "NULL", "true", "False", "nan", "inf", "a", "2025-11-21", "2025-11-21T10:00:00Z"])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS | DIGITS | NUMBERS.map(str)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from("ab"), SCALARS)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(TYPES + NESTED), VALUES, st.booleans()), min_size=1, max_size=4),
    st.sampled_from(["", "seconds", "millis"]),
)
@example([("BINARY", "1000", False), ("BINARY", "", False), ("BINARY", "null", False)], "")
def test_the_fast_decoder_is_as_lenient_as_the_exact_one(given_columns: list, unit: str) -> None:
    """Equal values and equal counts, whichever of the two reads a record; numbers come as text and as they are."""
    columns = [StreamColumn(f"c{number}", kind) for number, (kind, _, _) in enumerate(given_columns)]
    parts = []
    for number, (_, value, bare) in enumerate(given_columns):
        text = json.dumps(value)
        if bare and isinstance(value, str) and value[-1:].isdigit() and "-" not in value[1:]:
            text = value
        parts.append(f'"c{number}": {text}')
    record, leniency = ("{" + ", ".join(parts) + "}").encode(), Leniency(lenient=True, timestamps=unit)
    expected: Counter[str] = Counter()
    try:
        exact = read_record(record, columns, leniency, expected)
    except WrongRecord:  # a number that is no JSON
        assert JsonReader(columns, leniency).read(pa.array([record])).wrong
        return
    read, wrong, misfits = JsonReader(columns, leniency).read(pa.array([record]))
    assert (wrong, misfits) == ({}, expected)
    for number, column in enumerate(columns):
        [found] = (
            pa.array(read(column), arrow_type(column.type)).to_pylist()
            if "MAP" not in column.type_text
            else read(column)
        )
        [wanted] = (
            pa.array([exact[number]], arrow_type(column.type)).to_pylist()
            if "MAP" not in column.type_text
            else [exact[number]]
        )
        assert found == wanted
        assert not isinstance(found, float) or math.isfinite(found)


def test_the_options_are_exported_and_refused_for_avro() -> None:
    """DESCRIBE has them only where they are given."""
    stream = declared("x INT", "lenient = true, timestamps = 'millis'")
    again = parse(create_statement(describe_stream(stream)))
    assert (again.lenient, again.timestamps) == (True, "millis")
    assert not {"lenient", "timestamps"} & describe_stream(declared("x INT", "lenient = false")).keys()
    with pytest.raises(InputError, match="for JSON only"):
        parse("CREATE STREAM s (x INT) WITH (topic = 't', format = 'avro', schema = '{}', lenient = true)")
