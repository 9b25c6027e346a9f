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


def test_the_fast_path_warns_too() -> None:
    """A pattern read by the fast path is looked at like the first one of its template."""
    preparer = Preparer(catalog())
    found = []
    for name, pattern in (("a", r"\d"), ("b", r"\w"), ("c", r"\\d"), ("d", r"\s")):
        text = CqText.cut(f"CREATE CQ {name} AS SELECT symbol FROM quotes WHERE symbol RLIKE '{pattern}'")
        _, query = preparer.create(text)
        found.append(len(query_warnings(query.plan, query.row)))
    assert [0, 0, 1, 0] == found
