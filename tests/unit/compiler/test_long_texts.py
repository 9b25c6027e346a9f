"""Computed texts beyond the limit are NULL, and are never made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.functions.sizes import constant_size
from grouping.functions.text_size import TextSizes
from grouping.model.expression import Call, Column, Expression, Value
from spark_jobs.engine.match.residual import evaluate_expression
from tests.unit.matching.matching import Events

_S, _N = Column("s", "STRING"), Column("n", "STRING")


def _pad(text: str, count: int, padding: str) -> str:
    missing = max(count - len(text), 0)
    return (padding * (missing + 1))[:missing] if padding else ""


_REFERENCE: dict[str, Callable[..., str | None]] = {
    "concat": lambda *parts: "".join(parts),
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "repeat": lambda text, count: text * max(count, 0),
    "lpad": lambda text, count, padding: _pad(text, count, padding) + text[: max(count, 0)],
    "rpad": lambda text, count, padding: text[: max(count, 0)] + _pad(text, count, padding),
    "translate": lambda text, old, new: text.replace(old, new),
    "upper": str.upper,
    "reverse": lambda text: text[::-1],
    "left": lambda text, count: text[: max(count, 0)],
}
"""Functions that are NULL if an argument is."""


def _reference(expression: Expression, text: str, limit: int, longest: list[int]) -> Any:
    """Return an expression's value for one value of `s`; `longest` gets the bytes of each computed text."""
    match expression:
        case Column(name):
            return text if name == "s" else None
        case Value(value):
            return value
        case Call(op, args):
            values = [_reference(argument, text, limit, longest) for argument in args]
    if op == "concat_ws":
        found = None if values[0] is None else values[0].join([value for value in values[1:] if value is not None])
    elif op == "coalesce":
        found = next((value for value in values if value is not None), None)
    else:
        found = None if None in values else _REFERENCE[op](*values)
    size = len((found or "").encode())
    longest.append(size)
    return found if size <= limit else None


_TEXTS = st.text(st.sampled_from("aab,é\U0001f600"), max_size=5)
_LETTER = st.sampled_from("ab,é").map(lambda letter: Value(letter, "STRING"))
_COUNTS = st.integers(-1, 12).map(lambda count: Value(count, "INT"))


def _calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    operands = {
        "concat": (inner, inner, inner),
        "concat_ws": (inner, inner, inner, inner),
        "coalesce": (inner, inner),
        "replace": (inner, inner, inner),
        "repeat": (inner, _COUNTS),
        "lpad": (inner, _COUNTS, inner),
        "rpad": (inner, _COUNTS, inner),
        "translate": (inner, _LETTER, _LETTER),
        "upper": (inner,),
        "reverse": (inner,),
        "left": (inner, _COUNTS),
    }
    return st.sampled_from([*operands]).flatmap(
        lambda op: st.tuples(*operands[op]).map(lambda args: Call(op, args, "STRING"))
    )


_LEAVES = st.sampled_from([_S, _S, _N]) | _TEXTS.map(lambda text: Value(text, "STRING"))
_EXPRESSIONS = _calls(st.recursive(_LEAVES, _calls, max_leaves=6))


@given(_EXPRESSIONS, st.lists(_TEXTS, min_size=1, max_size=4), st.integers(1, 60))
def test_a_text_that_is_too_long_is_null_and_the_rest_goes_on(
    expression: Expression, texts: list[str], limit: int
) -> None:
    """Each operator and function whose value passes the limit, in bytes, is NULL, for the rows where it does."""
    events = Events({"s": ("STRING", [*texts]), "n": ("STRING", [None] * len(texts))})
    expected = [_reference(expression, text, limit, []) for text in texts]
    assert expected == evaluate_expression(expression, events, np.arange(len(texts)), limit).to_pylist()


@given(_EXPRESSIONS, _TEXTS)
def test_no_text_is_longer_than_reckoned(expression: Expression, text: str) -> None:
    """The predicted sizes of an expression's texts hold for the computed texts."""
    made: list[int] = []
    _reference(expression, text, 10**9, made)
    size = len(text.encode())
    sizes = TextSizes(lambda leaf: size if leaf == _S else constant_size(leaf), 10**9)
    sizes.of(expression)
    assert max(made) <= sizes.longest


def test_what_would_fill_the_memory_is_never_made() -> None:
    """A text of 10^15 bytes, and ten thousand of a megabyte each, cost next to nothing."""
    text: Expression = _S
    for _ in range(5):
        text = Call("repeat", (text, Value(1000, "INT")), "STRING")
    length = Call("length", (Call("repeat", (_S, Value(1000, "INT")), "STRING"),), "INT")
    events = Events({"s": ("STRING", ["a" * 1000, "ab"] * 5_000)})
    rows = np.arange(10_000)
    assert [None] * 10_000 == evaluate_expression(text, events, rows).to_pylist()
    assert [10**6, 2_000] * 5_000 == evaluate_expression(length, events, rows).to_pylist()


@pytest.mark.parametrize("op", ["upper", "concat", "trim", "reverse", "greatest", "concat_ws", "nullif", "+", "%", "/"])
def test_nesting_costs_what_it_says(op: str) -> None:
    """An operand is computed once, however deep it stands: forty levels are forty steps, and not 2^40."""
    kind = "INT" if op in "+%/" else "STRING"
    column = Column("i", "INT") if kind == "INT" else _S
    value: Expression = column
    for _ in range(40):
        rest = () if op in ("upper", "trim", "reverse") else (column,) * (3 if op in ("greatest", "concat_ws") else 1)
        value = Call(op, (value, *rest), "DOUBLE" if op == "/" else kind)
    events = Events({"s": ("STRING", ["a", "b"]), "i": ("INT", [1, 2])})
    assert 2 == len(evaluate_expression(value, events, np.arange(2)))
