"""Warnings about an accepted query with a condition that can never hold as intended."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grouping.model.expression import Call, Column, Expression, Slot, walk
from grouping.model.group import ConstantRow, ConstantValue
from grouping.plan.expression_text import render_part
from grouping.plan.group import GroupPlan

__all__ = ["query_warnings"]

_COMPARING = frozenset(("=", "<>", "<", "<=", ">", ">=", "like", "rlike"))
_NOT_NULL = frozenset(("<>",))
_DOUBLED = re.compile(r"\\\\[dwsbDWSB.+*?()\[\]{}|^$]")
"""Two backslashes before a sign that a single backslash would make special or plain."""


def query_warnings(plan: GroupPlan, row: ConstantRow) -> tuple[str, ...]:
    r"""Return warnings of oddities in the predicate of a query with these constants, each text once.

    Two mistakes are found: a comparison with NULL, which is never TRUE, and a regular expression with doubled
    backslashes, which look for backslashes in the text.

    Example:
        >>> equal = Call("=", (Column("price", "DOUBLE"), Slot(0)), "BOOLEAN")
        >>> query_warnings(GroupPlan("g_1", "s_1", "", (equal,)), ConstantRow(("DOUBLE",), (None,)))
        ('"price = NULL" is never TRUE. Write price IS NULL.',)
        >>> query_warnings(GroupPlan("g_1", "s_1", "", (equal,)), ConstantRow(("DOUBLE",), (1.0,)))
        ()
    """
    if not _may_be_odd(row):
        return ()
    parts = (*plan.conjuncts, *(plan.kept.having if plan.kept is not None else ()))
    calls = (node for part in parts for node in walk(part) if isinstance(node, Call))
    return tuple(dict.fromkeys(text for call in calls for text in _warnings(call, row)))


def _may_be_odd(row: ConstantRow) -> bool:
    """Return whether a constant is NULL, has NULL in it, or has two backslashes; nearly no query has one."""
    return any(
        value is None or (isinstance(value, tuple) and None in value) or (isinstance(value, str) and "\\\\" in value)
        for value in row.values
    )


def _warnings(call: Call, row: ConstantRow) -> Iterator[str]:
    if call.op == "not" and isinstance(inner := call.args[0], Call) and inner.op == "in":
        if any(None in value for value in _constants(inner.args[1:], row) if isinstance(value, tuple)):
            name = _name(inner.args[0])
            yield f'"{name} NOT IN (…, NULL)" is never TRUE. Leave NULL out and write AND {name} IS NOT NULL.'
        return
    if call.op not in _COMPARING:
        return
    left, right = call.args[:2]
    for operand, other in ((left, right), (right, left)):
        if None in _constants((operand,), row):
            name, word = _name(other), call.op.upper()
            test = "IS NOT NULL" if call.op in _NOT_NULL else "IS NULL"
            yield f'"{name} {word} NULL" is never TRUE. Write {name} {test}.'
    if call.op == "rlike":
        for pattern in _constants((right,), row):
            if isinstance(pattern, str) and (found := _DOUBLED.search(pattern)):
                yield (
                    f'The pattern of RLIKE has "{found[0]}", which looks for a backslash. '
                    f'In a string a backslash stands for itself: write "{found[0][1:]}".'
                )


def _constants(operands: tuple[Expression, ...], row: ConstantRow) -> list[ConstantValue]:
    """Return the values of the constant operands."""
    return [row.values[operand.index] for operand in operands if isinstance(operand, Slot)]


def _name(operand: Expression) -> str:
    return render_part(operand) if isinstance(operand, Column) else "value"
