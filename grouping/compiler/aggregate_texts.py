"""Keys and aggregates as texts, with constants or with placeholders; each text is the name of a column."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Constant, Term
from grouping.model.expression import Call, Column, Computed, Expression, Slot, Value
from grouping.model.group import ConstantValue
from grouping.model.sql_type import STRING, SqlType
from grouping.plan.expression_text import INFIX, placeholder, render_part, shape

__all__ = ["LiftedKey", "aggregate_text", "in_parentheses", "lifted_key", "marked"]

LiftedKey = tuple[str, tuple[tuple[SqlType, ConstantValue], ...]]
"""An aggregate's text without constants, and the constants."""


def lifted_key(term: Term) -> LiftedKey:
    """Return the identity of an aggregate with constants in HAVING."""
    text, *constants = term.args
    assert isinstance(text, Value), "the first argument is the aggregate's text"
    return str(text.value), tuple((each.type, each.value) for each in constants if isinstance(each, Constant))


def aggregate_text(name: str, args: Sequence[Expression], condition: Expression | None, *, distinct: bool) -> str:
    """Return an aggregate as text; equal aggregates have equal texts."""
    text = f"{name}({'DISTINCT ' * distinct}{', '.join(map(typed_text, args)) or '*'})"
    return text if condition is None else f"{text} FILTER (WHERE {typed_text(condition)})"


def marked(expression: Expression) -> Expression:
    """Return an expression with a placeholder in the place of each slot."""
    match expression:
        case Slot(index):
            return Column.of(Computed(placeholder(index)), str(STRING))
        case Call(op, args, kind):
            return Call(op, tuple(map(marked, args)), kind)
    return expression


def in_parentheses(expression: Expression) -> str:
    """Return the text of a key for use within other texts: in parentheses, unless the key is a function call."""
    text = typed_text(expression)
    return text if isinstance(expression, Call) and expression.op not in INFIX and text.endswith(")") else f"({text})"


def typed_text(expression: Expression) -> str:
    """Return an expression as text that includes the types of constants: equal texts mean equal expressions."""
    match expression:
        case Value(value, kind):
            text = render_part(expression)
            return text if isinstance(value, bool) or kind == str(STRING) else f"{kind} {text}"
        case Call(op, args, kind):
            inner = [argument.op if isinstance(argument, Call) else "" for argument in args]
            texts = list(map(typed_text, args))
            if op == "in" and len(texts) > 2:  # `shape` shows the first element, since a signature hides the others
                texts[1:] = [f"({', '.join(texts[1:])})"]
                del inner[2:]
            return shape(op, texts, inner, kind)
    return render_part(expression)
