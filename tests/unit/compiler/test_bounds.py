"""What is bounded before it is made: statements that would take the compiler minutes are refused in no time."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from grouping.compiler.compiler import compile_select
from grouping.compiler.plan import plan_view
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.view import View
from grouping.statements.least_size import check_least_size

_COLUMNS = (StreamColumn("symbol", "STRING"), StreamColumn("n", "INT"))
_QUOTES = Stream("s_1", "quotes", _COLUMNS, "quotes", "json", {"0": 0}, "2026-11-21T00:00:00Z")
_CATALOG = Catalog([_QUOTES])


def _nested(form: str, levels: int, innermost: str = "n") -> str:
    for _ in range(levels):
        innermost = form.format(innermost)
    return innermost


@pytest.mark.parametrize(
    "value",
    [
        _nested("CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 END", 30),
        _nested("nanvl({}, 1)", 60),
        _nested("CASE WHEN {} BETWEEN 1 AND 2 THEN 3 END", 30),
        _nested("reduce(array(1), {}, (a, b) -> a + b, a -> a + a)", 30),
    ],
)
def test_operands_that_are_repeated_at_each_level_are_refused(value: str) -> None:
    """Thirty levels would be 2^30 operators: they are counted, and none is made."""
    began = time.process_time()
    with pytest.raises(InputError, match="expression is too large"):
        compile_select(f"SELECT n FROM quotes WHERE {value} = 3", _CATALOG)
    assert time.process_time() - began < 10.0


@pytest.mark.parametrize(
    ("select", "each", "between"),
    [
        ("SELECT {} FROM quotes", "sequence(1, 1000) AS c{}", ", "),
        ("SELECT n FROM quotes WHERE 1 IN ({})", "size(sequence(1, 1000))", ", "),
        ("SELECT n FROM quotes WHERE {}", "size(sequence(1, 1000)) > {}", " AND "),
    ],
)
def test_sequences_count_by_their_length(select: str, each: str, between: str) -> None:
    """A few long ones are fine; thousands of them in a short text are refused before they are made."""
    few, many = (between.join(each.format(place) for place in range(count)) for count in (10, 2_000))
    assert compile_select(select.format(few), _CATALOG)
    tracemalloc.start()
    with pytest.raises(InputError, match="expression is too large"):
        compile_select(select.format(many), _CATALOG)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 40_000_000


def test_views_count_by_their_columns_at_each_level() -> None:
    """A view over a view over a view may have many columns, and not at each of many levels."""
    catalog, reads = Catalog([_QUOTES]), "quotes"
    columns = ", ".join(f"n AS c{place}" for place in range(2_000))
    for level in range(25):
        catalog.add(View(f"v{level}", f"SELECT {'*' if level else columns} FROM {reads}", (reads,), ""))
        reads = f"v{level}"
    assert 2_000 == len(compile_select("SELECT * FROM v5", catalog).select.items)
    with pytest.raises(InputError) as refused:
        compile_select("SELECT c1 FROM v24", catalog)
    assert ("unsupported-query", "expression is too large") == (refused.value.code, refused.value.message[4:])
    with pytest.raises(InputError, match="too large"):
        plan_view("SELECT c1 FROM v24", catalog)


def test_a_star_that_comes_twice_is_refused_at_the_second() -> None:
    """A list of a thousand stars is no list of as many times all columns."""
    with pytest.raises(InputError, match='a second column "symbol"'):
        compile_select(f"SELECT {'*, ' * 1_000} * FROM quotes", _CATALOG)


@pytest.mark.parametrize(
    "where",
    [
        " AND ".join(f"n > {number}" for number in range(40)),
        "exists(array(1), x -> " + " OR ".join(["x <= n"] * 40) + ")",
        "symbol = 'a' AND n IN (SELECT n FROM t WHERE " + " AND ".join(["n >= 1"] * 40) + ")",
        " AND ".join(["n <> 1"] * 120),
    ],
)
def test_a_predicate_too_large_in_any_case_is_refused_unread(where: str) -> None:
    """Comparisons with < and its like are three nodes each, whatever becomes of them; AND keeps both sides."""
    text = f"CREATE CQ a AS SELECT n FROM quotes WHERE {where}"
    check_least_size(text, 120)
    with pytest.raises(InputError) as refused:
        check_least_size(text, 119)
    assert "quota-exceeded" == refused.value.code
    assert "Its normal form has at least 120 operators, columns and constants, and the limit is 119." == (
        refused.value.detail
    )


@pytest.mark.parametrize(
    "text",
    [
        "CREATE CQ a AS SELECT n FROM quotes WHERE " + " OR ".join(f"n = {number}" for number in range(100)),
        "CREATE CQ a AS SELECT n FROM quotes WHERE n IN (" + ", ".join(map(str, range(100))) + ")",
        "CREATE CQ a AS SELECT " + ", ".join(f"n < {number} AS c{number}" for number in range(100)) + " FROM quotes",
        "CREATE CQ a AS SELECT count(*) FILTER (WHERE n < 1 AND n > 2) AS c FROM quotes GROUP BY n < 1 HAVING n < 5",
        "CREATE CQ a AS SELECT n FROM quotes WHERE size(CAST(v AS ARRAY<ARRAY<INT>>)) = 1",
        "CREATE CQ a AS SELECT n FROM quotes WHERE symbol = '" + "<" * 100 + "'",
        "CREATE CQ a AS SELECT n FROM quotes WHERE NOT ("
        + " AND ".join(f"n <> {number}" for number in range(99))
        + ")",
        "CREATE CQ a AS SELECT n FROM quotes WHERE symbol = 'never closed",
    ],
)
def test_a_predicate_that_may_be_small_is_read(text: str) -> None:
    """A set is one constant however it is written, and only WHERE has a normal form."""
    check_least_size(text, 3)


def test_a_select_list_has_a_bound_of_its_own() -> None:
    """Ten thousand columns may be written out."""
    columns = [f"array(n, {number}) AS c{number}" for number in range(10_001)]
    check_least_size(f"CREATE CQ a AS SELECT {', '.join(columns[1:])} FROM quotes JOIN t ON a = b, c", 100)
    with pytest.raises(InputError) as refused:
        check_least_size(f"CREATE CQ a AS SELECT {', '.join(columns)} FROM quotes", 100)
    assert ("quota-exceeded", "It has 10,001 columns, and the limit is 10,000.") == (
        refused.value.code,
        refused.value.detail,
    )
