"""The literals and types that a signature does not show.

Users see hashes of the literals that stay in a signature, since a signature must not show constants.

Examples are the delimiter of ``split``, the path of ``get_json_object``, a key of a MAP and a pattern of
``date_format``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from grouping.functions.functions import has_rule
from grouping.model.expression import (
    LEFT_ON,
    Call,
    Column,
    Computed,
    Expression,
    Framed,
    Slot,
    Value,
    Variable,
    walk,
)
from grouping.model.sql_type import STRING, SqlType
from grouping.plan.frame_value import frame_value

__all__ = ["hidden_literals", "hidden_types", "having_types"]

_SHOWN_TYPES = {str: "STRING", bool: "BOOLEAN", int: "INT", float: "DOUBLE", type(None): "STRING"}
"""Python's type of a constant that is not lifted → the SQL type that its text in a signature stands for."""

_SLOT = ":c"
"""The beginning of a slot in the text of an aggregate or a key."""

_STRUCTURE = frozenset(("field", "timestampadd", "timestampdiff", "date_part", "from_json", LEFT_ON))
"""Operators whose literals are shown, because the literals are names of the schema, units or types."""
_LITERAL = re.compile(r""""(?:[^"]|"")*+"|\.'(?:[^']|'')*+'|('(?:[^']|'')*+')""")
"""The quoted parts of the name of an aggregate or a key: names of columns, names of fields, and texts."""


def hidden_literals(expression: Expression) -> Expression:
    """Return an expression in which a hash replaces each text and number that is not lifted, except in `_STRUCTURE`.

    Example:
        >>> from grouping.model.expression import Column
        >>> call = Call("split", (Column("a", "STRING"), Value("SECRET", "STRING")), "ARRAY<STRING>")
        >>> hidden_literals(call).args[1].value
        '#2a324190'
    """
    if isinstance(expression, Value):
        return _hash(expression)
    reference = expression.reference if isinstance(expression, Column) else None
    if isinstance(reference, Framed):
        value = frame_value(reference)
        condition = None if value.condition is None else hidden_literals(value.condition)
        return replace(value, args=tuple(map(hidden_literals, value.args)), condition=condition).column
    if isinstance(expression, Column) and isinstance(reference, Computed):
        return Column.of(Computed(_LITERAL.sub(_hashed, reference.text)), expression.type_text)
    if not isinstance(expression, Call):
        return expression
    own = expression.op in _STRUCTURE
    args = tuple(each if own and isinstance(each, Value) else hidden_literals(each) for each in expression.args)
    return Call(expression.op, args, expression.type_text)


def _hash(literal: Value) -> Value:
    if literal.value is None or isinstance(literal.value, bool):
        return literal
    text = f"{literal.type_text} {literal.value}".encode("utf-8", "surrogatepass")
    return Value("#" + hashlib.blake2b(text, digest_size=4).hexdigest(), "STRING")


def _hashed(literal: re.Match[str]) -> str:
    return literal[0] if literal[1] is None else f"'{_hash(Value(literal[1], 'STRING')).value}'"


def hidden_types(expressions: Iterable[Expression]) -> Iterator[str]:
    """Yield the types that follow from constants and are not in the text of a signature, in the order of the text.

    Most signatures have no such type: STRING, BOOLEAN, INT and DOUBLE are left out where the text shows them.

    Example:
        >>> list(hidden_types([Value("1.5", "STRING"), Value("1.5", "DECIMAL(2,1)")]))
        ['DECIMAL(2,1)']
    """
    for node in (node for each in expressions for node in walk(each)):
        match node:
            case Value(value, kind) if kind != _SHOWN_TYPES[type(value)]:
                yield kind
            case Call("array", _, kind) if not _is_shown(kind) and any(isinstance(each, Slot) for each in walk(node)):
                yield kind


def having_types(having: Iterable[Expression]) -> Iterator[str]:
    """Yield the types in HAVING that an evaluator does not compute from the types of a query's own aggregates.

    These are the types of variables of lambdas, and of calls whose binder computes the type, over aggregates or keys
    with constants (``exists(collect_list(v * 1.5), x -> x > 3)``).
    """
    for call in (node for each in having for node in walk(each) if isinstance(node, Call)):
        below = [node for node in walk(call) if isinstance(node, Column)]
        if any(isinstance(node.reference, Computed) and _SLOT in node.reference.text for node in below):
            yield from (node.type_text for node in below if isinstance(node.reference, Variable))
            if not has_rule(call.op):
                yield call.type_text


def _is_shown(array: str) -> bool:
    """Tell whether `shape` shows the type of an array of constants, or shows no type for it alone."""
    element = SqlType.of(array).element
    return element is not None and (element.is_number or element == STRING)
