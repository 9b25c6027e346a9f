"""Functions that are other spellings of operators and CASTs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from grouping.binding.arithmetic import arithmetic, negative, positive
from grouping.binding.bound import Bound, Constant, Term
from grouping.binding.calls.arguments import apply
from grouping.binding.nested import fixed
from grouping.binding.operands import boolean, cases, cast, comparable
from grouping.functions.any_type import CASTING
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN, DOUBLE, FLOAT, INT, STRING, SqlType

__all__ = ["REWRITTEN_CALLS", "decoded"]

CallBinder = Callable[..., Bound]
_HEX = Constant("hex", STRING)


def decoded(args: Sequence[Bound]) -> Bound:
    """Return decode: its arguments are a value, pairs of a searched value and its result, and maybe a default.

    Raises:
        InputError: ``type-mismatch`` for values of different kinds.
    """
    value, *others = args
    conditions = [Term("<=>", comparable((value, sought)), BOOLEAN) for sought in others[:-1:2]]
    results = [*others[1::2], *(others[-1:] if len(others) % 2 else [])]
    return cases(conditions, results)


def _nan_else(name: str, *args: Bound) -> Bound:
    """Return the first number, or the second if the first is NaN: a FLOAT if both are FLOATs, otherwise a DOUBLE."""
    sql_type = FLOAT if all(argument.type == FLOAT for argument in args) else DOUBLE
    first, other = (cast(_number(name, argument), sql_type) for argument in args)
    return cases([apply("isnan", (first,))], (other, first))


def _number(name: str, argument: Bound) -> Bound:
    if not argument.type.is_number:
        raise mismatch(f'an argument of "{name}" is {argument.type}', "The argument must be a number.", "CAST it.")
    return argument


def _to_binary(name: str, text: Bound, form: Bound = _HEX) -> Bound:
    """Return the bytes of a text in a format; NULL for a malformed text.

    The format base64 is refused, because `unbase64` skips characters for which Spark's `to_binary` fails.
    """
    written = str(fixed(form, STRING, f'the format of "{name}"').value).lower()
    if written == "hex":
        return apply("unhex", (text,))
    if written in ("utf-8", "utf8"):
        return apply("encode", (text, Constant("UTF-8", STRING)))
    raise unsupported(f"the format '{written}' of \"{name}\"", "The format must be 'hex' or 'utf-8'.", "Use unbase64.")


def _or_zero(op: str) -> CallBinder:
    """Return the binder of nullifzero or zeroifnull, which are nullif and coalesce with 0 as the second argument."""
    return lambda name, number: apply(op, (_number(name, number), Constant(0, INT)))


def _cast_to(sql_type: SqlType) -> CallBinder:
    return lambda _, operand: cast(operand, sql_type)


def _calculated(op: str) -> CallBinder:
    return lambda _, left, right: arithmetic(op, left, right)


def _not_null(operand: Bound) -> Term:
    return Term("not", (Term("is_null", (operand,), BOOLEAN),), BOOLEAN)


REWRITTEN_CALLS: dict[str, CallBinder] = {
    **{name: _cast_to(sql_type) for name, sql_type in CASTING.items()},
    **dict.fromkeys(("mod", "try_mod"), _calculated("%")),
    **dict.fromkeys(("to_binary", "try_to_binary"), _to_binary),
    "e": lambda _: Constant(math.e, DOUBLE),
    "equal_null": lambda _, *args: Term("<=>", comparable(args), BOOLEAN),
    "if": lambda name, condition, *args: cases([boolean(condition, f'the condition of "{name}"')], args),
    "isnotnull": lambda _, operand: _not_null(operand),
    "isnull": lambda _, operand: Term("is_null", (operand,), BOOLEAN),
    "nanvl": _nan_else,
    "negative": lambda _, number: negative(number),
    "nullifzero": _or_zero("nullif"),
    "nvl2": lambda _, operand, *args: cases([_not_null(operand)], args),
    "pi": lambda _: Constant(math.pi, DOUBLE),
    "pmod": _calculated("pmod"),
    "positive": lambda _, number: positive(number),
    "try_add": _calculated("+"),
    "try_divide": _calculated("/"),
    "try_multiply": _calculated("*"),
    "try_subtract": _calculated("-"),
    "zeroifnull": _or_zero("coalesce"),
}
"""Binders by function, called with the function's name and the bound arguments."""
