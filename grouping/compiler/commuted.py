"""Expressions with the operands of commutative operators in a canonical order."""

from __future__ import annotations

from grouping.model.expression import Call, Expression

__all__ = ["commuted"]

_COMMUTING = frozenset(("+", "*", "&", "|", "^", "greatest", "least"))
"""Operators whose operands Spark reorders when it compares expressions of SELECT with the keys of GROUP BY."""


def commuted(expression: Expression) -> Expression:
    """Return an expression with sorted operands: the results for ``n + 1`` and ``1 + n`` are equal.

    Nested operations of one operator and type are flattened, so ``(a + b) + c`` and ``a + (b + c)`` are equal too. The
    result is only for comparison; signatures keep the query's order of operands.
    """
    if not isinstance(expression, Call):
        return expression
    args = tuple(map(commuted, expression.args))
    if expression.op in _COMMUTING:
        same = (expression.op, expression.type)
        parts = (arg.args if isinstance(arg, Call) and (arg.op, arg.type) == same else (arg,) for arg in args)
        args = tuple(sorted((part for each in parts for part in each), key=repr))
    return Call(expression.op, args, expression.type_text)
