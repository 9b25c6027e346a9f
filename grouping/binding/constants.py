"""Constants: typed by the other operand, and lifted into the slots of a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from grouping.binding.bound import Bound, Constant, Term
from grouping.binding.intervals import is_interval
from grouping.functions.functions import has_rule, result_type
from grouping.functions.results import common_type
from grouping.model.errors import InputError
from grouping.model.expression import (
    Call,
    Column,
    Computed,
    Expression,
    Framed,
    Scalar,
    Slot,
    TableColumn,
    Value,
    Variable,
)
from grouping.model.group import ConstantRow, ConstantValue
from grouping.model.sql_type import BIGINT, DATE, DOUBLE, FLOAT, NUMERIC, STRING, TIMESTAMP, UNKNOWN, SqlType
from grouping.model.sql_type import set_of as set_type
from grouping.plan.expression_text import render_reference
from grouping.values.literals import EXACT, READERS, exact_or_decimal

__all__ = [
    "as_decimal",
    "as_set",
    "coerce",
    "column_text",
    "lift",
    "number",
    "plainly_among",
    "read_again",
    "set_of",
    "settle",
    "string",
]

_COMPARING = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>", "in"))


def number(text: str, position: int | None) -> Constant:
    """Return the constant of a number; the text may begin with a sign."""
    sql_type, value = READERS["literal"](text)
    return Constant(value, sql_type, "literal", text, position)


def string(text: str, position: int | None) -> Constant:
    """Return the constant of a string."""
    return Constant(text, STRING, "string", text, position)


def read_again(constant: Constant, reader: str) -> Constant:
    """Return the constant that another reader of `literals.READERS` reads from the same text."""
    sql_type, value = READERS[reader](constant.text)
    return Constant(value, sql_type, reader, constant.text, constant.position, is_pinned=constant.is_pinned)


def coerce(constant: Constant, sql_type: SqlType, exact: str = "exact", beside: Bound | None = None) -> Constant:
    """Convert a constant to a type that can be compared with an expression.

    Args:
        constant: The constant as read from the text.
        sql_type: The type of the expression.
        exact: The reader of a constant number that is compared with a number of another type than DOUBLE.
        beside: The expression, if a refusal should name its column.

    Raises:
        InputError: ``type-mismatch`` if the constant and the expression cannot be compared, or if a string constant
            cannot be read as the DATE or TIMESTAMP with which it is compared.
    """
    if constant.value is None and not constant.members:
        return Constant(None, _null_type(sql_type))
    if sql_type.is_number and constant.type.is_number:
        if constant.reader is None:
            return constant
        return read_again(constant, "double" if sql_type == DOUBLE else exact)
    if constant.type == sql_type:
        return constant
    if constant.type == STRING and sql_type in (DATE, TIMESTAMP):
        return _as_time(constant, sql_type, beside)
    if constant.type == DATE and sql_type == TIMESTAMP and isinstance(constant.value, date):
        midnight = datetime(constant.value.year, constant.value.month, constant.value.day, tzinfo=UTC)
        return Constant(midnight, sql_type, position=constant.position, is_pinned=True)
    if constant.reader == "string" and (reader := _QUOTED_NUMBERS.get(sql_type.name)):
        try:
            return read_again(constant, reader)
        except InputError:
            pass  # not a number: the refusal below names the mismatch
    shown = "a number" if constant.type.is_number else f"a {constant.type}"
    column = column_text(beside)
    other = f"{column[0].upper()}{column[1:]}" if column else "The other operand"
    raise InputError(
        f'"{constant.text or constant.value}" cannot be compared with {column or sql_type}',
        code="type-mismatch",
        detail=f"The constant is {shown}. {other} is {sql_type}.",
        hint="Write a constant of that type, or CAST one side.",
    )


def plainly_among(needle: Bound, constants: Sequence[Bound]) -> tuple[Bound, ...] | None:
    """Return the operands of an IN or a comparison if all constants are literals of the needle's kind.

    A literal is of the needle's kind if both are numbers or both are texts. The result is None if a literal is of
    another kind, or if the needle is a constant.

    Raises:
        InputError: ``type-mismatch`` for a number that is out of range.
    """
    kind = needle.type
    reader = "literal" if kind.is_number else "string" if kind == STRING else None
    if reader is None or isinstance(needle, Constant):
        return None
    if any(not isinstance(constant, Constant) or constant.reader != reader for constant in constants):
        return None
    if reader == "string":
        return needle, *constants
    read_as = DOUBLE if kind in (FLOAT, DOUBLE) else kind
    return needle, *[coerce(constant, read_as, beside=needle) for constant in constants]  # type: ignore[arg-type]


_QUOTED_NUMBERS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "quoted whole"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "quoted double"),
}
"""Type of a number → reader of a string literal that is compared with the number.

