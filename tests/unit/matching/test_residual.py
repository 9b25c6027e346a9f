"""Predicates on candidate pairs: three-valued, exact, with another constant in each row."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Expression, Slot, Value
from spark_jobs.engine.match.evaluate import match
from spark_jobs.engine.match.residual import evaluate_expression
from tests.unit.matching.matching import Events, compare, destination, entry, found, snapshot

_S, _I, _L, _X = Column("s", "STRING"), Column("i", "INT"), Column("l", "BIGINT"), Column("x", "DOUBLE")


def _call(op: str, *args: Expression, kind: str = "BOOLEAN") -> Call:
    return Call(op, args, kind)


@pytest.mark.parametrize(
    ("pattern", "escape", "matched"),
    [
        ("a%", "!", ["a", "ab", "a\nb", "a%"]),
        ("a_b", "!", ["a\nb"]),
        ("a!%", "!", ["a%"]),
        ("_", "!", ["a", "\U0001f600"]),
        ("%.%", "!", ["x.y"]),
        ("%", "!", ["", "a", "ab", "a\nb", "a%", "\U0001f600", "x.y"]),
        (None, "!", []),
    ],
)
def test_like_with_a_pattern_per_row(pattern: str | None, escape: str, matched: list[str]) -> None:
    """LIKE sees code points and line ends, and nothing in a pattern is a regular expression."""
    texts = ["", "a", "ab", "a\nb", "a%", "\U0001f600", "x.y", None]
    types = ("STRING", "STRING")
    rows = [entry(0, types, (pattern, escape)), entry(1, types, ("never", escape))]
    result = match(snapshot([_call("like", _S, Slot(0), Slot(1))], rows), Events({"s": ("STRING", texts)}))
    assert [(texts.index(text), destination(0)) for text in matched] == found(result)


def test_unknown_is_no_match_and_not_unknown_is_none_either() -> None:
    """A row matches only when its predicate is TRUE, also below NOT, AND and OR."""
    greater = _call(">", _I, Slot(0))
    events = Events({"i": ("INT", [None, 1, 9]), "s": ("STRING", ["x", None, "x"])})
    rows = [entry(0, ("BIGINT", "STRING"), (5, "x"))]
    either = _call("or", greater, _call("=", _S, Slot(1)))
    neither = _call("not", either)
    assert [(0, destination(0)), (2, destination(0))] == found(match(snapshot([either], rows), events))
    assert [] == found(match(snapshot([neither], rows), events))


def test_filters_select_events_before_the_look_up() -> None:
    """Conjuncts without constants, and keys and residuals beside them, all hold."""
    plan = [compare("i", "=", "INT", 0), _call("is_null", _S), _call("<", _call("+", _L, _I, kind="BIGINT"), Slot(1))]
    events = Events(
        {"i": ("INT", [1, 1, 1, 2]), "s": ("STRING", [None, "x", None, None]), "l": ("BIGINT", [1, 1, 2**63 - 1, 1])}
    )
    result = match(snapshot(plan, [entry(0, ("BIGINT", "BIGINT"), (1, 10))]), events)
    assert [(0, destination(0))] == found(result)  # the third one's sum overflows: NULL


def test_decimals_compare_exactly_inside_or() -> None:
    """Beside exact columns no comparison passes through DOUBLE."""
    below, above = compare("l", "<", "BIGINT", 0), compare("d", ">", "DECIMAL(38,2)", 1)
    near = Decimal(2**53) + Decimal("0.5")
    events = Events(
        {
            "l": ("BIGINT", [2**53, 2**53 + 1, 2**53 + 1]),
            "d": ("DECIMAL(38,2)", [Decimal(0), Decimal("9" * 30 + ".99"), Decimal("9" * 30 + ".98")]),
        }
    )
    rows = [entry(0, ("NUMERIC", "NUMERIC"), (near, Decimal("9" * 30 + ".985")))]
    result = match(snapshot([_call("or", below, above)], rows), events)
    assert [(0, destination(0)), (1, destination(0))] == found(result)


@pytest.mark.parametrize("count", [1, 2])
def test_division_is_the_same_for_one_event_and_for_many(count: int) -> None:
    """The last digit of a quotient does not depend on other events of the batch."""
    events = Events({"x": ("DOUBLE", [5.0] * count)})
    quotient = _call("/", _X, Value(3.0, "DOUBLE"), kind="DOUBLE")
    assert [5.0 / 3.0] * count == evaluate_expression(quotient, events, np.arange(count)).to_pylist()


_TEXTS: list[object] = ["a", "B", "b", "c", None]


@pytest.mark.parametrize(
    ("negated", "members", "matched"),
    [
        (False, ("A", "B"), [0, 1, 2]),
        (True, ("A", "B"), [3]),
        (False, ("A", "B", None), [0, 1, 2]),
        (True, ("A", "B", None), []),
        (False, (None, None), []),
    ],
)
def test_membership_of_an_expression(negated: bool, members: tuple[object, ...], matched: list[int]) -> None:
    """IN over an expression looks a list up, with SQL's answer where either side is NULL, and another list per row."""
    member = _call("in", _call("upper", _S, kind="STRING"), Slot(0))
    rows = [entry(0, ("SET<STRING>",), (members,)), entry(1, ("SET<STRING>",), (("never", "ever"),))]
    result = match(snapshot([_call("not", member) if negated else member], rows), Events({"s": ("STRING", _TEXTS)}))
    assert [(row, destination(0)) for row in matched] == [hit for hit in found(result) if hit[1] == destination(0)]


def test_membership_of_a_sum_with_a_constant_of_its_own() -> None:
    """The needle may hold slots too; exact numbers of any kind are met exactly."""
    member = _call("in", _call("+", _L, Slot(0), kind=""), Slot(1))
    types = ("INT", "SET<NUMERIC>")
    rows = [entry(0, types, (1, (Decimal("2.5"), Decimal(2**53 + 2)))), entry(1, types, (2, (Decimal(4), Decimal(5))))]
    result = match(snapshot([member], rows), Events({"l": ("BIGINT", [2**53 + 1, 2**53, 2, 2**63 - 1, None])}))
    assert [(0, destination(0)), (2, destination(1))] == found(result)


def test_many_conjuncts_are_evaluated_together() -> None:
    """A conjunction of thousands holds where each part does."""
    parts = [_call("<>", _call("+", _I, Slot(i), kind=""), _I) for i in range(1000)]
    rows = [entry(0, ("INT",) * 1000, (1,) * 1000), entry(1, ("INT",) * 1000, (*(1,) * 999, 0))]
    assert [(0, destination(0))] == found(match(snapshot(parts, rows), Events({"i": ("INT", [5, None])})))


@pytest.mark.parametrize("op", ["round", "bround"])
@given(st.lists(st.one_of(st.floats(), st.integers(-(10**6), 10**6).map(lambda n: n / 2)), min_size=1, max_size=20))
def test_rounding_to_whole_numbers(op: str, values: list[float]) -> None:
    """Without a scale, where it is computed by arrays, a double is rounded as its decimal form is with scale 0."""
    values += [math.nextafter(value, direction) for value in values for direction in (-math.inf, math.inf)]
    events = Events({"x": ("DOUBLE", list(values))})
    rows = np.arange(len(values), dtype=np.int32)
    whole = evaluate_expression(_call(op, _X, kind="DOUBLE"), events, rows)  # type: ignore[arg-type]
    scaled = evaluate_expression(_call(op, _X, Value(0, "INT"), kind="DOUBLE"), events, rows)  # type: ignore[arg-type]
    assert list(map(repr, scaled.to_pylist())) == list(map(repr, whole.to_pylist()))
