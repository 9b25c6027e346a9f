"""Input of `cq publish`: JSON lines and CSV become records, and broken lines are named."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.records.csv_rows import CsvRows
from gateway.cli.records.input_lines import InputLine
from gateway.cli.records.json_lines import json_lines
from grouping.model.catalog import StreamColumn
from grouping.model.errors import OperationalError
from spark_jobs.engine.decode.decode import decode
from tests.unit.matching.event_batches import SETTINGS, batch, stream

_LONGEST = 200


def _json(text: bytes, *key: str | int) -> list[InputLine]:
    return [*json_lines(io.BytesIO(text), key or None, _LONGEST)]


def test_json_lines_are_published_byte_for_byte() -> None:
    """Numbers keep their digits, whatever ends the lines; empty lines and a byte order mark are no records."""
    text = b'\xef\xbb\xbf{"n": 1.50}\r\n\n  \n{"n":  12345678901234567890}\n{"n": "\xc3\xa9"}'
    found = _json(text, "n")
    assert [b'{"n": 1.50}', b'{"n":  12345678901234567890}', '{"n": "é"}'.encode()] == [line.value for line in found]
    assert [b"1.50", b"12345678901234567890", "é".encode()] == [line.key for line in found]
    assert [1, 4, 5] == [line.number for line in found]


BROKEN = [
    (b'{"n": 1', (), "the line is not JSON"),
    (b'{"n": NaN}', (), "the line is not JSON"),
    (b'{"n": "\xff"}', (), "the line is not JSON"),
    (b"[" * 199, (), "the line is not JSON"),
    (b"7", (), "the line is JSON, but not an object"),
    (b'{"n": "' + b"x" * _LONGEST + b'"}', (), "the line is longer than 200 bytes"),
    (b'{"n": 1}', ("m",), "the record lacks the key column"),
    (b"[1]", ("m",), "the record lacks the key column"),
    (b'{"d": {"n": null}}', ("d", "n"), "the key column has no text"),
    (b'{"n": {}}', ("n",), "the key column has no text"),
    (b'{"n": "' + b"x" * 150 + b'"}', ("n",), "key and value are longer than 200 bytes"),
]


@pytest.mark.parametrize(("line", "key", "fault"), BROKEN)
def test_a_broken_json_line_harms_no_other(line: bytes, key: tuple[str, ...], fault: str) -> None:
    """The line is named by its number, and the lines around it are records."""
    good = b'{"n": 1, "m": 2, "d": {"n": true}}'
    before, broken, after = _json(b"\n".join([good, line, good]), *key)
    assert (good, good) == (before.value, after.value)
    assert (2, b"") == (broken.number, broken.value)
    assert broken.fault.startswith(fault)


@given(st.lists(st.one_of(st.binary(max_size=300), st.just(b'{"a": 1}')), max_size=8))
def test_each_line_is_a_record_or_broken(lines: list[bytes]) -> None:
    """Whatever the bytes: sizes add up to the input but for lines without content, and nothing is raised."""
    text = b"\n".join(lines)
    found = _json(text)
    assert sum(line.size for line in found) <= len(text) + 1
    for line in found:
        assert line.fault or json.loads(line.value) is not None


_COLUMNS = (
    "symbol STRING", "price DOUBLE", "n INT", "ok BOOLEAN", "amount DECIMAL(6,2)", "day DATE", "at TIMESTAMP",
    "tags ARRAY<STRING>", "raw BINARY",
)  # fmt: skip


def _csv(text: str | bytes, *columns: str, key: str | None = None, lenient: bool = False) -> list[InputLine]:
    declared = tuple(StreamColumn(*column.split(" ", 1)) for column in columns)
    rows = CsvRows(declared, lenient, "millis" if lenient else "", _LONGEST)
    return [*rows.read(io.BytesIO(text.encode() if isinstance(text, str) else text), key)]


def test_csv_rows_fit_the_stream() -> None:
    """Each value is JSON of its column's type, so the evaluator takes the record."""
    text = (
        "symbol,price,n,ok,amount,day,at,tags,raw\n"
        '"a ""b""\nc",1.50, 7 ,TRUE,10.00,2026-11-29,2026-11-29T06:00:00Z,"[""x"", null]",AAE=\n'
        ",,,,,,,,\n"
    )
    found = _csv(text, *_COLUMNS)
    assert [3, 4] == [line.number for line in found]
    assert len(text) - len(text.split("\n", 1)[0]) - 1 == sum(line.size for line in found)
    events, letters = decode(batch([line.value for line in found]), stream(*_COLUMNS), SETTINGS)
    assert letters is None
    assert ['a "b"\nc', None] == events.values("symbol")
    assert b'"price":1.50' in found[0].value
    assert b"{}" == found[1].value


