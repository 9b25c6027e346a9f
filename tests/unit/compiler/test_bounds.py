"""Bounds checked in advance: statements that would take the compiler minutes are refused in no time."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import suppress

import pytest

from grouping.compiler.compiler import compile_select
from grouping.compiler.plan import plan_view
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.table import View
from grouping.settings.settings import Settings
from grouping.statements.command import parse
from grouping.statements.statement_size import check_words

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
    columns = ", ".join(f"n AS c{place}" for place in range(1_500))
    for level in range(25):
        catalog.add(View(f"v{level}", f"SELECT {'*' if level else columns} FROM {reads}", (reads,), ""))
        reads = f"v{level}"
    assert 1_500 == len(compile_select("SELECT * FROM v5", catalog).select.items)
    with pytest.raises(InputError) as refused:
        compile_select("SELECT c1 FROM v24", catalog)
    assert ("unsupported-query", "expression is too large") == (refused.value.code, refused.value.message[4:])
    with pytest.raises(InputError, match="too large"):
        plan_view("SELECT c1 FROM v24", catalog)


def test_views_count_by_their_words_at_each_level() -> None:
    """All nested views are parsed anew for each query: together they are no longer than a view may be."""
    catalog, reads = Catalog([_QUOTES]), "quotes"
    condition = " OR ".join(f"n > {number}" for number in range(400))
    for level in range(5):
        catalog.add(View(f"v{level}", f"SELECT * FROM {reads} WHERE {condition}", (reads,), ""))
        reads = f"v{level}"
    assert compile_select("SELECT n FROM v3", catalog)
    with pytest.raises(InputError) as refused:
        compile_select("SELECT n FROM v4", catalog)
    assert ("unsupported-query", True) == (refused.value.code, "6,000 words" in (refused.value.detail or ""))
    with pytest.raises(InputError, match="too large"):
        plan_view("SELECT n FROM v4", catalog)


def test_a_star_that_comes_twice_is_refused_at_the_second() -> None:
    """A list of a thousand stars is no list of as many times all columns."""
    with pytest.raises(InputError, match='a second column "symbol"'):
        compile_select(f"SELECT {'*, ' * 1_000} * FROM quotes", _CATALOG)


_CREATE = "CREATE CQ a AS SELECT n FROM quotes WHERE "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_CREATE + "n = 1", 12),
        (_CREATE + "n IN (1, 2.5e3, 'it''s', 4, 5)", 18),
        (_CREATE + f"n IN ({'1, ' * 2_001}2)", 182),
        (_CREATE + f"n IN ({'1, ' * 2_000}n)", 183),
        (_CREATE + f"n IN (n, {'1, ' * 2_000}2)", 2_015),
        (_CREATE + f"{'n = 1 OR ' * 1_000}n = 2", 518),
        (_CREATE + "n = 1 /* n = 1 */ -- n = 1\n OR symbol <> 'n = 1 OR n = 1'", 16),
        ('SELECT "n n n", `n n` FROM quotes', 6),
        (_CREATE + "symbol = 'never closed OR n = 1", 18),
        ("SELECT 1 /* never closed OR n = 1", 2),
    ],
)
def test_words_are_counted_before_a_statement_is_read(text: str, words: int) -> None:
    """Names, keywords and signs are words, two constants or commas one, of long lists twelve; comments are none."""
    padded = text.replace(" ", " " * 40, 1)
    check_words(padded, words)
    with pytest.raises(InputError) as refused:
        check_words(padded, words - 1)
    assert ("quota-exceeded", f"{words - 1:,} words" in (refused.value.detail or "")) == (refused.value.code, True)


@pytest.mark.parametrize(
    "condition",
    [
        "n IN (" + ", ".join(map(str, range(20_000))) + ")",
        "symbol IN (" + ", ".join(f"'{number:04x}'" for number in range(60_000)) + ")",
        " OR ".join(f"n = {number}" for number in range(10_000)),
        " AND ".join(f"symbol <> 'a{number}'" for number in range(1_000)),
    ],
)
def test_long_lists_are_read(condition: str) -> None:
    """An IN list may fill a command, and some thousand terms are in bounds."""
    check_words(_CREATE + condition, Settings().limits.statement_words)
    assert compile_select((_CREATE + condition).partition(" AS ")[2], _CATALOG)


@pytest.mark.parametrize("part", ["n = 1 OR ", "1+", "(", "'", '"', "/*", "--\n", "''''", "n,", "CASE ", "`"])
def test_half_a_megabyte_is_refused_in_no_time(part: str) -> None:
    """Or has few words: the time of a statement is bounded, as all others wait for it."""
    text = _CREATE + part * (500_000 // len(part))
    began = time.process_time()
    with suppress(InputError):
        check_words(text, Settings().limits.statement_words)
        parse(text)
    assert time.process_time() - began < 2.0
