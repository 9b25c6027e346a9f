"""Operators and functions applied to bound operands: kinds checked, constants read for their place, results typed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grouping.compiler.bound import Bound, Constant, Term
from grouping.compiler.constants import coerce, column_text, read_again
from grouping.functions.functions import CASTS, FUNCTIONS, common_type, result_type
from grouping.model.errors import InputError
from grouping.model.expression import Column
from grouping.model.sql_type import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, UNKNOWN, SqlType
from grouping.model.wording import are, counted

__all__ = [
    "apply",
    "arithmetic",
    "boolean",
    "cases",
    "cast",
    "comparable",
    "negative",
    "positive",
    "unify",
    "unsupported",
]


_TURNED_DIGITS = 34


def unsupported(what: str, detail: str, hint: str | None = None) -> InputError:
    """Return the refusal of a part of a query."""
    return InputError(f"{what} is not supported", code="unsupported-query", detail=detail, hint=hint)


def mismatch(message: str, detail: str, hint: str | None = None) -> InputError:
    """Return the refusal of an operand of the wrong kind."""
    return InputError(message, code="type-mismatch", detail=detail, hint=hint)


def comparable(operands: Sequence[Bound], *, looked_up: bool = True, among: bool = False) -> tuple[Bound, ...]:
    """Return operands that are compared with one another, constants read as the others' type.

    Beside columns, and among the values of IN, an exact number of any size has a place; beside anything else it is a
    BIGINT or a DECIMAL.
    """
    others = [operand for operand in operands if not isinstance(operand, Constant)]
    kinds = [operand.type for operand in others]
    kind = DOUBLE if DOUBLE in kinds else kinds[0] if kinds else _constants_type(operands)
    if kind.is_nested:
        raise unsupported(f"a comparison of {kind}", "Values with parts are not compared.", "Compare a part of them.")
    for other in others:
        if not other.type.is_like(kind):
            raise _incomparable(others[kinds.index(kind)], other)
    needle = operands[0]
    plain = len(others) == 1 and isinstance(others[0], Column) and (len(operands) == 2 or needle is others[0])
    exact = "exact" if (looked_up and plain) or (among and not isinstance(needle, Constant)) else "decimal"
    beside = others[kinds.index(kind)] if kind in kinds else None
    read = tuple(
        coerce(operand, kind, exact, beside) if isinstance(operand, Constant) else operand for operand in operands
    )
    if exact == "decimal" and common_type([operand.type for operand in read]) is None:
        raise unsupported("a comparison of such wide numbers", "No DECIMAL holds both sides.", "CAST one to DOUBLE.")
    return read


def _incomparable(*operands: Bound) -> InputError:
    """Return the refusal to compare two operands that are no constants."""
    kinds = " does not compare with ".join(str(operand.type) for operand in operands)
    shown = " and ".join(f"{column_text(operand) or 'an expression'} is {operand.type}" for operand in operands)
    return mismatch(kinds, f"{shown[0].upper()}{shown[1:]}.", "CAST one.")


def _constants_type(operands: Sequence[Bound]) -> SqlType:
    """Return the type that constants compare in; numbers among themselves exactly."""
    kinds = [operand.type for operand in operands if not (isinstance(operand, Constant) and operand.value is None)]
    if not kinds:
        return STRING
    if kinds[0].is_number:
        return DOUBLE if DOUBLE in kinds else BIGINT
    return next((kind for kind in (TIMESTAMP, DATE) if kind in kinds), kinds[0])


def unify(operands: Sequence[Bound], what: str) -> tuple[Bound, ...]:
    """Return operands that have one common type, as the results of CASE have."""
    known = [operand.type for operand in operands if not (_null(operand) and operand.type == STRING)]
    times = [operand.type for operand in operands if operand.type in (DATE, TIMESTAMP)]
    kind = times[0] if times and set(known) <= {times[0], STRING} else common_type(known) if known else STRING
    if kind is None:
        if all(one.is_number for one in known):
            raise unsupported(what, f"{_listed(known, ' and ')} have no common DECIMAL type.")
        raise mismatch(f"{what} mixes kinds", f"Its operands are {_listed(known)}.", "CAST them.")
    unified: list[Bound] = []
    for operand in operands:
        if isinstance(operand, Constant) and (_null(operand) or kind == DOUBLE or times):
            unified.append(coerce(operand, kind) if not _null(operand) else Constant(None, kind))
        elif times and operand.type != kind:
            raise mismatch(f"{what} mixes kinds", f"Its operands are {_listed(known)}.", "CAST them.")
        else:
            unified.append(operand)
    return tuple(unified)


def _listed(kinds: Sequence[SqlType], between: str = ", ") -> str:
    return between.join(map(str, dict.fromkeys(kinds)))


def _null(operand: Bound) -> bool:
    return isinstance(operand, Constant) and operand.value is None


def cases(conditions: Sequence[Bound], results: Sequence[Bound]) -> Term:
    """Return CASE over BOOLEAN conditions; one result more than these is ELSE."""
    unified = unify(results, "CASE")
    args: list[Bound] = []
    for condition, result in zip(conditions, unified, strict=False):
        args += (condition, result)
    args += unified[len(conditions) :]
    return Term("case", tuple(args), common_type([result.type for result in unified]) or UNKNOWN)


def boolean(operand: Bound, where: str) -> Bound:
    """Return an operand that must be BOOLEAN."""
    if _null(operand):
        return Constant(None, BOOLEAN)
    if operand.type != BOOLEAN:
        raise mismatch(f"{where} is not BOOLEAN", f"It is {operand.type}.", "Compare it with something.")
    return operand


def arithmetic(op: str, left: Bound, right: Bound) -> Term:
    """Return an arithmetic operation; `op` is one of ``+ - * / div % pmod``."""
    operands = [left, right]
    kinds = [operand.type for operand in operands if not _null(operand)]
    for kind in kinds:
        _check_number(kind, f'"{op}"')
    if op == "div" and DOUBLE in kinds:
        raise mismatch('"div" is of whole numbers', "One operand is DOUBLE.", 'Use "/".')
    wide, decimal = DOUBLE in kinds, any(kind.is_decimal for kind in kinds)
    if decimal and not wide and op in ("div", "pmod"):
        raise unsupported(f'"{op}" of DECIMALs', "It is computed for INT and BIGINT.", "CAST the operands.")
    for i, operand in enumerate(operands):
        if _null(operand) and not operand.type.is_number:
            operands[i] = Constant(None, kinds[0] if kinds else INT)
        elif isinstance(operand, Constant) and wide:
            operands[i] = read_again(operand, "double") if operand.reader else operand
        elif isinstance(operand, Constant) and decimal and operand.reader == "literal":
            operands[i] = read_again(operand, "precise")
    return Term(op, tuple(operands), result_type(op, [operand.type for operand in operands]))


def negative(operand: Bound) -> Bound:
    """Return the negation of a number; that of a whole literal in parentheses is no literal to Spark."""
    if _null(operand):
        return Constant(None, INT)
    operand = positive(operand, '"-"')
    if isinstance(operand, Constant) and operand.reader in ("literal", "whole") and not operand.text.startswith("-"):
        return read_again(msgspec.structs.replace(operand, text=f"-{operand.text}"), _NEGATED[operand.reader])
    _check_turned(operand, '"-"')
    return Term("neg", (operand,), operand.type)


_NEGATED = {"literal": "literal", "whole": "negated"}


def positive(operand: Bound, what: str = '"+"') -> Bound:
    """Return a number as it is, but for a whole literal: it is typed as any INT or BIGINT then, as Spark does."""
    if _null(operand):
        return Constant(None, operand.type if operand.type.is_number else DOUBLE)
    _check_number(operand.type, what)
    return typed(operand)


def typed(operand: Bound) -> Bound:
    """Return a whole literal as a number of its type: beside a DECIMAL it counts as all of these, not by its digits."""
    if isinstance(operand, Constant) and operand.reader == "literal" and operand.type in (INT, BIGINT):
        return read_again(operand, "whole")
    return operand


def _check_turned(operand: Bound, what: str) -> None:
    """Refuse to turn the sign of what Spark rounds to 34 digits when it does."""
    if operand.type.is_decimal and operand.type.precision > _TURNED_DIGITS:
        raise unsupported(
            f"{what} of {operand.type}", f"Spark rounds it to {_TURNED_DIGITS} digits.", "Subtract from 0."
        )


def _check_number(kind: SqlType, what: str) -> None:
    if kind in (DATE, TIMESTAMP):
        raise unsupported(
            "arithmetic with dates", f"An operand of {what} is {kind}.", "There are date_add and datediff."
        )
    if not kind.is_number:
        raise mismatch(f"{what} is of numbers", f"One operand is {kind}.")


def apply(name: str, args: Sequence[Bound]) -> Bound:
    """Return a function of `functions.FUNCTIONS` applied to arguments.

    Raises:
        InputError: ``type-mismatch`` for too few, too many or the wrong arguments.
    """
    function = FUNCTIONS[name]
    least, most = len(function.params) - function.optional, len(function.params)
    if len(args) < least or (len(args) > most and not function.variadic):
        takes = f"{least} or more arguments" if function.variadic else f"{least} to {most} arguments"
        takes = takes if function.variadic or function.optional else counted(most, "argument")
        raise mismatch(f'function "{name}" takes {takes}', f"There {are(len(args))} {len(args)}.")
    what = f'an argument of "{name}"'
    if "COMMON" in function.params:
        fitted = _null_if(args) if name == "nullif" else unify(args, f'"{name}"')
    else:
        params = function.params + function.params[-1:] * (len(args) - most)
        fitted = tuple(_fit(argument, kind, what) for argument, kind in zip(args, params, strict=False))
    if name == "abs":
        _check_turned(fitted[0], '"abs"')
    if name in ("round", "bround") and len(fitted) == 2 and fitted[0].type.is_decimal:
        raise unsupported(f'"{name}" of a DECIMAL to a scale', "The result's type would depend on it.", "CAST it.")
    if name in ("concat", "coalesce") and len(fitted) == 1:
        return fitted[0]
    if name == "ilike":
        return _without_case(fitted)
    return Term(name, fitted, result_type(name, [argument.type for argument in fitted]))


def _null_if(args: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return the operands of nullif: the first one is the result, and keeps its type."""
    first, other = comparable(args, looked_up=False)
    if not isinstance(args[0], Constant) or args[0].type == first.type:
        return first, other
    if not first.type.is_number:
        raise unsupported('"nullif" of a text beside a date', "The result would be a STRING.", "CAST it.")
    return args[0], other


