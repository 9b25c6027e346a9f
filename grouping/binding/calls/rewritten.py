"""Functions that are alternative spellings of operators and CASTs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from grouping.binding.arithmetic import arithmetic, negative, positive
from grouping.binding.bound import Bound, Constant, Term
from grouping.binding.calls.arguments import apply
from grouping.binding.nested import fixed
from grouping.binding.operands import boolean, cases, cast, comparable
from grouping.functions.functions import CASTING
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN, DOUBLE, FLOAT, INT, STRING

__all__ = ["decoded", "rewritten"]

_NUMBERS = {"e": math.e, "pi": math.pi}
_HEX = Constant("hex", STRING)
_ARITHMETIC = {
    "mod": "%",
    "pmod": "pmod",
    "try_add": "+",
    "try_subtract": "-",
    "try_multiply": "*",
    "try_divide": "/",
    "try_mod": "%",
}


def rewritten(name: str, args: Sequence[Bound]) -> Bound:
    """Return a function of `functions.REWRITTEN`, applied to the right number of arguments.

    Raises:
        InputError: ``type-mismatch`` for arguments of the wrong kind.
    """
    if name in _NUMBERS:
        return Constant(_NUMBERS[name], DOUBLE)
    first = args[0]
    if name in CASTING:
        return cast(first, CASTING[name])
    match name:
        case "if":
            return cases([boolean(first, 'the condition of "if"')], args[1:])
        case "positive":
            return positive(first)
        case "negative":
            return negative(first)
        case "isnull":
            return Term("is_null", (first,), BOOLEAN)
        case "isnotnull":
            return _not_null(first)
        case "nvl2":
            return cases([_not_null(first)], args[1:])
        case "nanvl":
            return _nan_else(args)
        case "nullifzero" | "zeroifnull":
            return apply("nullif" if name == "nullifzero" else "coalesce", (_number(name, first), Constant(0, INT)))
        case "to_binary" | "try_to_binary":
            return _to_binary(name, *args)
        case "equal_null":
            return Term("<=>", comparable(args), BOOLEAN)
    return arithmetic(_ARITHMETIC[name], *args)


def decoded(args: Sequence[Bound]) -> Bound:
    """Return decode of a value, pairs of a searched value and its result, and a default.

    Raises:
        InputError: ``type-mismatch`` for values of different kinds.
    """
    value, *others = args
    conditions = [Term("<=>", comparable((value, sought)), BOOLEAN) for sought in others[:-1:2]]
    results = [*others[1::2], *(others[-1:] if len(others) % 2 else [])]
    return cases(conditions, results)


def _nan_else(args: Sequence[Bound]) -> Bound:
    """Return the first number, or the second if the first is NaN; two FLOATs stay FLOAT, all else is DOUBLE."""
    sql_type = FLOAT if all(argument.type == FLOAT for argument in args) else DOUBLE
    first, other = (cast(_number("nanvl", argument), sql_type) for argument in args)
    return cases([apply("isnan", (first,))], (other, first))


def _number(name: str, argument: Bound) -> Bound:
    if not argument.type.is_number:
        raise mismatch(f'an argument of "{name}" is {argument.type}', "It must be a number.", "CAST it.")
    return argument


def _to_binary(name: str, text: Bound, form: Bound = _HEX) -> Bound:
    """Return the bytes of a text in a form; NULL for a malformed text.

    `unbase64` skips characters that `to_binary` refuses, so base64 is refused.
    """
    written = str(fixed(form, STRING, f'the format of "{name}"').value).lower()
    if written == "hex":
        return apply("unhex", (text,))
    if written in ("utf-8", "utf8"):
        return apply("encode", (text, Constant("UTF-8", STRING)))
    raise unsupported(f"the format '{written}' of \"{name}\"", "It is 'hex' or 'utf-8'.", "Use unbase64.")


def _not_null(operand: Bound) -> Term:
    return Term("not", (Term("is_null", (operand,), BOOLEAN),), BOOLEAN)
