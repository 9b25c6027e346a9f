"""The rows of a digest, perhaps more than memory holds, and its visible rows."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.digest_columns import with_digest_columns
from gateway.testing import Record as GivenRecord
from gateway.testing import Stream as GivenStream
from gateway.testing import digests
from gateway.timers.cuts import Cut
from gateway.timers.open_cuts import OpenCuts
from grouping.compiler.compiler import compile_select
from grouping.digests.digest import column_type, shown
from grouping.digests.rows import DigestRow, DigestRows, RowsUnavailable
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.expression import Column
from grouping.model.query import CreateCq, DigestClause
from grouping.model.sql_type import INT, UNKNOWN
from grouping.plan.group import SelectItem, SelectList
from grouping.statements.command import parse


def test_very_many_rows_lie_in_a_file() -> None:
    """Rows beyond the limit of memory are read back as they came, as often as wanted."""
    rows = DigestRows()
    made = [DigestRow(number % 3, number, 5, b"x" * 100_000) for number in range(400)]
    for row in made:
        rows.append(row)
    assert len(rows) == len(made)
    assert list(rows) == list(rows) == made


def _rows(*values: object, column: str = "v") -> list[DigestRow]:
    return [DigestRow(0, number, number, json.dumps({column: value}).encode()) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("kind", "values", "best"),
    [
        ("BIGINT", [3, None, 9, 9, 1], [2, 3, 0]),
        ("DECIMAL(9,2)", ["9.00", "10.00", "-1.00", None], [1, 0, 2]),
        ("TIMESTAMP", ["2026-01-01T10:00:00Z", "2026-01-01T10:00:00.5Z", None], [1, 0, 2]),
        ("STRING", [None, None, "a", None], [2, 0, 1]),
    ],
)
def test_top_compares_as_the_type_does(kind: str, values: list[object], best: list[int]) -> None:
    """TOP keeps the largest first, NULLs last and ties earliest first, by the column's type and not by its text."""
    select = SelectList("s1", (SelectItem("v", Column("v", kind)),))
    clause = DigestClause("top", ("v",), 3)
    kept = shown(clause, column_type(clause, select), DigestRows(_rows(*values)))
    assert [row.offset for row in kept] == best


def test_latest_keeps_the_last_row_by_record_time() -> None:
    """LATEST BY goes by record time, then partition and offset, whatever the order of arrival."""
    rows = [
        DigestRow(0, 0, 50, b'{"k":"a","n":0}'),
        DigestRow(0, 1, 40, b'{"k":"a","n":1}'),
        DigestRow(1, 0, 50, b'{"k":"a","n":2}'),
        DigestRow(1, 1, 10, b'{"k":null,"n":3}'),
    ]
    kept = shown(DigestClause("latest", ("k",)), UNKNOWN, DigestRows(rows))
    assert [json.loads(row.body)["n"] for row in kept] == [2, 3]


_values = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.none() | st.integers(0, 9)), max_size=60)


@given(values=_values, most=st.integers(1, 70))
def test_few_rows_in_memory_show_the_same(values: list[tuple[int, int, int | None]], most: int) -> None:
    """TOP and LATEST BY choose the same rows when only a few are held in memory and the rest is merged."""
    made = [
        DigestRow(partition, offset, time_ms, json.dumps({"v": value}).encode())
        for offset, (partition, time_ms, value) in enumerate(values)
    ]

    def rank(row: DigestRow) -> tuple[int, int, int]:
        return row.time_ms, row.partition, row.offset

    def value_of(row: DigestRow) -> int | None:
        return json.loads(row.body)["v"]

    latest = {value_of(row): row for row in sorted(made, key=rank)}
    known = sorted((row for row in made if value_of(row) is not None), key=rank)
    known.sort(key=lambda row: value_of(row) or 0, reverse=True)
    top = [*known, *sorted((row for row in made if value_of(row) is None), key=rank)][:most]
    for in_memory in (600, 1 << 20):
        rows = DigestRows(made, in_memory=in_memory)
        assert list(shown(DigestClause("top", ("v",), most), INT, rows, in_memory=in_memory)) == top
        kept = list(shown(DigestClause("latest", ("v",)), UNKNOWN, rows, in_memory=in_memory))
        assert kept == sorted(latest.values(), key=lambda row: (row.partition, row.offset))


def test_top_of_a_billion_takes_no_more_than_there_is() -> None:
    """However many rows TOP asks for, a few are in memory."""
    made = DigestRows(_rows(*range(2000)), in_memory=4000)
    kept = shown(DigestClause("top", ("v",), 1_000_000_000), INT, made, in_memory=4000)
    assert [row.offset for row in kept] == list(range(1999, -1, -1))


def test_a_key_of_any_type_has_a_last_row() -> None:
    """LATEST BY a column of structs or lists compares their values; the two zeros are one."""
    rows = [DigestRow(0, number, number, body) for number, body in enumerate([
        b'{"k":[1],"d":0.0}', b'{"k":[2],"d":0.0}', b'{"k":[1],"d":-0.0}'
    ])]  # fmt: skip
    assert [row.offset for row in shown(DigestClause("latest", ("k", "d")), UNKNOWN, DigestRows(rows))] == [1, 2]


