"""JSON records: values accepted by docs/expressions.md, and dead letters."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.engine.decode.decode import decode
from tests.unit.matching.event_batches import FIRST_OFFSET, SETTINGS, batch, header, stream

TYPED = stream("s STRING", "b BOOLEAN", "i INT", "l BIGINT", "d DOUBLE", "n DECIMAL(5,2)", "day DATE", "at TIMESTAMP")

DEEP = b"[" * 100_000 + b"]" * 100_000

UNDECODABLE = [
    None,
    b"",
    b" ",
    b"null",
    b"[]",
    b"7",
    b'"text"',
    b"{",
    b"{}{}",
    b"{} x",
    b"{}\x00",
    b"\xef\xbb\xbf{}",
    b'{"s":"a",}',
    b"{'s':'a'}",
    b'{"x":NaN}',
    b'{"x":-Infinity}',
    b'{"x":01}',
    b'{"x":1.}',
    b'{"x":"\x01"}',
    b'{"x":' + DEEP + b"}",
    b'{"s":1}',
    b'{"s":["a"]}',
    b'{"s":"\xff"}',
    b'{"s":"\xed\xa0\x80"}',
    b'{"s":"\\ud800"}',
    b'{"s":"\\udc00 tail"}',
    b'{"s":"a","s":1}',
    b'{"b":1}',
    b'{"b":"true"}',
    b'{"i":1.0}',
    b'{"i":1e0}',
    b'{"i":"1"}',
    b'{"i":true}',
    b'{"i":2147483648}',
    b'{"i":-2147483649}',
    b'{"i":' + b"9" * 5000 + b"}",
    b'{"l":9223372036854775808}',
    b'{"l":-9223372036854775809}',
    b'{"l":1E2}',
    b'{"d":"1.5"}',
    b'{"d":NaN}',
    b'{"d":Infinity}',
    b'{"d":1e400}',
    b'{"d":-1e400}',
    b'{"d":' + b"9" * 400 + b"}",
    b'{"d":true}',
    b'{"n":1000}',
    b'{"n":1.234}',
    b'{"n":1e3}',
    b'{"n":"NaN"}',
    b'{"n":"Infinity"}',
    b'{"n":" 1"}',
    b'{"n":"1_0"}',
    b'{"n":""}',
    '{"n":"٣"}'.encode(),
    b'{"n":true}',
    b'{"n":1e999999999999}',
    b'{"day":"2026-02-30"}',
    b'{"day":"0000-01-01"}',
    b'{"day":"10000-01-01"}',
    b'{"day":"2026-11"}',
    b'{"day":"2026-366"}',
    b'{"day":"9999-366"}',
    b'{"day":"0001-000"}',
    b'{"day":"0000-001"}',
    b'{"day":"2026-11-21T00:00:00"}',
    b'{"day":20261121}',
    '{"day":"٢٠٢٦-11-21"}'.encode(),
    b'{"at":1700000000}',
    b'{"at":"2026-11-21"}',
    b'{"at":"2026-11-21T25:00:00Z"}',
    b'{"at":"2026-11-21T23:59:60Z"}',
    b'{"at":"2026-11-21T24:00:01Z"}',
    b'{"at":"2026-11-21T10:00:00+24:00"}',
    b'{"at":"2026-11-21T10:00:00 Z"}',
    b'{"at":"2026-11-21x10:00:00Z"}',
    b'{"at":"0001-01-01T00:00:00+00:01"}',
    b'{"at":"\\u0030001-01-01T00:00:00+00:01"}',
    b'{"at":"0001\\u002D01-01T00:00:00+00:01"}',
    b'{"at":"9999-12-31T23:59:59-00:01"}',
    b'{"at":"9999-12-31T24:00:00Z"}',
    b'{"at":"9999-366T00:00:00Z"}',
    b'{"at":"P1D"}',
]

GOOD = [
    (b"{}", "s", None),
    (b' {"s" : "a"} \n', "s", "a"),
    (b'{"s":null}', "s", None),
    (b'{"S":"a"}', "s", None),
    (b'{"\\u0073":"a"}', "s", "a"),
    (b'{"s":1,"s":"last"}', "s", "last"),
    (b'{"s":"\xff","s":"last"}', "s", "last"),
    (b'{"s":"first","s":null}', "s", None),
    (b'{"s":"\\ud83d\\ude00\\u0000"}', "s", "\U0001f600\0"),
    (b'{"s":"a","x":"\xff"}', "s", "a"),
    (b'{"s":"a","\xff":1}', "s", "a"),
    (b'{"s":"a","x":"\\ud800"}', "s", "a"),
    (b'{"s":"a","x":1e999}', "s", "a"),
    (b'{"s":"a","x":"\\ud800","y":' + b"9" * 5000 + b"}", "s", "a"),
    (b'{"s":"a","x":{"s":1}}', "s", "a"),
    (b'{"b":false}', "b", False),
    (b'{"i":-2147483648}', "i", -(2**31)),
    (b'{"i":-0}', "i", 0),
    (b'{"i":1.5,"i":2}', "i", 2),
    (b'{"l":9223372036854775807}', "l", 2**63 - 1),
    (b'{"d":1}', "d", 1.0),
    (b'{"d":123456789012345678901234567890}', "d", 1.2345678901234568e29),
    (b'{"d":1e308}', "d", 1e308),
    (b'{"d":5e-400}', "d", 0.0),
    (b'{"n":1}', "n", Decimal("1.00")),
    (b'{"n":"-999.99"}', "n", Decimal("-999.99")),
    (b'{"n":1.500}', "n", Decimal("1.50")),
    (b'{"n":1%s.%s}' % (b"0" * 2, b"0" * 80), "n", Decimal("100.00")),
    (b'{"n":"%s1.5%s"}' % (b"0" * 80, b"0" * 80), "n", Decimal("1.50")),
    (b'{"n":%se-200}' % (b"1" + b"0" * 200), "n", Decimal("1.00")),
    (b'{"n":"1e2"}', "n", Decimal("100.00")),
    (b'{"n":"\\u0031"}', "n", Decimal("1.00")),
    (b'{"n":0e99}', "n", Decimal("0.00")),
    (b'{"n":null}', "n", None),
    (b'{"day":"2026-11-21"}', "day", date(2026, 11, 21)),
    (b'{"day":"20261121"}', "day", date(2026, 11, 21)),
    (b'{"day":"2026-W47-6"}', "day", date(2026, 11, 21)),
    (b'{"day":"2026325"}', "day", date(2026, 11, 21)),
    (b'{"day":"9999-12-31"}', "day", date(9999, 12, 31)),
    (b'{"at":"2026-11-21T10:00:00"}', "at", datetime(2026, 11, 21, 10, tzinfo=UTC)),
    (b'{"at":"2026-11-21T10:00:00Z"}', "at", datetime(2026, 11, 21, 10, tzinfo=UTC)),
    (b'{"at":"2026-11-21T10:00:00.5+01:30"}', "at", datetime(2026, 11, 21, 8, 30, 0, 500_000, UTC)),
    (b'{"at":"2026-11-21T10:00"}', "at", datetime(2026, 11, 21, 10, tzinfo=UTC)),
    (b'{"at":"20261121T100000Z"}', "at", datetime(2026, 11, 21, 10, tzinfo=UTC)),
    (b'{"at":"2026-11-21T10+01"}', "at", datetime(2026, 11, 21, 9, tzinfo=UTC)),
    (b'{"at":"2026-11-21T10:00:00,25Z"}', "at", datetime(2026, 11, 21, 10, 0, 0, 250_000, UTC)),
    (b'{"at":"2026-11-21T24:00:00Z"}', "at", datetime(2026, 11, 22, tzinfo=UTC)),
    (b'{"at":"2026-11-21T23:59:59.9999999Z"}', "at", datetime(2026, 11, 21, 23, 59, 59, 999_999, UTC)),
    (b'{"at":"2026-11-21T10:00:59\\u002e9999999Z"}', "at", datetime(2026, 11, 21, 10, 0, 59, 999_999, UTC)),
    (b'{"at":"2026-11-21T10:00\\u003a59.9999999Z"}', "at", datetime(2026, 11, 21, 10, 0, 59, 999_999, UTC)),
    (b'{"at":"9999-12-31T23:59:59.9999999Z"}', "at", datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
    (b'{"at":"0001-01-01T00:00:00Z","x":"\xff"}', "at", datetime(1, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize("value", UNDECODABLE, ids=lambda value: repr(value)[:50])
def test_hostile_record_is_one_dead_letter(value):
    """A record refused by docs/expressions.md is a single dead letter as received; its neighbours are untouched."""
    events, dead = decode(batch([b'{"i":1}', value, b'{"i":3}'], keys=[b"a", b"\xff", None]), TYPED, SETTINGS)

    assert [1, 3] == events.column("i").to_pylist()
    assert [FIRST_OFFSET, FIRST_OFFSET + 2] == events.offsets.tolist()
    [letter] = dead.to_pylist()
    assert (b"\xff", value, "cq.deadletters", None) == tuple(
        letter[field] for field in ("key", "value", "topic", "partition")
    )
    assert "undecodable" == header(letter, "code")
    assert f"source/3/{FIRST_OFFSET + 1}" == header(letter, "source")
    assert header(letter, "detail").endswith(".")


@pytest.mark.parametrize(("value", "column", "expected"), GOOD, ids=lambda value: repr(value)[:50])
def test_value_is_read_exactly(value, column, expected):
    """All values allowed by docs/statements.md are read exactly, whatever stands in fields without a column."""
    events, dead = decode(batch([value]), TYPED, SETTINGS)

    assert dead is None
    assert [expected] == events.column(column).to_pylist()
    for name in TYPED.columns:
        events.column(name.name).validate(full=True)


def test_all_hostile_records_in_one_batch():
    """Bad records of every kind in a batch do not hide or move each other or a good record."""
    good = [value for value, _, _ in GOOD]
    mixed = [value for pair in zip(UNDECODABLE, good * 3, strict=False) for value in pair]
    events, dead = decode(batch(mixed), TYPED, SETTINGS)

    assert list(range(FIRST_OFFSET, FIRST_OFFSET + len(mixed), 2)) == [
        int(header(letter, "source").split("/")[2]) for letter in dead.to_pylist()
    ]
    assert list(range(FIRST_OFFSET + 1, FIRST_OFFSET + len(mixed), 2)) == events.offsets.tolist()


def test_record_fields():
    """The record's own fields are columns; a key that is no UTF-8 is NULL."""
    keys = [b"a", b"\xff", None, "ü".encode()]
    events, _ = decode(batch([b"{}"] * 4, keys=keys), TYPED, SETTINGS)

    assert ["a", None, None, "ü"] == events.column("_key").to_pylist()
    assert [datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)] == events.column("_time").to_pylist()[:1]
    assert [3] * 4 == events.column("_partition").to_pylist() == events.partitions.tolist()
    assert [100, 101, 102, 103] == events.column("_offset").to_pylist()
    assert [1_700_000_000_123] == events.time_ms.tolist()[:1]