def _without_case(args: tuple[Bound, ...]) -> Term:
    """Return ILIKE as LIKE between small letters, which is how Spark has it."""
    text, pattern, *escape = args
    if isinstance(pattern, Constant):
        small: Bound = read_again(pattern, "ilike") if pattern.reader else pattern
    else:
        small = Term("lower", (pattern,), STRING)
    return Term("like", (Term("lower", (text,), STRING), small, *escape), BOOLEAN)


def _escape(argument: Bound) -> Constant:
    if isinstance(argument, Constant) and isinstance(argument.value, str) and len(argument.value) == 1:
        return Constant(argument.value, STRING)
    raise mismatch("ESCAPE is not one character", "It takes a string of one character.")


_CONSTANT_PARAMS = {"SCALE": (INT, "literal"), "COUNT": (INT, "count"), "PATTERN": (STRING, "pattern")}
"""Of a parameter that takes a constant only: its type, and how it is read."""
_NULL_PARAMS = {
    "NUMBER": INT,
    "WHOLE": INT,
    "DAY": DATE,
    "SCALE": INT,
    "COUNT": INT,
    "PATTERN": STRING,
    "LIKE": STRING,
    "ESCAPE": STRING,
}


_ACCEPTED = {"WHOLE": ("INT", "BIGINT"), "DAY": ("DATE", "TIMESTAMP")}
_SHOWN_PARAMS = {"NUMBER": "a number", "WHOLE": "INT or BIGINT", "DAY": "DATE or TIMESTAMP"}


