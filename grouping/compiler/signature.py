"""The signature of a predicate: its canonical order, and its text without constants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from grouping.binding.bound import Bound, Constant, Term
from grouping.model.errors import InternalError
from grouping.model.expression import (
    LEFT_ON,
    Call,
    Column,
    Expression,
    Slot,
    Value,
    computed_text,
    joined_name,
    source_of,
    variable_text,
)
from grouping.model.group import ConstantValue
from grouping.model.sql_type import VARIANT, SqlType
from grouping.plan.computation import Computation, Join, JoinKey

__all__ = [
    "AGGREGATE",
    "INFIX",
    "order",
    "placeholder",
    "render",
    "render_aggregation",
    "render_joins",
    "render_name",
    "render_part",
    "shape",
]

_RANKS = {"=": 0, "in": 1, "<": 2, "<=": 2, ">": 2, ">=": 2}
_COMMUTING = frozenset(("=", "<>", "<=>"))
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORDS = frozenset("and or not in is null like rlike between case when then else end cast as div true false".split())
_BETWEEN_SIDES = frozenset("& | ^ = <> <=> < <= > >= + - * / % div in".split())
INFIX = _BETWEEN_SIDES | {"and", "or", "not", "like", "rlike", "is_null"}
"""The operators that are put in parentheses within others."""

AGGREGATE = "aggregate"
"""An aggregate with constants in HAVING: its text, with a `placeholder` for each constant, and the constants."""
_PLACEHOLDER = re.compile("\0(\\d+)\0")

Key = tuple[int, str, str, tuple[Any, ...]]
"""The sort key of a part: rank, first column, text with ``:c`` for every constant, and the constants."""


def order(conjuncts: Iterable[Bound]) -> tuple[tuple[Bound, ...], bool]:
    """Return conjuncts in canonical order, at every level.

    Returns:
        The conjuncts, and whether parts of equal shape stood side by side, so that their constants decided the order.
    """
    orderer = _Orderer()
    keyed = orderer.sort([orderer.canonical(conjunct) for conjunct in conjuncts])
    return tuple(part for part, _ in keyed), orderer.ties


class _Orderer:
    def __init__(self) -> None:
        self.ties = False

    def sort(self, keyed: list[tuple[Bound, Key]]) -> list[tuple[Bound, Key]]:
        ordered = sorted(keyed, key=lambda pair: pair[1])
        for (_, one), (_, other) in zip(ordered, ordered[1:], strict=False):
            if one[2] == other[2] and one[3]:
                self.ties = True
        return ordered

    def canonical(self, bound: Bound) -> tuple[Bound, Key]:
        """Return a part in canonical order with its key."""
        if isinstance(bound, Column):
            return bound, (9, "", _render_column(bound.name), ())
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

    def _sides(self, op: str, parts: list[tuple[Bound, Key]]) -> tuple[str, list[tuple[Bound, Key]]]:
        """Return a comparison's sides in order; for equal shapes the operator decides, and becomes ``<``."""
        left, right = parts[0][1], parts[1][1]
        if op in _COMMUTING:
            return op, self.sort(parts)
        if (left[0] == 10, left[2]) > (right[0] == 10, right[2]) or (left[2] == right[2] and op in (">", ">=")):
            return _TURNED[op], [parts[1], parts[0]]
        return op, parts


def _constant_key(constant: Constant) -> tuple[Any, ...]:
    """Return something that orders any two constants: NULLs last, numbers among numbers, sets by their members."""
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


def render_name(name: str) -> str:
    """Return a name for SQL, in quotes where needed."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def shape(op: str, args: list[str], inner: list[str], kind: str) -> str:
    """Return the text of an operator or function.

    Args:
        op: The operator.
        args: The texts of its arguments.
        inner: Their operators, "" for columns and constants: operators go into parentheses, functions don't.
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
        return f"array<{element}>({', '.join(args)})"  # the constants decide it
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