def test_column_name_that_json_escapes():
    """A column may have any name, even a name that JSON must escape."""
    events, dead = decode(batch([b'{"a\\"b":5}', b'{"a\\"b":"x"}']), stream('a"b INT'), SETTINGS)

    assert [5] == events.column('a"b').to_pylist()
    assert 1 == dead.num_rows


def test_dead_letter_of_an_oversized_record():
    """A dead letter names an oversized record, and leaves the value out, so Kafka takes the letter."""
    value = b"[" + b"1," * 600_000 + b"1]"
    _, dead = decode(batch([value]), TYPED, SETTINGS)

    [letter] = dead.to_pylist()
    assert (None, None) == (letter["key"], letter["value"])
    assert str(len(value) + 1) in header(letter, "detail")


def test_detail_is_short():
    """A detail does not grow with the value: a dead letter's headers stay small."""
    _, dead = decode(batch([b'{"day":"%s"}' % (b"x" * 900_000)]), TYPED, SETTINGS)

    [letter] = dead.to_pylist()
    assert len(header(letter, "detail")) <= 1_000


_MANY = 10**6


@pytest.mark.parametrize("column", "bildn")
@pytest.mark.parametrize(
    "number",
    [
        b"9" * _MANY,
        b"-" + b"1" * _MANY,
        b"1" + b"0" * _MANY,
        b"1e999999999",
        b"-1e99999999999999999999",
        b"1e" + b"9" * _MANY,
    ],
)
def test_numbers_without_measure_are_dead_letters(column, number):
    """A number of a million digits, or with an exponent of as many, fits nowhere, and is not computed to find out."""
    events, dead = decode(batch([b'{"%s":%s}' % (column.encode(), number)]), TYPED, SETTINGS)

    assert (0, 1) == (events.count, dead.num_rows)


