"""Warnings about a condition of an accepted query that the author of the query probably did not intend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from grouping.model.expression import Call, Column, Expression, Slot, Value, walk
from grouping.model.group import ConstantRow, ConstantValue
from grouping.model.sql_type import STRING
from grouping.plan.expression_text import render_part
from grouping.plan.group import GroupPlan, SelectList
from grouping.statements.cq_text import CqText

__all__ = ["query_warnings"]

_COMPARING = frozenset(("=", "<>", "<", "<=", ">", ">=", "like", "rlike"))
_NOT_NULL = frozenset(("<>",))
"""Comparisons for which the warning about NULL proposes IS NOT NULL; for all others, IS NULL."""
_AS_WHOLE = frozenset(("<>", "<", "<=", ">", ">="))
"""Comparisons that may be TRUE for a text with a fraction, but are NULL once the text is CAST to BIGINT."""
_PASSING = frozenset("+-*/%") | {"neg", "div", "case", "coalesce"}
"""Operators whose result may be NULL because an operand is NULL."""
_WHOLE_CAST = " AS BIGINT)"
_WHOLE_NAME = re.compile(r"\b(?:BIGINT|LONG)\b", re.IGNORECASE)
_DOUBLED = re.compile(r"\\\\[dwsbDWSB.+*?()\[\]{}|^$]")
"""Two backslashes before a character that has a meaning after a single backslash."""
_MOST = 80
"""The largest number of characters of an operand that a warning shows."""


def query_warnings(
    plan: GroupPlan, row: ConstantRow, text: CqText | None = None, select: SelectList | None = None
) -> tuple[str, ...]:
    r"""Return the distinct warnings about a query with these constants.

    Three mistakes are found. A comparison with NULL is never TRUE. A regular expression with doubled backslashes
    matches backslashes in the text. In a comparison of a STRING with a whole number, Spark casts the STRING to BIGINT,
    so a text such as ``99.5`` becomes NULL. The first two mistakes are searched for in the predicate, the third one
    also in the SELECT list.

    Args:
        plan: The group of the query.
        row: The constants of the query.
        text: The command. With the word BIGINT or LONG in the command, its author may have written the CAST to BIGINT,
            so there is no warning about this CAST.
        select: The SELECT list of the query; None if it is not to be checked.

    Example:
        >>> equal = Call("=", (Column("price", "DOUBLE"), Slot(0)), "BOOLEAN")
        >>> query_warnings(GroupPlan("g_1", "s_1", "", (equal,)), ConstantRow(("DOUBLE",), (None,)))
        ('"price = NULL" is never TRUE. Write price IS NULL.',)
        >>> query_warnings(GroupPlan("g_1", "s_1", "", (equal,)), ConstantRow(("DOUBLE",), (1.0,)))
        ()
    """
    parts = (*plan.conjuncts, *(plan.kept.having if plan.kept is not None else ()))
    found = [warning for call in _calls(parts) for warning in _warnings(call, row)] if _may_be_odd(row) else []
    if (node := plan.before or plan.timed) is not None:  # these conditions have their constants as values
        below = (*node.expressions, *(plan.frames.where if plan.frames is not None else ()))
        found += [warning for call in _calls(below) for warning in _warnings(call, row)]
    selected = [each for each in select.expressions if isinstance(each, Call)] if select is not None else []
    cast = (*parts, *selected) if _WHOLE_CAST in plan.signature else selected
    if cast and not (text is not None and _WHOLE_NAME.search(str(text))):
        found += [warning for call in _calls(cast) for warning in _whole_warnings(call, row)]
    return tuple(dict.fromkeys(found))


def _calls(parts: Iterable[Expression]) -> Iterator[Call]:
    return (node for part in parts for node in walk(part) if isinstance(node, Call))


def _may_be_odd(row: ConstantRow) -> bool:
    """Return whether a constant is or contains NULL, or has two backslashes. For most queries the search ends here."""
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


def _whole_warnings(call: Call, row: ConstantRow) -> Iterator[str]:
    """Yield the warning about a comparison of a STRING that Spark casts to BIGINT."""
    if call.op not in _AS_WHOLE:
        return
    for operand, other in (call.args, call.args[::-1]):
        if (text := _text_as_whole(operand)) is None:
            continue
        shown = _shown(text, row)
        number = _number(other, row) if isinstance(operand, Call) and operand.args[0] is text else None
        write = f"{number}.0 instead of {number}" if number is not None else f"CAST({shown} AS DOUBLE)"
        yield (
            f'"{shown}" is a STRING in a comparison with a whole number: it is read as BIGINT, and a text such as '
            "99.5 is NULL. "
            f"Write {write} to compare as DOUBLE."
        )


def _text_as_whole(operand: Expression) -> Expression | None:
    """Return the STRING that an operand casts to BIGINT, directly or within `_PASSING`; None without such a cast."""
    if not isinstance(operand, Call):
        return None
    if operand.op == "cast" and operand.type_text == "BIGINT":
        text = operand.args[0]
        return text if isinstance(text, Call | Column) and text.type == STRING else None
    found = map(_text_as_whole, operand.args) if operand.op in _PASSING else ()
    return next((text for text in found if text is not None), None)


def _number(operand: Expression, row: ConstantRow) -> int | None:
    """Return the value of an operand that is a constant whole number; None for any other operand."""
    constant = row.values[operand.index] if isinstance(operand, Slot) else None
    constant = operand.value if isinstance(operand, Value) else constant
    return constant if isinstance(constant, int) else None


def _shown(operand: Expression, row: ConstantRow) -> str:
    """Return the text of an operand with its constants, truncated to `_MOST` characters."""
    constants = [f"'{value}'" if isinstance(value, str) else str(value) for value in row.values]
    text = render_part(operand, constants)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def _constants(operands: tuple[Expression, ...], row: ConstantRow) -> list[ConstantValue]:
    """Return the values of the constant operands."""
    of_slots = [row.values[operand.index] for operand in operands if isinstance(operand, Slot)]
    return of_slots + [operand.value for operand in operands if isinstance(operand, Value)]


def _name(operand: Expression) -> str:
    return render_part(operand) if isinstance(operand, Column) else "value"
