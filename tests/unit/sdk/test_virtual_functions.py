"""A virtual destination's filter: DuckDB computes arithmetic, casts and functions as the evaluator does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.sdk.records.virtual import VirtualFilters
from gateway.sdk.results import Destination
from grouping.compiler.compiler import compile_select
from grouping.compiler.reader_sql import check_virtual, filter_sql
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.plan.group import CompiledQuery
from spark_jobs.engine.match.evaluate import match
from tests.unit.matching.matching import Events, entry, snapshot

COLUMNS = {
    "s": "STRING",
    "t": "STRING",
    "x": "DOUBLE",
    "y": "DOUBLE",
    "b": "TINYINT",
    "n": "INT",
    "m": "INT",
    "v": "BIGINT",
    "w": "BIGINT",
    "flag": "BOOLEAN",
    "d": "DECIMAL(12,2)",
    "e": "DECIMAL(9,4)",
    "day": "DATE",
    "since": "DATE",
    "at": "TIMESTAMP",
}
STREAM = Stream(
    "s_1",
    "quotes",
    tuple(StreamColumn(*one) for one in COLUMNS.items()),
    "quotes",
    "json",
    {"0": 0},
    "2026-11-21T00:00:00Z",
)
_TEXTS = ["", " ", "a", "ab", "a_b", "a%b", "a\\_b", " a\t", "é", "e\u0301", "👩\u200d👩x", "İß", "abcab", "\x00a"]
_DOUBLES = [0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 127.9, -128.9, 2147483647.5, -2147483648.9, 1e18, 1e308, -1e308, 5e-324]
_INTS = [0, 1, -1, 2, 3, -7, 2**31 - 1, -(2**31)]
_LONGS = [*_INTS, 2**53 + 1, 2**63 - 1, -(2**63), 10**17 + 1]
_DAYS = [
    date(1, 1, 1),
    date(9999, 12, 31),
    date(1969, 12, 31),
    date(2024, 2, 29),
    date(2024, 12, 30),
    date(2026, 3, 29),
]
_TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 30, 59, 999999, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
]
_VALUES: dict[str, Sequence[Any]] = {
    "STRING": _TEXTS,
    "DOUBLE": _DOUBLES,
    "TINYINT": [0, 1, -1, 127, -128],
    "INT": _INTS,
    "BIGINT": _LONGS,
    "BOOLEAN": [True, False],
    "DECIMAL(12,2)": [Decimal(one) for one in ("0.00", "-0.01", "2.50", "9999999999.99", "-9999999999.99")],
    "DECIMAL(9,4)": [Decimal(one) for one in ("0.0000", "1.0001", "-99999.9999", "99999.9999")],
    "DATE": _DAYS,
    "TIMESTAMP": _TIMES,
}
_EVENT = st.fixed_dictionaries({name: st.sampled_from([*_VALUES[kind], None]) for name, kind in COLUMNS.items()})
_WHOLE = ["b", "n", "m", "v", "w", "2", "3", "0", "-1", "9223372036854775807"]
_NUMBER = [*_WHOLE, "x", "y", "2.5e0", "0e0"]
_EXACT = [*_WHOLE, "d", "e", "0.5", "12.25"]
_TEXT = ["s", "t", "'a'", "''", "'é'", "' a'"]
_SHAPES = [
    *((f"{{0}} {op} {{1}} {test}", (_NUMBER, _NUMBER)) for op in "+-*/%" for test in ("> 2", "= 1", "IS NULL", "< n")),
    *((f"{{0}} {op} {{1}} {test}", (_EXACT, _EXACT)) for op in "+-*" for test in ("> 2.5", "= 0", "IS NULL")),
    *((f"({{0}} {op} {{1}}) {two} {{2}} >= 1", (_NUMBER,) * 3) for op in "+-*" for two in "+-*/%"),
    *((f"{{0}} div {{1}} {test}", (_WHOLE, _WHOLE)) for test in ("= 1", "< 0", "IS NULL")),
    *((f"{form} {test}", (["b", "n", "v", "x"],)) for form in ("-{0}", "abs({0})") for test in ("> 1", "IS NULL")),
    *(
        (f"CAST({{0}} AS {kind}) {test}", (["b", "n", "v", *(["x"] if kind != "BIGINT" else [])],))
        for kind in ("TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE") for test in ("> 1", "= -1", "IS NULL")
    ),
    ("CAST({0} AS STRING) {1}", (["n", "v", "flag", "day"], ["> '1'", "= 'true'", "= '2024-02-29'", "IS NULL"])),
    ("CAST({0} AS BOOLEAN)", (["n", "v", "x"],)),
    ("CAST(flag AS INT) + n > 1", ()),
    ("CAST({0} AS {1}) {2}", (["day", "at"], ["DATE", "TIMESTAMP"], ["> '2024-02-29'", "= '1969-12-31'", "IS NULL"])),
    *((f"{name}({{0}}, {{1}})", (_TEXT[:2], _TEXT)) for name in ("contains", "startswith", "endswith")),
    ("{0}({1}, {2}) > {3}", (["instr", "locate"], _TEXT, ["s", "t"], ["0", "1"])),
    ("length({0}) {1}", (["s", "t"], ["> 1", "= 0", "IS NULL"])),
    ("{0}({1}) = {2}", (["trim", "ltrim", "rtrim"], ["s", "t"], _TEXT)),
    ("substring(s, {0}, {1}) = {2}", (["0", "1", "2", "-1", "-9"], ["0", "1", "2", "-1", "9"], _TEXT)),
    ("{0}(s, {1}) = {2}", (["left", "right"], ["0", "1", "2", "-1", "9"], _TEXT)),
    ("s LIKE {0}", (["'a\\_b'", "'a_b'", "'%b'", "'a\\%%'", "'a|_b' ESCAPE '|'"],)),
    ("s NOT LIKE {0}", (["'a\\_b'", "'_'"],)),
    *(
        (f"{field}({{0}}) {{1}}", (["day", "at"], ["= 1", "> 6", "= 53", "IS NULL"]))
        for field in "year quarter month day dayofyear dayofweek weekday weekofyear".split()
    ),
    ("{0}(at) > {1}", (["hour", "minute", "second"], ["0", "29", "58"])),
    ("datediff(day, since) {0}", (["> 0", "= 0", "IS NULL"],)),
    ("day {0} {1} {2}", ("+-", ["0", "1", "n", "2147483647"], ["> since", "IS NULL", "= '2024-03-01'"])),
    ("at {0} INTERVAL {1} {2}", ("+-", ["5 MINUTES", "1 DAY", "'1 02:03:04.5' DAY TO SECOND", "2000000 HOURS"],
                               ["> '2024-02-29'", "IS NULL"])),
    *((f"({{0}} {op} {{1}}) {{2}}", (["n", "m", "2", "-1"], ["m", "n"], ["> 0", "= 2", "IS NULL"])) for op in "&|^"),
    ("~{0} {1}", (["b", "n", "v"], ["> 0", "= -1", "IS NULL"])),
    ("(v {0} w) {1}", ("&|^", ["> 0", "IS NULL"])),
    ("{0}({1}) {2} {3}", (["greatest", "least"], ["n, m", "n, m, 3", "m, n"], "=>", ["n", "0"])),
    ("{0}({1}) {2}", (["greatest", "least"], ["x, y", "y, x, 2.5e0"], ["> 1", "= 0", "IS NULL"])),
    ("{0}(s, t) {1}", (["greatest", "least"], ["> 'a'", "= 'é'", "IS NULL"])),
    ("{0}({1}) {2}", (["greatest", "least"], ["day, since", "since, day"], ["> '2024-02-29'", "IS NULL"])),
    ("octet_length({0}) {1}", (["s", "t"], ["> 1", "= 2", "IS NULL"])),
    ("last_day(day) {0}", (["= '2024-02-29'", "> since", "IS NULL"],)),
    ("unix_date(day) {0}", (["> 0", "= -1", "< n", "IS NULL"],)),
    ("unix_micros(at) {0}", (["> 0", "= -1", "< v", "IS NULL"],)),
    ("at - {0} {1} INTERVAL {2}", (["TIMESTAMP '2024-02-29T12:00:00Z'", "at"], "<>",
                                     ["5 MINUTES", "'30:59.999999' MINUTE TO SECOND"])),
    ("isnan({0})", (["x", "x - y", "x * 1e300 - y * 1e300"],)),
    ("CASE WHEN n > 0 THEN v + n ELSE v - n END > {0}", (["0", "m"],)),
]  # fmt: skip


def _compiled(where: str) -> CompiledQuery:
    query = compile_select(f"SELECT s FROM quotes WHERE {where}", Catalog([STREAM]))
    check_virtual(query)
    return query


def _json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, date | Decimal) else value


def _read(where: str, events: Sequence[dict[str, Any]]) -> list[bool]:
    described = [{"name": name, "type": kind} for name, kind in COLUMNS.items()]
    destination = Destination(
        id="d_1", mode="virtual", topic="t", key="g_1", offset=[0], filter=where, select="s", columns=described
    )
    chosen = VirtualFilters().of(destination)
    assert chosen is not None
    values = [json.dumps({name: _json(value) for name, value in event.items()}).encode() for event in events]
    return [row is not None for row in chosen(values)]


@st.composite
def _clause(draw: st.DrawFn) -> str:
    shape, places = draw(st.sampled_from(_SHAPES))
    return shape.format(*(draw(st.sampled_from(list(place))) for place in places))


@settings(max_examples=80, deadline=None)
@given(_clause(), st.lists(_EVENT, min_size=1, max_size=12))
def test_a_reader_computes_what_the_evaluator_does(where: str, events: list[dict[str, Any]]) -> None:
    """Overflow, division by zero, signs, scales, code points and the ends of time are met alike."""
    try:
        query = _compiled(where)
    except InputError:
        return  # literals alone, or a DECIMAL that is too wide
    _compare(query, events)


@pytest.mark.parametrize("product", ["n * d", "d * n", "d * d", "d * e", "v * e", "v * v", "n * d * e", "d * 99999999"])
def test_products_of_the_largest_numbers(product: str) -> None:
    """DuckDB computes DECIMALs of at most 18 digits in 64 bits, and fails where a product has more digits."""
    largest = [{name: max(_VALUES[kind]) for name, kind in COLUMNS.items()}]
    smallest = [{name: min(_VALUES[kind]) for name, kind in COLUMNS.items()}]
    _compare(_compiled(f"{product} > 2.5"), largest + smallest)


def _compare(query: CompiledQuery, events: Sequence[dict[str, Any]]) -> None:
    """Check that a reader's filter takes the same events as the evaluator."""
    read = _read(filter_sql(query.plan, query.row), events)
    batch = Events({name: (kind, [event[name] for event in events]) for name, kind in COLUMNS.items()})
    tables = snapshot(query.plan.conjuncts, [entry(0, query.row.type_texts, query.row.values)])
    matched = set(match(tables, batch).event.tolist())
    assert [number in matched for number in range(len(events))] == read, filter_sql(query.plan, query.row)