@pytest.mark.parametrize("number", [b"0." + b"3" * _MANY, b"1e-999999999", b"0e999999999"])
def test_numbers_without_measure_that_a_double_holds(number):
    """A DOUBLE takes any number in range, however long it is written."""
    events, _ = decode(batch([b'{"d":%s}' % number]), TYPED, SETTINGS)

    assert [float(number)] == events.column("d").to_pylist()


values = st.fixed_dictionaries(
    {
        "s": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "b": st.none() | st.booleans(),
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "d": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**40), 10**40),
    },
    optional={"x": st.recursive(st.none() | st.floats(allow_nan=False) | st.text(), st.lists, max_leaves=5)},
)


@given(st.lists(values, max_size=5), st.booleans())
def test_agrees_with_the_standard_library(records, ascii_only):
    """Every record written by Python's JSON library is read with the same values."""
    texts = [json.dumps(record, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") for record in records]
    texts = [text for text in texts if b"Infinity" not in text]
    events, dead = decode(batch(texts), TYPED, SETTINGS)

    assert dead is None
    for name in "sbil":
        assert [json.loads(text.decode("utf-8", "surrogatepass"))[name] for text in texts] == events.column(
            name
        ).to_pylist()
    expected = [json.loads(text.decode("utf-8", "surrogatepass"))["d"] for text in texts]
    assert [None if number is None else float(number) for number in expected] == events.column("d").to_pylist()


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_doubles_are_correctly_rounded(text):
    """A DOUBLE is the double nearest to the number as written; one beyond the doubles is a dead letter."""
    events, dead = decode(batch([b'{"d":%s}' % text.encode()]), TYPED, SETTINGS)

    if math.isinf(float(text)):
        assert 1 == dead.num_rows
    else:
        assert [float(text)] == events.column("d").to_pylist()


naive_bounds = datetime(2, 1, 1), datetime(9998, 12, 31)  # noqa: DTZ001  # as hypothesis wants them


@given(st.datetimes(*naive_bounds, timezones=st.none() | st.timezones()))
def test_times_agree_with_the_standard_library(time):
    """A TIMESTAMP is the instant that the text names, to the microsecond."""
    offset = time.utcoffset()
    if offset is not None and offset.total_seconds() % 60:
        time = time.replace(tzinfo=UTC)  # before zones had whole minutes: such offsets are not ISO 8601
    events, _ = decode(batch([json.dumps({"at": time.isoformat()}).encode()]), TYPED, SETTINGS)

    assert [time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)] == events.column(
        "at"
    ).to_pylist()
