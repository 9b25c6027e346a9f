"""Expressions as text: in signatures, in EXPLAIN and in error messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from grouping.model.errors import InternalError
from grouping.model.expression import (
    LEFT_ON,
    Call,
    Column,
    Computed,
    Expression,
    Framed,
    Key,
    Reference,
    Slot,
    TableColumn,
    Value,
    Variable,
)
from grouping.model.sql_type import VARIANT, SqlType
from grouping.plan.frame_value import LAG, FrameValue, frame_value

__all__ = [
    "AGGREGATE",
    "HIDDEN",
    "INFIX",
    "all_of",
    "placeholder",
    "render_name",
    "render_part",
    "render_reference",
    "shape",
    "without_values",
]

HIDDEN = ("?",)
"""For `render_part`: shows ``?`` for each constant of an expression that `without_values` returned."""
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORDS = frozenset("and or not in is null like rlike between case when then else end cast as div true false".split())
_BETWEEN_SIDES = frozenset("& | ^ = <> <=> < <= > >= + - * / % div in".split())
INFIX = _BETWEEN_SIDES | {"and", "or", "not", "like", "rlike", "is_null"}
"""Operators that get parentheses as operands of other operators."""

AGGREGATE = "aggregate"
"""The operator for an aggregate with constants in HAVING. The first argument is the aggregate's text with placeholders,
and the other arguments are the constants.
"""
_PLACEHOLDER = re.compile("\0(\\d+)\0")


def render_name(name: str) -> str:
    """Return a name for SQL, in quotes if the name needs them."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def shape(op: str, args: list[str], inner: list[str], kind: str) -> str:
    """Return the text of an operator or function.

    Args:
        op: The operator.
        args: The texts of its arguments.
        inner: The operator or function of each argument; "" for a column or a constant. Operators of `INFIX` get
            parentheses, functions do not.
        kind: The type of the result.
    """
    if op in ("and", "or"):
        parts = zip(args, inner, strict=True)
        return f" {op.upper()} ".join(f"({arg})" if below in ("and", "or") else arg for arg, below in parts)
    sides = [f"({arg})" if below in INFIX else arg for arg, below in zip(args, inner, strict=True)]
    if op in _BETWEEN_SIDES:
        return f"{sides[0]} {op.upper()} {sides[1]}"
    if op == "like":
        return f"{sides[0]} LIKE {sides[1]}" + (f" ESCAPE {sides[2]}" if len(sides) == 3 else "")
    if op == "rlike":
        return f"{sides[0]} RLIKE {sides[1]}"
    if op == "is_null":
        return f"{sides[0]} IS NULL"
    if op == "not":
        return f"NOT {sides[0]}"
    if op == "field":
        return f"{args[0]}.{args[1]}"
    if op == "element":
        return f"{args[0]}[{args[1]}]"
    if op == "cast":
        return f"cast({args[0]} AS {kind})"
    if (
        op == "array"
        and any(":c" in arg for arg in args)
        and (element := SqlType.of(kind).element)
        and element.is_number
    ):
        # The text shows slots, not constants, so it must name the type that the constants decide.
        return f"array<{element}>({', '.join(args)})"
    if op == "variant_get" and kind != str(VARIANT):
        return f"variant_get({args[0]}, {args[1]}, '{kind}')"
    if op == LEFT_ON:
        return f"{args[1]} in ON of {args[0][1:-1]}"
    if op == AGGREGATE:
        text = args[0][1:-1].replace("''", "'")
        return _PLACEHOLDER.sub(lambda found: args[1 + int(found[1])], text)
    return f"{op}({', '.join(args)})"


def placeholder(index: int) -> str:
    """Return the placeholder of a constant in the text of an aggregate; no other text has this form."""
    return f"\0{index}\0"


def render_part(expression: Expression, constants: Sequence[str] = ()) -> str:
    """Return the text of an expression; the texts of constants, if given, replace their slots."""
    match expression:
        case Slot(index):
            return constants[index] if constants else f":c{index}"
        case Call(op, args, kind):
            inner = [argument.op if isinstance(argument, Call) else "" for argument in args]
            return shape(op, [render_part(argument, constants) for argument in args], inner, kind)
        case Column():
            return render_reference(expression.reference)
        case Value(value):
            return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).upper()
    raise InternalError(f"not an expression: {expression}")


@lru_cache(maxsize=10_000)  # many signatures have the same columns
def render_reference(reference: Reference) -> str:
    """Return the text of a column."""
    match reference:
        case TableColumn(prefix, name):
            return f"{render_name(prefix)}.{render_name(name)}"
        case Computed(text):
            return text
        case Framed():
            return _render_frame_value(frame_value(reference))
        case Variable(level):
            return f"λ{level}"
        case Key(expression):
            return render_part(expression)
        case name:
            return render_name(name)


def _render_frame_value(value: FrameValue) -> str:
    """Return the text of a value over a frame, without the key: the signature has the key once for all values."""
    args = ", ".join(map(render_part, value.args)) or "*"
    if value.function == LAG:
        return f"{LAG}({args}, {value.rows})"
    call = f"{value.function}({'DISTINCT ' * value.distinct}{args})"
    if value.condition is not None:
        call += f" FILTER (WHERE {render_part(value.condition)})"
    if value.milliseconds is None:
        return f"{call} OVER (ROWS {value.rows} PRECEDING)"
    seconds, rest = divmod(value.milliseconds, 1000)
    interval = f"{value.milliseconds} MILLISECONDS" if rest else f"{seconds} SECONDS"
    return f"{call} OVER (RANGE INTERVAL {interval} PRECEDING)"


def all_of(conjuncts: Sequence[Expression]) -> Expression | None:
    """Return conjuncts as one condition; None without conjuncts."""
    return conjuncts[0] if len(conjuncts) == 1 else Call("and", tuple(conjuncts), "BOOLEAN") if conjuncts else None


def without_values(expression: Expression) -> Expression:
    """Return an expression with slot 0 in place of each constant. With `HIDDEN`, its text shows no constants.

    In the arguments and FILTER of a window function, ``'?'`` replaces each constant.
    """
    if isinstance(expression, Call):
        return Call(expression.op, tuple(map(without_values, expression.args)), expression.type_text)
    if isinstance(expression, Column) and isinstance(reference := expression.reference, Framed):
        value = frame_value(reference)
        condition = None if value.condition is None else _with_marks(value.condition)
        return replace(value, args=tuple(map(_with_marks, value.args)), condition=condition).column
    return Slot(0) if isinstance(expression, Value) else expression


def _with_marks(expression: Expression) -> Expression:
    if isinstance(expression, Call):
        return Call(expression.op, tuple(map(_with_marks, expression.args)), expression.type_text)
    return Value("?", "STRING") if isinstance(expression, Value) else expression