def render(stream: str, conjuncts: Iterable[Expression], computation: Computation | None = None) -> str:
    """Return the signature of canonical conjuncts over a stream.

    Example:
        >>> price = Column("price", "DOUBLE")
        >>> render("quotes", [Call("<", (price, Slot(0)), "BOOLEAN")])
        'SELECT … FROM quotes WHERE price < :c0'
    """
    parts, on = [], {}
    for conjunct in conjuncts:
        match conjunct:
            case Call(op, (Value(prefix), condition)) if op == LEFT_ON:
                on[str(prefix)] = condition
            case _:
                parts.append(conjunct)
    head = f"SELECT … FROM {render_name(stream)}{render_joins(computation, on)}"
    if not parts:
        return head
    return f"{head} WHERE {render_part(parts[0] if len(parts) == 1 else Call('and', tuple(parts), 'BOOLEAN'))}"


def render_aggregation(keys: Iterable[Expression], having: Sequence[Expression]) -> str:
    """Return GROUP BY and HAVING of a signature.

    Example:
        >>> render_aggregation([Column("venue", "STRING")], [])
        ' GROUP BY venue'
    """
    names = list(map(render_part, keys))
    text = f" GROUP BY {', '.join(names)}" if names else ""
    if having:
        whole = having[0] if len(having) == 1 else Call("and", tuple(having), "BOOLEAN")
        text += f" HAVING {render_part(whole)}"
    return text


def render_part(expression: Expression, constants: Sequence[str] = ()) -> str:
    """Return the text of a part of a signature; with the texts of constants, these stand in their slots."""
    match expression:
        case Slot(index):
            return constants[index] if constants else f":c{index}"
        case Call(op, args, kind):
            inner = [argument.op if isinstance(argument, Call) else "" for argument in args]
            return shape(op, [render_part(argument, constants) for argument in args], inner, kind)
        case Column(name):
            return _render_column(name)
        case Value(value):
            return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).upper()
    raise InternalError(f"not an expression: {expression}")


@lru_cache(maxsize=10_000)  # the names of few streams, in the signatures of many queries
def _render_column(name: str) -> str:
    if (text := computed_text(name) or variable_text(name)) is not None:
        return text
    prefix, column = source_of(name)
    return f"{render_name(prefix)}.{render_name(column)}" if prefix else render_name(column)


def render_joins(computation: Computation | None, on: Mapping[str, Expression] | None = None) -> str:
    """Return the joins of tables with the stream, as SQL; prefixes stand for aliases.

    Args:
        computation: The joins.
        on: By prefix, the conditions of ON that a group decides.
    """
    text = ""
    for join in computation.joins if computation else ():
        text += f" {'LEFT ' * join.outer}JOIN {render_name(join.prefix)} ON {join_condition(join)}"
        if on and (condition := on.get(join.prefix)) is not None:
            shown = render_part(condition)
            text += f" AND ({shown})" if isinstance(condition, Call) and condition.op == "or" else f" AND {shown}"
    return text


def key_condition(join: Join, key: JoinKey, constants: Sequence[str] = ()) -> str:
    """Return a look-up equality of a join, as SQL; `constants` as for `render_part`."""
    return f"{render_part(key.left, constants)} = {_render_column(joined_name(join.prefix, key.column))}"


def join_condition(join: Join) -> str:
    """Return the condition of a join, as SQL; `?` hides its constants from others."""
    keys = [replace(key, left=_without_values(key.left)) for key in join.keys]
    equal = [key_condition(join, key, _HIDDEN) for key in keys]
    return " AND ".join([*equal, *(render_part(_without_values(part), _HIDDEN) for part in join.rest)])


_HIDDEN = ("?",)


def _without_values(expression: Expression) -> Expression:
    """Return an expression with slot 0 for each constant."""
    if isinstance(expression, Call):
        return Call(expression.op, tuple(map(_without_values, expression.args)), expression.type_text)
    return Slot(0) if isinstance(expression, Value) else expression