@pytest.mark.parametrize("shape", [shape for shape, _ in _SHAPES])
def test_every_shape_is_accepted_with_columns(shape: str) -> None:
    """Each generated shape has a clause that is published VIRTUAL, so the property above is of it."""
    places = next(places for known, places in _SHAPES if known == shape)
    query = _compiled(shape.format(*(next(iter(place)) for place in places)))
    assert filter_sql(query.plan, query.row)


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("lower(s) = 'intc'", "lower(s)"),
        ("s ILIKE 'in%'", "lower(s)"),
        ("s RLIKE '^a'", "s RLIKE :c0"),
        ("CAST(s AS INT) = 3", "cast(s AS INT)"),
        ("CAST(x AS BIGINT) = 3", "cast(x AS BIGINT)"),
        ("d / 3 > 1", "d / :c0"),
        ("x + d > 1", "x + d"),
        ("_time > at", "_time"),
        ("s LIKE t", "LIKE"),
        (  # the filter would double with each level
            "timestampadd(MICROSECOND, timestampdiff(MICROSECOND, at, timestampadd(MICROSECOND, v, at)), at) > at",
            "timestampadd",
        ),
    ],
)
def test_what_engines_compute_differently_is_refused_by_its_name(where: str, named: str) -> None:
    """The detail names the expression, and the hint gives a way out."""
    with pytest.raises(InputError, match="cannot be published VIRTUAL") as caught:
        _compiled(where)
    assert named in (caught.value.detail or "")
    assert "SHARED or DEDICATED" in (caught.value.hint or "")


def test_columns_with_parts_are_selected_as_they_are() -> None:
    """A stream with nested columns has virtual readers too: a column that no filter reads needs no engine's type."""
    kinds = {"n": "INT", "p": "STRUCT<a: INT>", "q": "ARRAY<STRING>", "m": "MAP<STRING, INT>"}
    destination = Destination(
        id="d_1",
        mode="virtual",
        topic="t",
        key="g_1",
        offset=[0],
        filter="n = 1",
        select="p, q, m",
        columns=[{"name": name, "type": kind} for name, kind in kinds.items()],
    )
    chosen = VirtualFilters().of(destination)
    assert chosen is not None
    nested = {"p": {"a": 2}, "q": ["a"], "m": {"x": 1}}
    assert [nested, None] == chosen([json.dumps({"n": n, **nested}).encode() for n in (1, 2)])
