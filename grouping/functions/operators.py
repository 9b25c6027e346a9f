"""The operators of expressions, including operators that only the compiler makes."""

from __future__ import annotations

from typing import NamedTuple

from grouping.functions.function import ResultRule
from grouping.functions.results import arithmetic, chosen, of_first, widest
from grouping.functions.sizes import SizeRule, cast, first, longest, total
from grouping.model.expression import LEFT_ON
from grouping.model.sql_type import BIGINT, BOOLEAN, SqlType

__all__ = ["OPERATORS", "OperatorRow"]


class OperatorRow(NamedTuple):
    """The result of an operator; the fields have the meaning of the same fields of `Function`."""

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
    "aggregate": OperatorRow(),  # `plan.expression_text.AGGREGATE`: an aggregate in HAVING
}
"""The operators by their name in compiled calls."""
