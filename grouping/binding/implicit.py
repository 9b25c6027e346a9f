"""Spark's implicit casts of STRINGs to the types of other operands, and of numbers that no common DECIMAL can hold."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Constant, Term, is_null, pinned
from grouping.binding.constants import coerce, read_again
from grouping.functions.results import common_type
from grouping.model.decimal_types import WIDEST
from grouping.model.refusals import mismatch
from grouping.model.sql_type import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, SqlType

__all__ = ["by_digits", "check_json_parts", "of_shape", "read_as"]

_AS_THEY_ARE = (BOOLEAN, DATE, TIMESTAMP)


def read_as(kinds: Sequence[SqlType]) -> SqlType | None:
    """Return the type to which Spark casts the STRINGs among values of these types; None without such a cast.

    Example:
        >>> from grouping.model.sql_type import INT, decimal
        >>> str(read_as([STRING, INT])), str(read_as([STRING, decimal(5, 2), INT])), read_as([STRING])
        ('BIGINT', 'DOUBLE', None)
    """
    others = [sql_type for sql_type in kinds if sql_type != STRING]
    if not others or STRING not in kinds:
        return None
    if {*others} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    read = _promoted(others[0])
    for sql_type in others[1:]:
        read = common_type([read, sql_type]) if read is not None else None
    return read if read in (BIGINT, DOUBLE, *_AS_THEY_ARE) else None


def _promoted(sql_type: SqlType) -> SqlType | None:
    if sql_type.is_number:
        return BIGINT if sql_type.is_whole else DOUBLE
    return sql_type if sql_type in _AS_THEY_ARE else None


def check_json_parts(operands: Sequence[Bound]) -> None:
    """Refuse a comparison of get_json_object with whole numbers.

    Spark casts the STRING to BIGINT, so that the comparison fails for a JSON number with a fraction.

    Raises:
        InputError: ``type-mismatch``; the hint has the forms that compare as DOUBLE and as BIGINT.
    """
    parts = [operand for operand in operands if isinstance(operand, Term) and operand.op == "get_json_object"]
    if not parts or read_as([operand.type for operand in operands if not is_null(operand)]) != BIGINT:
        return
    wholes = [operand.text for operand in operands if isinstance(operand, Constant) and operand.reader == "literal"]
    double = f"{wholes[0]}.0 instead of {wholes[0]}" if wholes else "CAST(get_json_object(…) AS DOUBLE)"
    raise mismatch(
        '"get_json_object" is compared with a whole number',
        "Spark reads its STRING as BIGINT, and a number with a fraction, such as 99.5, is no BIGINT.",
        f"Write {double} to compare as DOUBLE, or CAST(get_json_object(…) AS BIGINT) if all numbers are whole.",
    )


def of_shape(operand: Bound) -> Bound:
    """Pin an operand if it is a constant, since the plan depends on the type of the constant's literal."""
    return pinned(operand) if isinstance(operand, Constant) else operand


def by_digits(operands: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return operands that have no common DECIMAL. As in Spark, the whole numbers among the constants get new types.

    A whole constant becomes a DECIMAL with as many digits as its literal, or a DOUBLE if the literal has an exponent.
    If the first operand is such a DOUBLE and another operand has too many digits for a DECIMAL, all constants become
    DOUBLEs. Constants with a new type are pinned.
    """
    read = tuple(map(_of_its_digits, operands))
    leading = read[0]
    if not isinstance(leading, Constant) or leading.type != DOUBLE:
        return read
    if all(not operand.type.is_decimal or operand.type.precision <= WIDEST for operand in read):
        return read
    return tuple(of_shape(coerce(each, DOUBLE)) if isinstance(each, Constant) else each for each in read)


def _of_its_digits(operand: Bound) -> Bound:
    if isinstance(operand, Constant) and operand.reader == "decimal" and operand.type == BIGINT:
        return of_shape(read_again(operand, "precise"))
    return operand
