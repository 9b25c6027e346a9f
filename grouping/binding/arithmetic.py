"""Arithmetic of bound operands: constants take the type of their context, and results are typed as in Spark."""

from __future__ import annotations

import msgspec

from grouping.binding.bound import Bound, Constant, Term, TypedLiteral, is_null, is_text_null
from grouping.binding.constants import read_again
from grouping.binding.implicit import of_shape, read_as
from grouping.binding.intervals import is_interval
from grouping.binding.operands import cast, typed
from grouping.binding.time_arithmetic import is_timed, negative_interval, timed
from grouping.functions.functions import result_type
from grouping.model.refusals import mismatch
from grouping.model.sql_type import DOUBLE, FLOAT, INT, STRING, SqlType

__all__ = ["arithmetic", "bitwise", "negative", "positive", "typed_literal"]


def arithmetic(op: str, left: Bound, right: Bound) -> Bound:
    """Return an arithmetic operation; `op` is one of ``+ - * / div % pmod``."""
    if is_timed(left) or is_timed(right):
        return timed(op, left, right)
    operands = _texts_read([left, right])
    kinds = [operand.type for operand in operands if not is_null(operand)]
    for sql_type in kinds:
        _check_number(sql_type, f'"{op}"')
    if op == "div" and {FLOAT, DOUBLE} & {*kinds}:
        raise mismatch('"div" takes whole numbers', "One operand is FLOAT or DOUBLE.", 'Use "/".')
    wide, decimal = bool({FLOAT, DOUBLE} & {*kinds}), any(sql_type.is_decimal for sql_type in kinds)
    for i, operand in enumerate(operands):
        if is_null(operand) and not operand.type.is_number:
            of_double = not kinds or (op == "/" and not i)  # as in Spark, a NULL on the left of "/" is a DOUBLE
            operands[i] = Constant(None, INT if op == "div" and not kinds else DOUBLE if of_double else kinds[0])
        elif isinstance(operand, Constant) and wide:
            operands[i] = read_again(operand, "double") if operand.reader else operand
        elif isinstance(operand, Constant) and decimal and operand.reader == "literal":
            operands[i] = read_again(operand, "precise")
        elif isinstance(operand, TypedLiteral) and decimal:
            operands[i] = _by_digits(operand)
    return Term(op, tuple(operands), result_type(op, [operand.type for operand in operands]))


def _texts_read(operands: list[Bound]) -> list[Bound]:
    """Return operands in which a STRING is CAST to a number if another operand is a number, as in Spark."""
    kinds = [operand.type for operand in operands if not is_null(operand) or is_text_null(operand)]
    read = read_as(kinds)
    if read is None or not read.is_number:
        return operands
    return [cast(operand, read) if operand.type == STRING else operand for operand in map(of_shape, operands)]


def typed_literal(number: Bound, sql_type: SqlType) -> Bound:
    """Return a whole number with the type of its suffix, as in ``5L``."""
    if number.type == sql_type:
        return number
    made = cast(number, sql_type)
    # In arithmetic with a DECIMAL, Spark gives a TINYINT literal the precision of TINYINT. Literals of the other types
    # have the precision of their digits.
    narrow = isinstance(made, Term) and sql_type.name != "TINYINT"
    return TypedLiteral("cast", (number,), sql_type) if narrow else made


def _by_digits(literal: TypedLiteral) -> Bound:
    [number] = literal.args
    return read_again(number, "precise") if isinstance(number, Constant) and number.reader else literal


def bitwise(op: str, *operands: Bound) -> Bound:
    """Return an operation on the bits of whole numbers; `op` is one of ``& | ^ ~``."""
    kinds = [operand.type for operand in operands if not is_null(operand)]
    for sql_type in kinds:
        if not sql_type.is_whole:
            raise mismatch(f'"{op}" takes whole numbers', f"One operand is {sql_type}.")
    known = tuple(Constant(None, kinds[0] if kinds else INT) if is_null(one) else typed(one) for one in operands)
    return Term(op, known, result_type(op, [operand.type for operand in known]))


def negative(operand: Bound) -> Bound:
    """Return the negation of a number or an interval. As in Spark, ``-5`` is a literal, ``-(5)`` is not (`typed`)."""
    if is_null(operand):
        return Constant(None, operand.type if operand.type.is_number else DOUBLE)
    if is_interval(operand):
        return negative_interval(operand)
    operand = positive(operand, '"-"')
    if isinstance(operand, Constant) and operand.reader in ("literal", "whole") and not operand.text.startswith("-"):
        return read_again(msgspec.structs.replace(operand, text=f"-{operand.text}"), _NEGATED[operand.reader])
    return Term("neg", (operand,), operand.type)


_NEGATED = {"literal": "literal", "whole": "negated"}


def positive(operand: Bound, what: str = '"+"') -> Bound:
    """Return the operand of a unary plus. As in Spark, a whole number after a plus is not a literal (`typed`)."""
    if is_null(operand):
        return Constant(None, operand.type if operand.type.is_number else DOUBLE)
    if is_interval(operand):
        return operand
    if operand.type == STRING:
        return cast(operand, DOUBLE)
    _check_number(operand.type, what)
    if isinstance(operand, TypedLiteral):
        return Term(operand.op, operand.args, operand.type)
    return typed(operand)


def _check_number(sql_type: SqlType, what: str) -> None:
    if not sql_type.is_number:
        raise mismatch(f"{what} takes numbers", f"One operand is {sql_type}.")
