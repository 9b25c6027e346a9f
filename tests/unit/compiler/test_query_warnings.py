"""An accepted query with a condition that can never hold has warnings, on the fast path as well."""

from __future__ import annotations

import pytest

from grouping.access.query_warnings import query_warnings
from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.statements.cq_text import CqText
from tests.quotes import catalog


@pytest.mark.parametrize(
    ("where", "warning"),
    [
        ("price = NULL", '"price = NULL" is never TRUE. Write price IS NULL.'),
        ("NULL = price", '"price = NULL" is never TRUE. Write price IS NULL.'),
        ("NOT (price = NULL)", '"price <> NULL" is never TRUE. Write price IS NOT NULL.'),
        ("symbol = 'A' OR price > NULL", '"price > NULL" is never TRUE. Write price IS NULL.'),
        ("symbol LIKE NULL", '"symbol LIKE NULL" is never TRUE. Write symbol IS NULL.'),
        (
            "symbol NOT IN ('A', NULL)",
            '"symbol NOT IN (…, NULL)" is never TRUE. Leave NULL out and write AND symbol IS NOT NULL.',
        ),
        (
            r"symbol RLIKE '^\\d+'",
            'The pattern of RLIKE has "\\\\d", which looks for a backslash. '
            'In a string a backslash stands for itself: write "\\d".',
        ),
    ],
)
def test_a_predicate_that_is_never_true(where: str, warning: str) -> None:
    """A comparison with NULL and a doubled backslash are accepted, with one warning."""
    query = compile_select(f"SELECT symbol FROM quotes WHERE {where}", catalog())
    assert (warning,) == query_warnings(query.plan, query.row)


@pytest.mark.parametrize(
    "where",
    [
        "price IS NULL",
        "price <=> NULL",
        "symbol IN ('A', NULL)",
        r"symbol RLIKE '\d+'",
        r"symbol = '\\d'",
        r"symbol LIKE 'C:\\%'",
        "coalesce(price, NULL) > 1",
    ],
)
def test_an_ordinary_predicate(where: str) -> None:
    """A predicate that can be TRUE has no warning."""
    query = compile_select(f"SELECT symbol FROM quotes WHERE {where}", catalog())
    assert () == query_warnings(query.plan, query.row)


@pytest.mark.parametrize(
    ("where", "written", "instead"),
    [
        ("upper(symbol) > 70", "upper(symbol)", "70.0 instead of 70"),
        ("70 <= reverse(symbol)", "reverse(symbol)", "70.0 instead of 70"),
        ("NOT trim(symbol) = 7", "trim(symbol)", "7.0 instead of 7"),
        ("symbol < volume", "symbol", "CAST(symbol AS DOUBLE)"),
        ("trim(symbol) + 1 > 70", "trim(symbol)", "CAST(trim(symbol) AS DOUBLE)"),
        ("get_json_object(symbol, '$.a') * 2 > 70", "get_json_object(symbol, '$.a')", "AS DOUBLE)"),
        ("coalesce(trim(symbol), 0) > 70", "trim(symbol)", "CAST(trim(symbol) AS DOUBLE)"),
        ("CASE WHEN price > 1 THEN trim(symbol) ELSE 0 END > 70", "trim(symbol)", "CAST(trim(symbol) AS DOUBLE)"),
        ("upper(symbol) BETWEEN 1 AND volume", "upper(symbol)", "1.0 instead of 1"),
        ("replace(symbol, 'a') > 5", "replace(symbol, 'a')", "5.0 instead of 5"),
    ],
)
def test_a_text_beside_a_whole_number(where: str, written: str, instead: str) -> None:
    """A STRING that is read as BIGINT is NULL for a fraction: the warning has the form that compares as DOUBLE."""
    text = f"CREATE CQ a AS SELECT symbol FROM quotes WHERE {where}"
    query = compile_select(text.partition(" AS ")[2], catalog())
    warnings = " ".join(query_warnings(query.plan, query.row, CqText.cut(text)))
    assert f'"{written}" is a STRING in a comparison with a whole number: it is read as BIGINT' in warnings
    assert f"{instead} to compare as DOUBLE." in warnings


def test_a_text_beside_a_whole_number_in_the_select_list() -> None:
    """A comparison in the SELECT list is NULL for a fraction as well."""
    text = "SELECT symbol, CASE WHEN trim(symbol) > 70 THEN 'high' ELSE 'low' END AS risk FROM quotes"
    query = compile_select(text, catalog())
    [warning] = query_warnings(query.plan, query.row, select=query.select)
    assert warning.startswith('"trim(symbol)" is a STRING in a comparison with a whole number')
    assert "Write 70.0 instead of 70 to compare as DOUBLE." in warning


@pytest.mark.parametrize(
    "where",
    [
        "get_json_object(symbol, '$.risk') > 70.0",
        "CAST(get_json_object(symbol, '$.risk') AS DOUBLE) > 70",
        "trim(symbol) IN (1, 2)",
        "CAST(symbol AS BIGINT) > 70",
        "bigint(symbol) > 70",
        "CAST(price AS INT) > 70",
        "volume > '70'",
    ],
)
def test_a_text_that_is_read_as_written(where: str) -> None:
    """A comparison as DOUBLE, an equality, and a CAST that the text names have no warning."""
    text = f"CREATE CQ a AS SELECT symbol FROM quotes WHERE {where}"
    query = compile_select(text.partition(" AS ")[2], catalog())
    assert () == query_warnings(query.plan, query.row, CqText.cut(text))


def test_the_fast_path_warns_too() -> None:
    """A pattern read by the fast path is looked at like the first one of its template."""
    preparer = Preparer(catalog())
    found = []
    for name, pattern in (("a", r"\d"), ("b", r"\w"), ("c", r"\\d"), ("d", r"\s")):
        text = CqText.cut(f"CREATE CQ {name} AS SELECT symbol FROM quotes WHERE symbol RLIKE '{pattern}'")
        _, query = preparer.create(text)
        found.append(len(query_warnings(query.plan, query.row)))
    assert [0, 0, 1, 0] == found
