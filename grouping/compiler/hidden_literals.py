"""Hides the literals that stay in a signature: users see hashes instead, since a signature must not show constants.

Examples are the delimiter of ``split``, the path of ``get_json_object``, a key of a MAP and a pattern of
``date_format``.
"""

from __future__ import annotations

import hashlib
import re

from msgspec.structs import replace

from grouping.model.expression import LEFT_ON, Call, Column, Computed, Expression, Framed, Value
from grouping.plan.frame_value import frame_value

__all__ = ["hidden_literals"]

_STRUCTURE = frozenset(("field", "timestampadd", "timestampdiff", "date_part", "from_json", LEFT_ON))
"""Operators whose literals are shown, because the literals are names of the schema, units or types."""
_LITERAL = re.compile(r"'(?:[^']|'')*+'")
"""A text within the name of an aggregate or a key."""


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
    return f"'{_hash(Value(literal[0], 'STRING')).value}'"
