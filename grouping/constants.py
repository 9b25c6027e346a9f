"""Constants: read exactly for the place where they stand, and lifted into a row's slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from grouping.bound import Bound, Constant
from grouping.errors import InputError
from grouping.expression import Call, Column, Expression, Scalar, Slot, Value
from grouping.functions import common_type, family, result_type
from grouping.group import ConstantRow, ConstantValue
from grouping.patterns import rust_pattern

__all__ = ["READERS", "as_decimal", "as_set", "coerce", "lift", "number", "read_again", "set_of", "settle", "string"]

_LONGEST_NUMBER = 400
_LARGEST_COUNT = 1000
_COMPARING = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>", "in"))
_EXACT = Context(prec=2 * _LONGEST_NUMBER)
_ISO_DATE = re.compile(r"\d{4}-?\d\d-?\d\d", re.ASCII)
_ISO_TIMESTAMP = re.compile(
    r"\d{4}-?\d\d-?\d\d([T ]\d\d(:?\d\d(:?\d\d([.,]\d{1,6}0*)?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)


def _exact(text: str) -> tuple[str, ConstantValue]:
    """Read a number exactly: a BIGINT where one holds it, else NUMERIC."""
    if len(text) <= 18 and text.isdecimal():
        return "BIGINT", int(text)
    value = _decimal(text)
    if value == value.to_integral_value() and -(2**63) <= value < 2**63:
        return "BIGINT", int(value)
    return "NUMERIC", _EXACT.normalize(value)


def _exact_or_decimal(text: str) -> tuple[str, ConstantValue]:
    """Read a number exactly, as a BIGINT or a DECIMAL."""
    kind, value = _exact(text)
    if not isinstance(value, Decimal):
        return kind, value
    parts = value.as_tuple()
    scale = max(0, -int(parts.exponent))
    return f"DECIMAL({max(len(parts.digits) + max(0, int(parts.exponent)), scale)},{scale})", value


def _double(text: str) -> tuple[str, ConstantValue]:
    if len(text) <= 18 and text.replace(".", "", 1).isdecimal():
        return "DOUBLE", float(text)
    value = float(_decimal(text))
    if value in (float("inf"), float("-inf")):
        raise _unreadable(text, "DOUBLE")
    return "DOUBLE", value + 0.0


def _literal(text: str) -> tuple[str, ConstantValue]:
    """Read a number as Spark types it where no column says otherwise."""
    if "e" in text or "E" in text:
        return _double(text)
    value = _decimal(text)
    if "." not in text and -(2**63) <= value < 2**63:
        return ("INT" if -(2**31) <= value < 2**31 else "BIGINT"), int(value)
    digits, scale = value.as_tuple().digits, max(0, -int(value.as_tuple().exponent))
    return f"DECIMAL({max(len(digits), scale)},{scale})", value


def _decimal(text: str) -> Decimal:
    if len(text) > _LONGEST_NUMBER:
        raise _unreadable(text[:20] + "…", "number")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _unreadable(text, "number") from None
    # A zero's exponent counts too: 0e999999999 takes a gigabyte when it is made an int.
    if not value.is_finite() or abs(value.adjusted()) > _LONGEST_NUMBER:
        raise _unreadable(text, "number")
    return value


def _string(text: str) -> tuple[str, ConstantValue]:
    return "STRING", text


def _date(text: str) -> tuple[str, ConstantValue]:
    try:
        if _ISO_DATE.fullmatch(text):
            return "DATE", date.fromisoformat(text)
    except ValueError:
        pass
    raise _unreadable(text, "DATE")


def _timestamp(text: str) -> tuple[str, ConstantValue]:
    try:
        if _ISO_TIMESTAMP.fullmatch(text):
            time = datetime.fromisoformat(text)
            return "TIMESTAMP", time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _unreadable(text, "TIMESTAMP")


def _precise(text: str) -> tuple[str, ConstantValue]:
    """Read a whole number beside a DECIMAL as Spark does: of as many digits as it has."""
    kind, value = _literal(text)
    if isinstance(value, int):
        value = Decimal(value)
        kind = f"DECIMAL({len(value.as_tuple().digits)},0)"
    return kind, value


def _count(text: str) -> tuple[str, ConstantValue]:
    """Read how often something is repeated, or to which length it is padded."""
    kind, value = _literal(text)
    if kind != "INT" or not isinstance(value, int) or value > _LARGEST_COUNT:
        raise InputError(
            f'"{text}" is no INT of up to {_LARGEST_COUNT}',
            code="unsupported-query",
            detail="It is the length or number of repetitions of a string.",
        )
    return kind, value


def _pattern(text: str) -> tuple[str, ConstantValue]:
    rust_pattern(text)
    return "STRING", text


READERS: dict[str, Callable[[str], tuple[str, ConstantValue]]] = {
    "exact": _exact,
    "decimal": _exact_or_decimal,
    "double": _double,
    "literal": _literal,
    "precise": _precise,
    "count": _count,
    "pattern": _pattern,
    "string": _string,
    "date": _date,
    "timestamp": _timestamp,
}
"""From a literal's text to the type and the value of its slot."""