def test_csv_columns_lie_at_their_places() -> None:
    """A column with a path is a field within objects; a column that the stream lacks is a string, and is told."""
    declared = (StreamColumn("p", "DOUBLE", "'$.data.p'"), StreamColumn("q", "INT", "'$.data.q'"))
    rows = CsvRows(declared, lenient=False, timestamps="", longest=_LONGEST)
    [line] = rows.read(io.BytesIO(b"p,q,Q\n1.5,2,3\n"), "q")
    assert (b"2", {"data": {"p": 1.5, "q": 2}, "Q": "3"}) == (line.key, json.loads(line.value))
    assert ['"Q" is not a column of the stream. Did you mean "q"?'] == rows.warnings


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (b"a,b", 'column "n" of type INT has no number: "b"'),
        (b"a", "the row has 1 field, and the first row has 2"),
        (b"a,1,2", "the row has 3 fields, and the first row has 2"),
        (b"\xff,1", 'column "s" is not valid UTF-8'),
        (b'"a"b,1', "',' expected after '\"'"),
        (b"x" * 300 + b",1", "the row is longer than 200 bytes, the size of a record"),
        (b",1", "the key column is empty"),
    ],
)
def test_a_broken_row_harms_no_other(row: bytes, fault: str) -> None:
    """The row is named by its number, and the rows around it are records."""
    before, broken, after = _csv(b"s,n\nk,1\n" + row + b"\nk,2\n", "s STRING", "n INT", key="s")
    assert [b'{"s":"k","n":1}', b'{"s":"k","n":2}'] == [before.value, after.value]
    assert (3, fault) == (broken.number, broken.fault)


def test_a_lenient_stream_takes_any_text() -> None:
    """Texts that are no numbers are published as they are; the stream makes NULLs of them."""
    [line] = _csv("n,at,ok\nx,1763719200000,maybe\n", "n INT", "at TIMESTAMP", "ok BOOLEAN", lenient=True)
    assert {"n": "x", "at": 1763719200000, "ok": "maybe"} == json.loads(line.value)


@pytest.mark.parametrize(
    ("first", "key", "expected"),
    [
        ("a,a", None, "must name each column once"),
        ("", None, "must name each column once"),
        ("a,b", "c", 'the file has no column "c" for the key'),
        ("h", None, "CSV can write fields of JSON objects only"),
    ],
)
def test_a_first_row_that_cannot_be_used_is_refused(first: str, key: str | None, expected: str) -> None:
    """Nothing is published."""
    rows = CsvRows((StreamColumn("h", "STRING", "HEADER 'x'"),), lenient=False, timestamps="", longest=_LONGEST)
    with pytest.raises(OperationalError, match=expected):
        next(rows.read(io.BytesIO(f"{first}\n1\n".encode()), key))


@given(st.lists(st.lists(st.text("ab,\"\n\r'é \x00", max_size=6), min_size=2, max_size=2), min_size=1, max_size=5))
def test_texts_come_back_from_csv(rows: list[list[str]]) -> None:
    """Quotes, commas and line ends within a field are kept."""
    sink = io.StringIO(newline="")
    csv.writer(sink).writerows([["s", "t"], *rows])
    found = _csv(sink.getvalue(), "s STRING", "t STRING")
    expected = [{name: text for name, text in zip("st", row, strict=True) if text} for row in rows]
    assert expected == [json.loads(line.value) for line in found]