def _fit(argument: Bound, param: str, what: str) -> Bound:
    """Return an argument that suits a parameter, which is named as in `functions.Function`."""
    if _null(argument):
        typed = param in ("NUMBER", "WHOLE") and argument.type.is_number
        return argument if typed else Constant(None, _NULL_PARAMS.get(param) or SqlType.of(param))
    if param == "LIKE":
        pattern = _fit(argument, "STRING", what)
        return read_again(pattern, "like") if isinstance(pattern, Constant) and pattern.reader else pattern
    if param == "ESCAPE":
        return _escape(argument)
    if param in _CONSTANT_PARAMS:
        wanted, reader = _CONSTANT_PARAMS[param]
        if not isinstance(argument, Constant):
            raise unsupported(f"{what} that is no constant", f"It must be one of type {wanted}.")
        if argument.type != wanted:
            raise mismatch(f"{what} is {argument.type}", f"It must be {wanted}.")
        return read_again(argument, reader)
    if isinstance(argument, Constant) and argument.reader and argument.type.is_number and param == "DOUBLE":
        return coerce(argument, DOUBLE)
    if isinstance(argument, Constant) and argument.type == STRING and param in ("DATE", "TIMESTAMP"):
        return coerce(argument, SqlType.of(param))
    number = param in ("NUMBER", "DOUBLE") and argument.type.is_number
    if number or argument.type.name in _ACCEPTED.get(param, (param,)):
        return argument
    raise mismatch(f"{what} is {argument.type}", f"It must be {_SHOWN_PARAMS.get(param, param)}.", "CAST it.")


def cast(operand: Bound, kind: SqlType) -> Bound:
    """Return the operand as another type; a constant DATE, TIMESTAMP or DOUBLE is a constant of that type."""
    if isinstance(operand, Constant) and operand.reader:
        if operand.type == STRING and kind in (DATE, TIMESTAMP):
            return coerce(operand, kind)
        if operand.type.is_number and kind == DOUBLE:
            return coerce(operand, kind)
    castable = CASTS[operand.type.name]
    # NULL is cast where a string would be, since it may stand for one in a signature.
    if _null(operand) and (operand.type != STRING or kind.name not in castable or kind in (DATE, TIMESTAMP)):
        return Constant(None, kind)
    if operand.type == kind:
        return typed(operand)
    if kind.name not in castable:
        raise unsupported(f"CAST of {operand.type} to {kind}", "The result would not be exactly Spark's.")
    return Term("cast", (operand,), kind)