DECIMAL is missing, because a DECIMAL and a string literal are compared as DOUBLEs.
"""


def column_text(operand: Bound | None) -> str:
    """Return a column's name for messages; empty for any other operand."""
    if not isinstance(operand, Column):
        return ""
    match operand.reference:
        case Computed(text):
            return f'"{text}"'
        case Framed():
            return f'"{render_reference(operand.reference)}"'
        case TableColumn(prefix, name):
            return f'column "{prefix}.{name}"'
        case Variable():
            return "the element"
        case name:
            return f'column "{name}"'


def _as_time(constant: Constant, sql_type: SqlType, beside: Bound | None) -> Constant:
    """Return a text as a DATE or TIMESTAMP."""
    try:
        return read_again(constant, sql_type.name.lower())
    except InputError as error:
        if not isinstance(beside, Column):
            raise
        detail = f"The constant is compared with {column_text(beside)}, so it must be a {sql_type} in ISO 8601."
        raise InputError(error.message, code=error.code, detail=detail, hint=error.hint) from None


def _null_type(sql_type: SqlType) -> SqlType:
    if sql_type.is_number and sql_type != DOUBLE:
        return BIGINT
    return STRING if sql_type == UNKNOWN else sql_type


def set_of(members: Iterable[Constant]) -> Constant:
    """Return the constant of an IN list: a set, or a single value if all members are equal.

    The members must have been coerced. The set is sorted and has no repetitions; NULL comes last.
    """
    flat = tuple([leaf for member in members for leaf in (member.members or (member,))])
    sql_type, values = as_set([member.type for member in flat], [member.value for member in flat])
    if len(values) == 1:
        if len(flat) == 1:
            return flat[0]
        positions = [each for member in flat for each in (member.position, *member.merged) if each is not None]
        return Constant(values[0], sql_type, merged=tuple(positions))
    return Constant(values, set_type(sql_type), members=flat)


def as_decimal(constant: Constant) -> Constant:
    """Return an exact number as a BIGINT or DECIMAL, as the comparison with a computed expression needs."""
    if constant.reader is not None:
        return read_again(constant, "decimal")
    sql_type, value = (BIGINT, None) if constant.value is None else exact_or_decimal(str(constant.value))
    return Constant(value, sql_type)


def as_set(types: Sequence[SqlType], values: Sequence[ConstantValue]) -> tuple[SqlType, tuple[Any, ...]]:
    """Return the element type and the sorted values of a set, from the types and values of its members."""
    distinct: dict[Any, None] = dict.fromkeys(values)
    kinds = set(types)
    null: tuple[Any, ...] = ()
    if None in distinct:
        del distinct[None]
        null = (None,)
        kinds = {sql_type for sql_type, value in zip(types, values, strict=True) if value is not None} or kinds
    # If the needle of an IN is a constant, its members may be BIGINTs and DECIMALs of several sizes.
    wide = len(kinds) > 1 and any(sql_type.is_decimal for sql_type in kinds)
    sql_type = NUMERIC if wide or NUMERIC in kinds else min(kinds, key=str)
    ordered = sorted(distinct)
    if sql_type == NUMERIC:
        ordered = [EXACT.normalize(Decimal(value)) for value in ordered]
    return sql_type, (*ordered, *null)


