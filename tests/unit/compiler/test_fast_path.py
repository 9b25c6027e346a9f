"""The fast path compiles a text to what the whole path makes of it, also where a literal is inlined.

`tests/fuzz` draws random texts; the templates here, and the seeds of that generator, were compiled wrongly once.
"""

from __future__ import annotations

import random

import pytest

from grouping.compiler.prepared import Preparer
from tests.fuzz.inlined_texts import inlined_catalog
from tests.fuzz.surfaces import SURFACES, outcome

_TEMPLATES = {
    "a column of a subquery": (
        "SELECT s.worth FROM (SELECT symbol, price * {} AS worth FROM quotes) s WHERE s.worth > 100",
        ("2.0", "3.0"),
    ),
    "a constant column, read as DATE and TIMESTAMP": (
        "SELECT symbol FROM (SELECT symbol, d, at, DATE {} AS k FROM quotes) s WHERE d > k AND at > k",
        ("'2026-01-01'", "'2026-02-02'"),
    ),
    "a DATE between a DATE and a TIMESTAMP": (
        "SELECT symbol FROM quotes WHERE DATE {} BETWEEN d AND at",
        ("'2026-01-01'", "'2026-02-02'"),
    ),
    "ON of a LEFT JOIN": (
        "SELECT q.symbol, p.staff FROM quotes q LEFT JOIN profiles p ON q.symbol = p.symbol AND p.staff > {}"
        " WHERE p.staff < 9",
        ("2", "3"),
    ),
    "ON of a LEFT JOIN whose table is not shown": (
        "SELECT q.symbol FROM quotes q LEFT JOIN owners p ON q.symbol = p.symbol AND p.owner = {} WHERE p.shares < 9",
        ("'a'", "'b'"),
    ),
    "a key of a join": (
        "SELECT s.symbol FROM (SELECT symbol, symbol || {} AS k FROM quotes) s JOIN profiles p ON s.k = p.symbol"
        " WHERE s.k <> 'x'",
        ("'a'", "'b'"),
    ),
    "WHERE of a subquery that is joined": (
        "SELECT q.symbol, p.staff FROM quotes q LEFT JOIN (SELECT * FROM profiles WHERE staff > {}) p"
        " ON q.symbol = p.symbol WHERE p.staff < 9",
        ("2", "3"),
    ),
    "an alias in HAVING": (
        "SELECT symbol, sum(price) * {} AS x FROM quotes GROUP BY symbol HAVING x > 100 EVERY '1 minute'",
        ("2.0", "3.0"),
    ),
    "a column of a subquery in an aggregate": (
        "SELECT symbol, sum(worth) AS x FROM (SELECT symbol, price * {} AS worth FROM quotes) s WHERE worth > 7"
        " GROUP BY symbol EVERY '1 minute'",
        ("2.0", "3.0"),
    ),
    "an alias in GROUP BY": (
        "SELECT k FROM (SELECT volume % {} AS k FROM quotes) s WHERE k > 0 GROUP BY k EVERY '1 minute'",
        ("2", "3"),
    ),
    "a lambda's constant beside a tie": (
        "SELECT symbol FROM quotes WHERE price > {} AND price > 7"
        " AND size(transform(array(i), x -> x + 3000000000)) > 1",
        ("5", "9"),
    ),
}


@pytest.mark.parametrize("name", _TEMPLATES)
def test_a_literal_in_several_places(name: str) -> None:
    """Two texts that differ in one literal, each sent twice, in turns."""
    template, literals = _TEMPLATES[name]
    preparer = Preparer(inlined_catalog())
    wholes = []
    for literal in (*literals, *literals):
        text = f"CREATE CQ c AS {template.format(literal)}"
        whole = outcome(Preparer(inlined_catalog()), text)
        assert whole == outcome(preparer, text), text
        wholes.append(whole)
    assert wholes[0] != wholes[1], "the literal matters"


@pytest.mark.parametrize("seed", [102, 131, 140, 214, 448, 510, 511, 589])
def test_seeds_that_failed(seed: int) -> None:
    """Random templates of which the fast path once made something else, or raised StopIteration."""
    SURFACES["fast path"](random.Random(seed))