def number(text: str, position: int | None) -> Constant:
    """Return the constant of a number's text, its sign included."""
    kind, value = _literal(text)
    return Constant(value, kind, "literal", text, position)


def string(text: str, position: int | None) -> Constant:
    """Return the constant of a string."""
    return Constant(text, "STRING", "string", text, position)


def read_again(constant: Constant, reader: str) -> Constant:
    """Return the constant with its text read in another way."""
    kind, value = READERS[reader](constant.text)
    return Constant(value, kind, reader, constant.text, constant.position)


def coerce(constant: Constant, kind: str, exact: str = "exact") -> Constant:
    """Return the constant as it compares with an expression of that type.

    Args:
        constant: As it was read from the text.
        kind: The type of what it stands beside.
        exact: The reader of numbers beside whole numbers and DECIMALs.

    Raises:
        InputError: ``type-mismatch`` when the two are of different kinds, or the text is no date.
    """
    wanted = family(kind)
    if constant.value is None and not constant.members:
        return Constant(None, _null_type(kind))
    if wanted == "number" and family(constant.type) == "number":
        if constant.reader is None:
            return constant
        return read_again(constant, "double" if kind == "DOUBLE" else exact)
    if constant.type == kind:
        return constant
    if constant.type == "STRING" and kind in ("DATE", "TIMESTAMP"):
        return read_again(constant, kind.lower())
    if constant.type == "DATE" and kind == "TIMESTAMP" and isinstance(constant.value, date):
        return Constant(datetime(constant.value.year, constant.value.month, constant.value.day, tzinfo=UTC), kind)
    shown = "a number" if family(constant.type) == "number" else f"a {constant.type}"
    raise InputError(
        f'"{constant.text or constant.value}" does not compare with {kind}',
        code="type-mismatch",
        detail=f"The constant is {shown}, and what it stands beside is {kind}.",
        hint="Write a constant of that type, or CAST one side.",
    )


def _null_type(kind: str) -> str:
    if family(kind) == "number" and kind != "DOUBLE":
        return "BIGINT"
    return kind or "STRING"


def set_of(members: Iterable[Constant]) -> Constant:
    """Return the one constant that an IN list is: a set, or for a single value that value.

    The members are coerced already. Order and repetitions are gone; NULL comes last.
    """
    flat = tuple(leaf for member in members for leaf in (member.members or (member,)))
    kind, values = as_set([(member.type, member.value) for member in flat])
    if len(values) == 1:
        first = next(member for member in flat if member.value == values[0])
        # Another literal in the place of one of several could make it a set: nothing may take its place.
        return first if len(flat) == 1 else Constant(values[0], kind)
    return Constant(values, f"SET<{kind}>", members=flat)


