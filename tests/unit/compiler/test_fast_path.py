"""The fast path compiles a text to the same result as the whole path, even where a literal is inlined.

`tests/fuzz` draws random texts; the templates here, and the seeds of that generator, were compiled wrongly once.
"""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest

from grouping.compiler.literal_differences import differ_in_literals
from grouping.compiler.prepared import Preparer
from grouping.model.group import ConstantRow
from grouping.statements.cq_text import CqText
from tests.fuzz.inlined_texts import inlined_catalog
from tests.fuzz.surfaces import SURFACES, outcome

_TEMPLATES = {
    "a literal that IN compares twice with one column": (
        "SELECT symbol FROM quotes WHERE {} IN (i, 3, i)",
        ("1", "0"),
    ),
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
    """Two texts with one different literal, each sent twice, in turns."""
    template, literals = _TEMPLATES[name]
    preparer = Preparer(inlined_catalog())
    wholes = []
    for literal in (*literals, *literals):
        text = f"CREATE CQ c AS {template.format(literal)}"
        whole = outcome(Preparer(inlined_catalog()), text)
        assert whole == outcome(preparer, text), text
        wholes.append(whole)
    assert wholes[0] != wholes[1], "the literal matters"


def test_a_wider_number_in_a_list() -> None:
    """All operands of IN are compared as one type, so a number that no DECIMAL holds beside them is refused."""
    preparer = Preparer(inlined_catalog())
    for number in ("5e0", "7e0", "1e40"):
        text = f"CREATE CQ c AS SELECT symbol FROM quotes WHERE -5 IN (i, -1, {number})"
        assert outcome(Preparer(inlined_catalog()), text) == outcome(preparer, text), text


@pytest.mark.parametrize("condition", ["{} IN (i, -1, {})", "{} IN (amount, {}, 2e0)", "{} IN (i, {})", "{1} IN (i)"])
def test_a_double_before_a_list(condition: str) -> None:
    """A DOUBLE before IN and a number too wide for a DECIMAL turn all constants into DOUBLEs, in any order of texts."""
    numbers = ("5", "5e0", "5.5", "1e40", "1e-40", "1e30")
    preparer = Preparer(inlined_catalog())
    for pair in [*itertools.product(numbers, repeat=2)] * 2:
        text = f"CREATE CQ c AS SELECT symbol FROM quotes WHERE {condition.format(*pair)}"
        assert outcome(Preparer(inlined_catalog()), text) == outcome(preparer, text), text


@pytest.mark.parametrize("seed", [102, 131, 140, 214, 448, 510, 511, 589])
def test_seeds_that_failed(seed: int) -> None:
    """Random templates of which the fast path once made something else, or raised StopIteration."""
    SURFACES["fast path"](random.Random(seed))


@pytest.mark.parametrize("name", sorted(_TEMPLATES.keys() - {"ON of a LEFT JOIN whose table is not shown"}))
def test_templates_that_earlier_versions_compiled_wrongly_are_known(name: str) -> None:
    """Stored CQs of each template are compared with their texts; the second text must be found different."""
    template, literals = _TEMPLATES[name]
    preparer = Preparer(inlined_catalog())
    texts = [CqText.cut(f"CREATE CQ c AS {template.format(literal)}") for literal in literals]
    assert [True, True] == [preparer.has_fixed_literals(text) for text in texts]
    first, second = (preparer.create(text)[1] for text in texts)
    assert differ_in_literals(first, second)
    assert not differ_in_literals(second, preparer.create(texts[1])[1])


def test_a_template_that_is_right_by_construction() -> None:
    """A template whose literals are constants of the row, or belong to clauses, needs no look at its CQs."""
    preparer = Preparer(inlined_catalog())
    for where in ("symbol = 'a' AND price < 5", "symbol IN ('a', 'b') OR volume BETWEEN 1 AND 5"):
        text = CqText.cut(f"CREATE CQ c AS SELECT symbol FROM quotes WHERE {where} EVERY '10 minutes'")
        assert not preparer.has_fixed_literals(text)
    assert not preparer.has_fixed_literals(CqText.cut("CREATE CQ é AS SELECT symbol FROM quotes WHERE price < 5"))


def test_another_canonical_form_has_the_same_literals() -> None:
    """A stored form of an earlier release with conjuncts in a different order is not taken for a wrong form."""
    preparer = Preparer(inlined_catalog())
    texts = ("price > 5 AND volume < 7", "price > 5 AND volume < 8")
    right, wrong = (
        preparer.create(CqText.cut(f"CREATE CQ c AS SELECT symbol FROM quotes WHERE {where}"))[1] for where in texts
    )
    plan, row = right.plan, right.row
    swapped = ConstantRow(row.types[::-1], row.values[::-1])
    conjuncts = tuple(msgspec.structs.replace(each, op="of an earlier form") for each in plan.conjuncts)
    earlier = msgspec.structs.replace(right, plan=msgspec.structs.replace(plan, conjuncts=conjuncts), row=swapped)
    assert not differ_in_literals(earlier, right)
    assert differ_in_literals(earlier, wrong)
    assert differ_in_literals(msgspec.structs.replace(right, row=swapped), right)
