"""Expressions with their operands in a canonical order, wherever order makes no difference."""

from __future__ import annotations

from grouping.model.expression import Call, Expression

__all__ = ["commuted"]

_COMMUTING = frozenset(("+", "*", "&", "|", "^", "greatest", "least"))
"""Operators that commute when Spark compares SELECT with the keys of GROUP BY."""


def commuted(expression: Expression) -> Expression:
    """Return an expression that is equal for ``n + 1`` and ``1 + n``, and for ``(a + b) + c`` of one type.

    The result is for comparing: signatures keep the order in which a query has them.
    """
    if not isinstance(expression, Call):
        return expression
    args = tuple(map(commuted, expression.args))
    if expression.op in _COMMUTING:
        same = (expression.op, expression.type)
        parts = (arg.args if isinstance(arg, Call) and (arg.op, arg.type) == same else (arg,) for arg in args)
        args = tuple(sorted((part for each in parts for part in each), key=repr))
    return Call(expression.op, args, expression.type_text)
