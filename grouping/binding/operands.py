"""Checks the types of an operator's operands, gives constants the types of the other operands, and binds CAST."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import CAST_NULL, Bound, Constant, Term, is_null, is_text_null
from grouping.binding.constants import coerce, column_text, plainly_among, read_again
from grouping.binding.implicit import by_digits, check_json_parts, of_shape, read_as
from grouping.binding.intervals import alike, is_interval
from grouping.functions.functions import CASTS
from grouping.functions.results import common_type
from grouping.model.errors import InputError
from grouping.model.expression import Column, Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    VARIANT,
    SqlType,
)
from grouping.values.iso8601 import padded
from grouping.values.variant import parse_variant_path

__all__ = [
    "as_day",
    "as_timestamp",
    "boolean",
    "cases",
    "cast",
    "comparable",
    "mismatch",
    "part_of_variant",
    "typed",
    "unify",
    "unsupported",
    "whole_number",
]


_DIGITS = frozenset("0123456789ABCDEF")


def comparable(operands: Sequence[Bound], *, looked_up: bool = True, among: bool = False) -> tuple[Bound, ...]:
    """Return operands of a comparison, in which constants have the type of the other operands.

    A constant number that is compared with a column, or is a value of IN, may have any number of digits. Compared with
    any other expression, the number must fit a BIGINT or a DECIMAL.

    Args:
        operands: The operands; for IN, the needle comes first.
        looked_up: Whether the comparison is a condition that may use an index; False for nullif.
        among: Whether the operands are those of an IN.
    """
    if looked_up and (pair := _plain(operands)) is not None:
        return pair
    if among and (listed := plainly_among(operands[0], operands[1:])) is not None:
        return listed
    if any(map(is_interval, operands)):
        if among:
            raise unsupported("IN with an interval", "Intervals are compared only with operators such as =.", "Use OR.")
        return alike(operands)[1]
    if looked_up and STRING in {operand.type for operand in operands}:
        check_json_parts(operands)
        operands = _with_texts_read(operands)
        if not among and len(operands) == 2:
            operands = _beside_text(*operands)
    types = {operand.type for operand in operands}
    if {TIMESTAMP, DATE} <= types:
        operands = [as_timestamp(operand) if operand.type == DATE else operand for operand in operands]
    if BINARY in types:
        operands = [_digits(operand) for operand in operands]
    others = [operand for operand in operands if not isinstance(operand, Constant)]
    kinds = [operand.type for operand in others]
    sql_type = DOUBLE if {FLOAT, DOUBLE} & {*kinds} else kinds[0] if kinds else _constants_type(operands)
    if sql_type == VARIANT:
        raise mismatch(
            "a VARIANT cannot be compared",
            "A VARIANT has no type that could be compared, as in Spark.",
            "variant_get(value, '$.name', 'DOUBLE') returns a part that can be compared.",
        )
    if not sql_type.is_ordered:
        raise unsupported(
            f"a comparison of {sql_type}",
            f"Values of type {sql_type} cannot be compared.",
            "Compare a field or an element, or the result of a function such as size.",
        )
    for other in others:
        if not other.type.is_like(sql_type):
            raise _incomparable(next((one for one in others if one.type.is_like(sql_type)), others[0]), other)
    needle = operands[0]
    plain = len(others) == 1 and isinstance(others[0], Column) and (len(operands) == 2 or needle is others[0])
    exact = "exact" if (looked_up and plain) or (among and not isinstance(needle, Constant)) else "decimal"
    beside = others[kinds.index(sql_type)] if sql_type in kinds else None
    read = tuple(
        coerce(operand, sql_type, exact, beside) if isinstance(operand, Constant) else operand for operand in operands
    )
    if exact == "decimal" and common_type([operand.type for operand in read]) is None:
        read = by_digits(read)
    if exact == "decimal" and common_type([operand.type for operand in read]) is None:
        raise unsupported("a comparison of numbers this wide", "No DECIMAL holds both sides.", "CAST one to DOUBLE.")
    return read


def _plain(operands: Sequence[Bound]) -> tuple[Bound, ...] | None:
    """Return the operands if they are a column and a constant of its kind; None for any other operands.

    This is a shortcut, since a predicate may have thousands of such comparisons.
    """
    if len(operands) != 2:
        return None
    one, other = operands
    if isinstance(one, Column):
        return plainly_among(one, [other])
    plain = plainly_among(other, [one]) if isinstance(other, Column) else None
    return plain and plain[::-1]


def _with_texts_read(operands: Sequence[Bound]) -> Sequence[Bound]:
    """Return operands in which each text that is not a constant is CAST as in Spark.

    A STRING column that is compared with a constant of another type is not CAST: such a comparison is nearly always a
    mistake, and the caller refuses it.
    """
    read = read_as([operand.type for operand in operands if not is_null(operand)])
    texts = [operand for operand in operands if operand.type == STRING and not isinstance(operand, Constant)]
    constants = [operand for operand in operands if isinstance(operand, Constant) and not is_null(operand)]
    mistaken = any(isinstance(text, Column) for text in texts) and any(one.type != STRING for one in constants)
    if read is None or mistaken:
        return operands
    return [cast(operand, read) if operand in texts else of_shape(operand) for operand in operands]


def _beside_text(one: Bound, other: Bound) -> tuple[Bound, Bound]:
    """Return two operands of a comparison; as in Spark, a DECIMAL compared with a string literal is CAST to DOUBLE."""
    if isinstance(one, Constant) and not isinstance(other, Constant):
        return _beside_text(other, one)[::-1]
    if one.type.is_decimal and isinstance(other, Constant) and other.reader == "string" and not is_null(other):
        return Term("cast", (one,), DOUBLE), other
    return one, other


def _digits(operand: Bound) -> Bound:
    """Return a BINARY, or a STRING compared with a BINARY, as hexadecimal digits: they have the order of the bytes.

    Raises:
        InputError: ``type-mismatch`` for any other type.
    """
    if is_null(operand):
        return Constant(None, STRING)
    if isinstance(operand, Constant) and operand.type == STRING:
        digits = str(operand.value).encode().hex().upper()
        return Constant(digits, STRING, position=operand.position, is_pinned=True)
    if isinstance(operand, Term) and operand.op == "unhex" and isinstance(operand.args[0], Constant):
        digits = str(operand.args[0].value).upper()
        known = set(digits) <= _DIGITS
        return Constant(digits.zfill(len(digits) + len(digits) % 2) if known else None, STRING)
    if operand.type not in (BINARY, STRING):
        raise mismatch(
            f"BINARY cannot be compared with {operand.type}", "BINARY is compared with BINARY or STRING.", "CAST one."
        )
    return Term("hex", (operand,), STRING)


def _incomparable(*operands: Bound) -> InputError:
    """Return the refusal to compare two non-constant operands of different types."""
    kinds = " cannot be compared with ".join(str(operand.type) for operand in operands)
    shown = " and ".join(f"{column_text(operand) or 'an expression'} is {operand.type}" for operand in operands)
    return mismatch(kinds, f"{shown[0].upper()}{shown[1:]}.", "CAST one.")


def _constants_type(operands: Sequence[Bound]) -> SqlType:
    """Return the type in which constants are compared with each other: DOUBLE for numbers if any number is a DOUBLE."""
    kinds = [operand.type for operand in operands if not (isinstance(operand, Constant) and operand.value is None)]
    if not kinds:
        return STRING
    if kinds[0].is_number:
        return DOUBLE if DOUBLE in kinds else BIGINT
    return next((sql_type for sql_type in (TIMESTAMP, DATE) if sql_type in kinds), kinds[0])


def unify(operands: Sequence[Bound], what: str) -> tuple[Bound, ...]:
    """Return operands that have a common type, such as the results of CASE; texts are CAST as in Spark."""
    if any(map(is_interval, operands)):
        raise unsupported(
            f"{what} of intervals",
            "An interval is not a value, so nothing can return one.",
            "timestampdiff(SECOND, a, b) gives a number.",
        )
    if (read := read_as(_known(operands))) is not None:
        read_text = _time_of if read in (DATE, TIMESTAMP) else coerce
        operands = [Constant(None, read) if is_text_null(one) else one for one in operands]
        operands = [
            read_text(one, read) if isinstance(one, Constant) and one.type == STRING and not is_null(one) else one
            for one in _with_texts_read(operands)
        ]
    if {DATE, TIMESTAMP} <= {*_known(operands)}:
        operands = [as_timestamp(operand) if operand.type == DATE else operand for operand in operands]
    known = _known(operands)
    sql_type = common_type(known) if known else STRING
    if sql_type is None:
        if all(one.is_number for one in known):
            raise unsupported(what, f"{_listed(known, ' and ')} have no common DECIMAL type.")
        raise mismatch(f"{what} mixes types", f"The operands are {_listed(known)}.", "CAST them.")
    is_read = sql_type in (DOUBLE, DATE, TIMESTAMP)
    operands = [Constant(None, sql_type) if is_null(one) else one for one in operands]
    return tuple(coerce(one, sql_type) if isinstance(one, Constant) and is_read else one for one in operands)


def _known(operands: Sequence[Bound]) -> list[SqlType]:
    """Return the types of operands, except of untyped NULLs."""
    return [one.type for one in operands if not is_null(one) or one.type != STRING or is_text_null(one)]


def _listed(kinds: Sequence[SqlType], between: str = ", ") -> str:
    return between.join(map(str, dict.fromkeys(kinds)))


def cases(conditions: Sequence[Bound], results: Sequence[Bound]) -> Term:
    """Return CASE over BOOLEAN conditions; if there is one result more than conditions, the last one is ELSE."""
    unified = unify(results, "CASE")
    args: list[Bound] = []
    for condition, result in zip(conditions, unified, strict=False):
        args += (condition, result)
    args += unified[len(conditions) :]
    return Term("case", tuple(args), common_type([result.type for result in unified]) or UNKNOWN)


def as_timestamp(operand: Bound) -> Bound:
    """Return an operand as a TIMESTAMP: a DATE becomes its midnight, a constant text is read, any other text is CAST.

    Raises:
        InputError: ``type-mismatch``.
    """
    if isinstance(operand, Constant) and (operand.value is None or operand.type in (STRING, DATE)):
        return coerce(operand, TIMESTAMP)
    if operand.type == TIMESTAMP:
        return operand
    if operand.type not in (DATE, STRING):
        raise mismatch(f"a time is {operand.type}", "The value must be DATE or TIMESTAMP.", "CAST it.")
    return Term("cast", (operand,), TIMESTAMP)


def whole_number(operand: Bound, name: str) -> Bound:
    """Return an argument of a function that takes a BIGINT, with Spark's implicit CAST of a number or a text.

    Raises:
        InputError: ``type-mismatch``.
    """
    if is_null(operand):
        return Constant(None, BIGINT)
    if operand.type.is_whole:
        return operand
    if not operand.type.is_number and operand.type != STRING:
        raise mismatch(f'an argument of "{name}" is {operand.type}', "The argument must be a whole number.", "CAST it.")
    return cast(operand, BIGINT)


def as_day(operand: Bound) -> Bound:
    """Return an operand as a DATE or a TIMESTAMP, to read its day; raises as `as_timestamp` does."""
    if operand.type == STRING and not isinstance(operand, Constant):
        return cast(operand, DATE)
    return operand if operand.type == DATE and not is_null(operand) else as_timestamp(operand)


def boolean(operand: Bound, where: str) -> Bound:
    """Return an operand that must be BOOLEAN."""
    if is_null(operand) and not is_text_null(operand):
        return Constant(None, BOOLEAN)
    if operand.type != BOOLEAN:
        hint = "Compare it with a value."
        if isinstance(operand, Constant) and where.startswith("an operand"):
            hint = "Repeat the comparison, as in a = 1 OR a = 2, or write IN."
        raise mismatch(f"{where} is not BOOLEAN", f"The expression is {operand.type}.", hint)
    return operand


def typed(operand: Bound) -> Bound:
    """Return an operand as a value, not a literal: a whole number has the precision of its type, not of its digits."""
    if is_null(operand):
        return Constant(None, operand.type, text=CAST_NULL)
    if isinstance(operand, Constant) and operand.reader == "literal" and operand.type in (INT, BIGINT):
        return read_again(operand, "whole")
    return operand


def cast(operand: Bound, sql_type: SqlType) -> Bound:
    """Return the operand CAST to a type; a literal CAST to DATE, TIMESTAMP or DOUBLE becomes a constant."""
    if isinstance(operand, Constant) and operand.reader:
        if operand.type == STRING and sql_type in (DATE, TIMESTAMP):
            return _time_of(operand, sql_type)
        if operand.type.is_number and sql_type in (DOUBLE, FLOAT):
            read = coerce(operand, DOUBLE)
            return read if sql_type == DOUBLE else Term("cast", (read,), FLOAT)
    if operand.type == VARIANT and not is_null(operand):
        return part_of_variant(operand, "$", sql_type)
    if operand.type == sql_type:
        return typed(operand)
    if not sql_type.is_ordered:
        raise unsupported(f"CAST of {operand.type} to {sql_type}", f"Only a VARIANT is CAST to {sql_type.name}.")
    castable = CASTS.get(operand.type.name, frozenset())
    # CAST(NULL AS t) stays a CAST wherever CAST('text' AS t) does, so that both queries have one signature.
    if is_null(operand) and (operand.type != STRING or sql_type.name not in castable or sql_type in (DATE, TIMESTAMP)):
        return Constant(None, sql_type)
    if sql_type.name not in castable:
        if sql_type == STRING and operand.type in (FLOAT, DOUBLE):
            raise unsupported(
                f"CAST of {operand.type} to STRING",
                "Java 17 and Java 21 write some numbers differently, such as 2e23.",
                "Use format_number(price, 2), or CAST to a DECIMAL before the CAST to STRING.",
            )
        raise unsupported(f"CAST of {operand.type} to {sql_type}", "The result would not be exactly Spark's.")
    return Term("cast", (operand,), sql_type)


def _time_of(text: Constant, sql_type: SqlType) -> Constant:
    """Return a constant text as a DATE or TIMESTAMP; the text is in ISO 8601, or in a form that Spark's CAST reads."""
    try:
        return coerce(text, sql_type)
    except InputError:
        if text.text == padded(text.text):
            raise
        return read_again(text, f"cast {sql_type.name.lower()}")


def part_of_variant(value: Bound, path: str, sql_type: SqlType) -> Term:
    """Return a part of a VARIANT, selected by a path, as a value of a type.

    Raises:
        InputError: ``unsupported-query`` for a wrong path, and for a type to which a VARIANT cannot be CAST.
    """
    parse_variant_path(path)
    if not _from_variant(sql_type):
        raise unsupported(
            f"CAST of VARIANT to {sql_type}", "The result would not be exactly Spark's.", "DOUBLE is exact."
        )
    return Term("variant_get", (value, Value(path, "STRING")), sql_type)


def _from_variant(sql_type: SqlType) -> bool:
    parts = [field for _, field in sql_type.fields] + ([sql_type.element] if sql_type.element else [])
    return sql_type.name in CASTS["VARIANT"] and all(map(_from_variant, parts))