def as_decimal(constant: Constant) -> Constant:
    """Return an exact number as the DECIMAL that it is where no column stands beside it."""
    if constant.reader is not None:
        return read_again(constant, "decimal")
    kind, value = ("BIGINT", None) if constant.value is None else _exact_or_decimal(str(constant.value))
    return Constant(value, kind)


def as_set(typed: Iterable[tuple[str, ConstantValue]]) -> tuple[str, tuple[Any, ...]]:
    """Return the element type and the sorted values of a set."""
    typed = list(typed)
    kinds = {kind for kind, value in typed if value is not None} or {kind for kind, _ in typed}
    kind = "NUMERIC" if "NUMERIC" in kinds else min(kinds)
    values: set[Any] = {value for _, value in typed}
    null: tuple[Any, ...] = (None,) if None in values else ()
    values.discard(None)
    ordered = sorted(values)
    if kind == "NUMERIC":
        ordered = [_EXACT.normalize(Decimal(value)) for value in ordered]
    return kind, (*ordered, *null)


def lift(conjuncts: Iterable[Bound]) -> tuple[tuple[Expression, ...], ConstantRow, tuple[Constant, ...]]:
    """Cut the constants out of canonical conjuncts, numbering the slots in the order in which they stand.

    Returns:
        The conjuncts over slots, the row, and the constants that it was made from.
    """
    lifted: list[Constant] = []
    expressions = tuple(_lift(conjunct, lifted) for conjunct in conjuncts)
    values = tuple(constant.value for constant in lifted)
    return expressions, ConstantRow(tuple(constant.type for constant in lifted), values), tuple(lifted)


def _lift(bound: Bound, lifted: list[Constant]) -> Expression:
    if isinstance(bound, Constant):
        lifted.append(bound)
        return Slot(len(lifted) - 1)
    if isinstance(bound, Column):
        return bound
    args = tuple(_lift(argument, lifted) for argument in bound.args)
    # The type must not betray the constants: `i + 1` and `i + 3000000000` are one signature.
    kinds = ["" if isinstance(argument, Slot) else argument.type for argument in args]
    return Call(bound.op, args, bound.type if bound.op == "cast" else result_type(bound.op, kinds))


def settle(bound: Bound) -> Expression:
    """Return an expression of a SELECT list, its constants left in place."""
    if isinstance(bound, Column):
        return bound
    if isinstance(bound, Constant):
        return _settled(bound.value, bound.type)
    args: list[Expression] = []
    for argument in bound.args:
        if isinstance(argument, Constant) and argument.members:
            args += (_settled(value, argument.type[4:-1]) for value in argument.value)  # type: ignore[union-attr]
        else:
            args.append(settle(argument))
    if bound.op in _COMPARING and common_type([argument.type for argument in args]) is None:  # type: ignore[union-attr]
        raise InputError(
            "a comparison of such wide numbers is not supported",
            code="unsupported-query",
            detail="No DECIMAL holds both sides.",
            hint="CAST one to DOUBLE.",
        )
    return Call(bound.op, tuple(args), bound.type)


def _settled(value: ConstantValue, kind: str) -> Value:
    """Return a value whose type is a column's: where nothing is lifted there is no ``NUMERIC``."""
    if kind == "NUMERIC":
        kind, value = ("BIGINT", None) if value is None else _exact_or_decimal(str(value))
    return Value(_scalar(value), kind)


def _scalar(value: ConstantValue) -> Scalar:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    return value  # type: ignore[return-value]  # sets are spread by the caller


def _unreadable(text: str, kind: str) -> InputError:
    form = {"DATE": "2026-11-21", "TIMESTAMP": "2026-11-21T10:00:00Z"}.get(kind)
    return InputError(
        f'"{text}" is no {kind}',
        code="type-mismatch",
        detail=f"It stands where a {kind} in ISO 8601 is wanted." if form else "It is out of range.",
        hint=f"Write it as '{form}'." if form else None,
    )