def lift(conjuncts: Iterable[Bound]) -> tuple[tuple[Expression, ...], ConstantRow, tuple[Constant, ...]]:
    """Replace the constants of conjuncts in canonical order by slots, which are numbered from left to right.

    Returns:
        The conjuncts over slots, the row, and its constants.
    """
    lifted: list[Constant] = []
    expressions = tuple(_lift(conjunct, lifted) for conjunct in conjuncts)
    values = tuple(constant.value for constant in lifted)
    return expressions, ConstantRow(tuple(constant.type for constant in lifted), values), tuple(lifted)


def _lift(bound: Bound, lifted: list[Constant]) -> Expression:
    if isinstance(bound, Constant):
        lifted.append(bound)
        return Slot(len(lifted) - 1)
    if isinstance(bound, Column | Value):
        return bound
    _check_used(bound)
    if bound.op == "named_struct":
        return Call(bound.op, tuple(_lift_body(argument, lifted) for argument in bound.args), str(bound.type))
    if bound.op in ("transform", "reduce"):
        *others, body = bound.args
        known = tuple(settle(other) if isinstance(other, Constant) else _lift(other, lifted) for other in others)
        return Call(bound.op, (*known, _lift_body(body, lifted)), str(bound.type))
    args = tuple(_lift(argument, lifted) for argument in bound.args)
    # The type must not depend on the constants: `i + 1` and `i + 3000000000` have the same signature.
    kinds = [UNKNOWN if isinstance(argument, Slot) else argument.type for argument in args]
    return Call(bound.op, args, str(result_type(bound.op, kinds) if has_rule(bound.op) else bound.type))


def _lift_body(body: Bound, lifted: list[Constant]) -> Expression:
    """Return the body of a lambda, or the value of a STRUCT's field.

    If the type of the expression depends on a constant, none of its constants is lifted.
    """
    found = [*lifted]
    expression = _lift(body, found)
    if isinstance(expression, Slot) or expression.type == UNKNOWN:
        return settle(body)
    lifted[:] = found
    return expression


def _check_used(term: Term) -> None:
    """Refuse an interval that is not an operand of an addition to a time, or of a comparison."""
    if is_interval(term):
        raise InputError(
            "an interval as a value is not supported",
            code="unsupported-query",
            detail="An interval can be added to a time, and compared with another interval.",
            hint="timestampdiff(SECOND, a, b) gives a number.",
        )


def settle(bound: Bound) -> Expression:
    """Return an expression whose constants are not lifted, as in a SELECT list."""
    if isinstance(bound, Column | Value):
        return bound
    if isinstance(bound, Constant):
        return _settled(bound.value, bound.type)
    _check_used(bound)
    args: list[Expression] = []
    for argument in bound.args:
        if isinstance(argument, Constant) and argument.members:
            args += (_settled(value, argument.type.member) for value in argument.value)  # type: ignore[union-attr]
        else:
            args.append(settle(argument))
    if bound.op in _COMPARING and common_type([argument.type for argument in args]) is None:  # type: ignore[union-attr]
        raise InputError(
            "a comparison of numbers this wide is not supported",
            code="unsupported-query",
            detail="No DECIMAL holds both sides.",
            hint="CAST one side to DOUBLE.",
        )
    return Call(bound.op, tuple(args), str(bound.type))


def _settled(value: ConstantValue, sql_type: SqlType) -> Value:
    """Return a constant as a `Value`. The type ``NUMERIC``, which only slots have, becomes BIGINT or DECIMAL."""
    if sql_type == NUMERIC:
        sql_type, value = (BIGINT, None) if value is None else exact_or_decimal(str(value))
    return Value(_scalar(value), str(sql_type))


def _scalar(value: ConstantValue) -> Scalar:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    return value  # type: ignore[return-value]  # sets are spread by the caller
