"""The canonical order of conjuncts, and of the operands of commutative operators."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from grouping.binding.bound import Bound, Constant, Term
from grouping.model.expression import Call, Column, Expression, Value
from grouping.model.group import ConstantValue
from grouping.plan.expression_text import render_part, render_reference, shape

__all__ = ["commuted", "order"]

_RANKS = {"=": 0, "in": 1, "<": 2, "<=": 2, ">": 2, ">=": 2}
_COMMUTING = frozenset(("=", "<>", "<=>"))
_COMPUTING = frozenset(("+", "*", "&", "|", "^", "greatest", "least"))
"""Operators whose operands Spark may reorder when it compares expressions with the keys of GROUP BY."""
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}

PartOrder = tuple[int, str, str, tuple[Any, ...]]
"""The sort key of a part: rank, column of a plain comparison, text with ``:c`` for constants, and the constants."""


def order(conjuncts: Iterable[Bound]) -> tuple[tuple[Bound, ...], bool]:
    """Return conjuncts, and the operands within them, in canonical order.

    Returns:
        The conjuncts, and whether constants decided the order. Constants decide the order of parts whose
        texts differ only in constants.
    """
    orderer = _Orderer()
    keyed = orderer.sort([orderer.canonical(conjunct) for conjunct in conjuncts])
    return tuple(part for part, _ in keyed), orderer.ties


class _Orderer:
    def __init__(self) -> None:
        self.ties = False

    def sort(self, keyed: list[tuple[Bound, PartOrder]]) -> list[tuple[Bound, PartOrder]]:
        ordered = sorted(keyed, key=lambda pair: pair[1])
        for (_, one), (_, other) in zip(ordered, ordered[1:], strict=False):
            if one[2] == other[2] and one[3]:
                self.ties = True
        return ordered

    def canonical(self, bound: Bound) -> tuple[Bound, PartOrder]:
        """Return a part in canonical order, with its sort key."""
        if isinstance(bound, Column):
            return bound, (9, "", render_reference(bound.reference), ())
        if isinstance(bound, Constant):
            return bound, (10, "", ":c", (_constant_key(bound),))
        if isinstance(bound, Value):
            return bound, (9, "", render_part(bound), ())
        parts = [self.canonical(argument) for argument in bound.args]
        op = bound.op
        if op in ("and", "or"):
            parts = self.sort(parts)
        elif len(parts) == 2 and (op in _COMMUTING or op in _TURNED):
            op, parts = self._sides(op, parts)
        term = Term(op, tuple(part for part, _ in parts), bound.type)
        inner = [part.op if isinstance(part, Term) else "" for part, _ in parts]
        text = shape(op, [key[2] for _, key in parts], inner, str(bound.type))
        constants = tuple(constant for _, key in parts for constant in key[3])
        plain = isinstance(term.args[0], Column) and len(term.args) == 2 and isinstance(term.args[1], Constant)
        rank = _RANKS.get(op, 3) if plain else 3
        return term, (rank, parts[0][1][2] if plain else "", text, constants)

    def _sides(self, op: str, parts: list[tuple[Bound, PartOrder]]) -> tuple[str, list[tuple[Bound, PartOrder]]]:
        """Return an operator with both sides in order; if the sides differ only in constants, ``>`` becomes ``<``."""
        left, right = parts[0][1], parts[1][1]
        if op in _COMMUTING:
            return op, self.sort(parts)
        if (left[0] == 10, left[2]) > (right[0] == 10, right[2]) or (left[2] == right[2] and op in (">", ">=")):
            return _TURNED[op], [parts[1], parts[0]]
        return op, parts


def _constant_key(constant: Constant) -> tuple[Any, ...]:
    """Return a sort key for constants of any types: NULLs come last, and sets are compared by their members."""
    kind = str(constant.type.member)
    if constant.type.is_set:
        return (2, *[_value_key(value, kind) for value in constant.value])  # type: ignore[union-attr]
    return _value_key(constant.value, kind)


def _value_key(value: ConstantValue, kind: str) -> tuple[Any, ...]:
    if isinstance(value, str):
        return (0, "text", value, kind)
    if value is None:
        return (1, kind)
    return (0, "time", value.isoformat(), kind) if isinstance(value, date) else (0, "number", value, kind)


def commuted(expression: Expression) -> Expression:
    """Return an expression with sorted operands, so that ``n + 1`` equals ``1 + n``.

    Nested operations of one operator and type are flattened, so ``(a + b) + c`` and ``a + (b + c)`` are equal too. The
    result is only for comparison; signatures keep the query's order of operands.
    """
    if not isinstance(expression, Call):
        return expression
    args = tuple(map(commuted, expression.args))
    if expression.op in _COMPUTING:
        same = (expression.op, expression.type)
        parts = (arg.args if isinstance(arg, Call) and (arg.op, arg.type) == same else (arg,) for arg in args)
        args = tuple(sorted((part for each in parts for part in each), key=repr))
    return Call(expression.op, args, expression.type_text)
