"""The operators of expressions: those that SQL writes with signs and words, and those that only the compiler makes."""

from __future__ import annotations

from typing import NamedTuple

from grouping.functions.function import ResultRule
from grouping.functions.results import arithmetic, chosen, of_first, widest
from grouping.functions.sizes import SizeRule, cast, first, longest, total
from grouping.model.expression import LEFT_ON
from grouping.model.sql_type import BIGINT, BOOLEAN, SqlType

__all__ = ["OPERATORS", "OperatorRow"]


class OperatorRow(NamedTuple):
    """The result of an operator; both fields mean what they mean for a `Function`."""

    result: SqlType | ResultRule | None = None
    size: SizeRule | None = None


OPERATORS: dict[str, OperatorRow] = {
    **dict.fromkeys("= <> < <= > >= <=> and or not in is_null between".split(), OperatorRow(BOOLEAN)),
    **{op: OperatorRow(arithmetic(op)) for op in "+-*/%"},
    **dict.fromkeys("&|^", OperatorRow(widest)),
    **dict.fromkeys(("neg", "~"), OperatorRow(of_first)),
    "div": OperatorRow(BIGINT),
    "case": OperatorRow(chosen, longest),
    "cast": OperatorRow(size=cast),
    **{f"{name} to scale": OperatorRow() for name in ("round", "bround", "floor", "ceil")},
    **dict.fromkeys(("field", "element", "split by pattern", "substring of bytes"), OperatorRow(size=first)),
    **dict.fromkeys(("array numbered", "array or none", "reverse array"), OperatorRow(size=first)),
    **dict.fromkeys(("arrays paired", "concat arrays", "maps merged"), OperatorRow(size=total)),
    LEFT_ON: OperatorRow(),
    "aggregate": OperatorRow(),  # `plan.expression_text.AGGREGATE`, which stands for an aggregate in HAVING
}
"""By the name under which the compiler makes calls of them."""
