"""Functions that are other spellings of operators and CASTs."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.arithmetic import arithmetic, negative, positive
from grouping.binding.bound import Bound, Term
from grouping.binding.operands import boolean, cases, cast, comparable
from grouping.functions.functions import CASTING
from grouping.model.sql_type import BOOLEAN

__all__ = ["rewritten"]

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
    """Return one of `functions.REWRITTEN`, applied to as many arguments as it takes.

    Raises:
        InputError: ``type-mismatch`` for arguments of the wrong kind.
    """
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
        case "equal_null":
            return Term("<=>", comparable(args), BOOLEAN)
    return arithmetic(_ARITHMETIC[name], *args)


def _not_null(operand: Bound) -> Term:
    return Term("not", (Term("is_null", (operand,), BOOLEAN),), BOOLEAN)
