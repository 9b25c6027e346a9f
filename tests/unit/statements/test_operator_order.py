"""Operators are applied in Spark's order; a text that Spark reads otherwise than sqlglot, or not at all, is refused."""

from __future__ import annotations

import pytest

from grouping.compiler.compiler import compile_select
from grouping.model.errors import InputError
from tests.quotes import catalog

_SAME = [
    ("'a' || i + 2 = 5", "('a' || i) + 2 = 5"),
    ("i + 2 || 'a' = symbol", "(i + 2) || 'a' = symbol"),
    ("symbol || i - 1 || name = 'b'", "((symbol || i) - 1) || name = 'b'"),
    ("symbol || i + 2 - 1 = 5", "((symbol || i) + 2) - 1 = 5"),
    ("symbol || i * 2 = 'b'", "symbol || (i * 2) = 'b'"),
    ("symbol || (i + 2) = 'b'", "symbol || (((i + 2))) = 'b'"),
    ("flag = (i IS NULL)", "(i IS NULL) = flag"),
    ("i BETWEEN 1 AND 2 AND price IS NULL", "(i BETWEEN 1 AND 2) AND (price IS NULL)"),
    ("i IS DISTINCT FROM 5 AND price < 3", "(i IS DISTINCT FROM 5) AND (price < 3)"),
    ("CASE WHEN i IS NULL THEN price ELSE 1 END < 5", "(CASE WHEN (i IS NULL) THEN price ELSE 1 END) < 5"),
    ("exists(array(flag), x -> ! x)", "exists(array(flag), x -> NOT x)"),
    (
        "isnull(i) AND like(symbol, 'a') AND symbol NOT LIKE 'b'",
        "i IS NULL AND symbol LIKE 'a' AND NOT symbol LIKE 'b'",
    ),
]
_REFUSED = {
    "syntax-error": [
        "i ! IN (1, 2)", "i ! BETWEEN 1 AND 2", "symbol ! LIKE 'a'", "i IS ! NULL", "i NOT NULL", "i ISNULL",
        "i NOTNULL",
        "symbol LIKE ALL ()", "symbol LIKE ANY ()", "symbol NOT LIKE ALL ()", "i IN ()", "CAST(i AS DECIMAL()) = 1",
    ],
    "unsupported-query": [
        "flag = i IS NULL", "flag IS NULL = flag", "i = 1 IS NULL", "flag = symbol LIKE 'a'", "i IN (1) IS NULL",
        "flag BETWEEN flag AND flag = flag", "i IS NULL IS NULL", "flag < flag IS TRUE", "i & 3 || 'a' = 'b'",
        "i << 1 || 'a' = 'b'", "at + INTERVAL '1' MONTH TO YEAR > at", "getbit(i, 32) = 1", "getbit(volume, -1) = 1",
    ],
    "type-mismatch": ["at + INTERVAL 1 YEAR TO MONTH > at", "at + INTERVAL -1 DAY TO HOUR > at"],
}  # fmt: skip


def _compiled(where: str) -> tuple[str, tuple[object, ...]]:
    query = compile_select(f"SELECT symbol FROM quotes WHERE {where}", catalog())
    return query.plan.signature, query.row.values


@pytest.mark.parametrize(("bare", "parted"), _SAME)
def test_parentheses_that_tell_the_order_change_nothing(bare: str, parted: str) -> None:
    """The condition without parentheses is the one with them."""
    assert _compiled(bare) == _compiled(parted)


@pytest.mark.parametrize(("code", "where"), [(code, where) for code, texts in _REFUSED.items() for where in texts])
def test_refused(code: str, where: str) -> None:
    """Each is refused by the gateway's own error."""
    with pytest.raises(InputError) as refusal:
        _compiled(where)
    assert code == refusal.value.code