def test_no_folder_for_rows_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """If rows cannot be stored, the error has the system's message and a hint."""
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    with pytest.raises(RowsUnavailable) as failure:
        DigestRows(_rows(*range(100)), in_memory=1000)
    assert failure.value.detail == "No such file or directory."
    assert "TMPDIR" in (failure.value.hint or "")


def test_open_cuts_are_tried_again() -> None:
    """Cuts left by a crash are tried at once; cuts without room, after longer and longer waits."""
    cut, cuts = Cut("s", {}, (("d_1", 10, 5), ("d_2", 10, 5)), 12), OpenCuts()
    cuts.recover({"1700-1": cut})
    assert (cuts.untried, cuts.due(1000), cuts.waiting) == (True, ("1700-1", cut), {"d_1", "d_2"})
    left = Cut("s", {}, (("d_2", 10, 5),), 12)
    cuts.keep("1700-1", left, 1000)
    assert (cuts.untried, cuts.due(10_999), cuts.waiting, cuts.of_streams()) == (False, None, {"d_2"}, {"s": 1})
    assert cuts.due(11_000) == cuts.due(500) == ("1700-1", left)
    cuts.keep("1700-1", left, 11_000)
    assert (cuts.due(30_999), cuts.due(31_000)) == (None, ("1700-1", left))
    cuts.keep("1700-1", None, 31_000)
    assert (cuts.due(99_000), cuts.waiting) == (None, set())


_QUOTES = Stream(
    "s_1", "quotes", (StreamColumn("price", "DOUBLE"), StreamColumn("tags", "ARRAY<STRING>")), "quotes", "json",
    {"0": 0}, "2026-11-21T00:00:00Z",
)  # fmt: skip


@pytest.mark.parametrize(
    ("digest", "code"),
    [
        ("TOP 1000000000 BY price", "quota-exceeded"),
        ("TOP 100001 BY price", "quota-exceeded"),
        ("TOP 3 BY tags", "type-mismatch"),
        ("TOP 3 BY nothing", "unknown-column"),
    ],
)
def test_a_top_that_cannot_be_is_refused(digest: str, code: str) -> None:
    """TOP needs a number of rows within the limit, and a column whose values have an order."""
    select = "SELECT price, tags FROM quotes"
    statement = parse(f"CREATE CQ a AS {select} DO PUBLISH DIGEST {digest} EVERY '1 minute'")
    assert isinstance(statement, CreateCq)
    with pytest.raises(InputError) as failure:
        with_digest_columns(statement, compile_select(select, Catalog([_QUOTES])), 100_000)
    assert failure.value.code == code


_SPECIAL = "double(CASE k WHEN 'a' THEN 'NaN' WHEN 'b' THEN 'Infinity' WHEN 'e' THEN '-Infinity' WHEN 'f' THEN '1' END)"


_DIGITS = "parse_json(CASE k WHEN 'a' THEN '0.10000000000000000001' ELSE '0.1' END)"


@pytest.mark.parametrize(
    ("select", "clause", "expected"),
    [
        (f"{_SPECIAL} AS x FROM t", "TOP 5 BY x", "abfec"),
        (f"max({_SPECIAL}) AS x FROM t GROUP BY k", "TOP 5 BY x", "abfec"),
        (f"{_SPECIAL} AS x FROM t", "LATEST BY x", "abcef"),
        (f"-{_SPECIAL} AS x FROM t", "TOP 3 BY x", "aef"),
        (f"1 AS x, array({_SPECIAL}, 0) AS y FROM t", "LATEST BY y", "abcef"),
        (f"1 AS x, named_struct('v', array(float({_SPECIAL})), 'w', k = 'a') AS y FROM t", "LATEST BY y", "abcef"),
        (f"1 AS x, map('v', named_struct('v', {_SPECIAL} + double('NaN'))) AS y FROM t", "LATEST BY y", "cf"),
        ("1 AS x, array(double(CASE k WHEN 'a' THEN '0' WHEN 'b' THEN '-0' END)) AS y FROM t", "LATEST BY y", "bf"),
        (f"1 AS x, {_DIGITS} AS y FROM t", "LATEST BY y", "af"),
        (f"1 AS x, named_struct('d', double('NaN'), 'v', {_DIGITS}) AS y FROM t", "LATEST BY y", "af"),
    ],
)
def test_nan_and_infinities_are_compared_as_themselves(select: str, clause: str, expected: str) -> None:
    """JSON shows them as null, and TOP and LATEST BY tell them from NULL: NaN is the greatest of all."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [GivenRecord({"k": key}, time=at) for key in "abcef"]
    query = f"SELECT k, {select} DO PUBLISH DIGEST {clause} EVERY '5 seconds'"
    [digest] = digests(query, GivenStream("t (k STRING)"), rows, accepted_at=at)
    assert expected == "".join(row["k"] for row in digest["rows"])
    assert {row["x"] for row in digest["rows"]} <= {None, 1.0, -1.0}
