"""Operators and functions applied to bound operands: kinds checked, constants read for their place, results typed."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.bound import Bound, Constant, Term
from grouping.constants import coerce, read_again
from grouping.errors import InputError
from grouping.expression import Column
from grouping.functions import CASTS, FUNCTIONS, common_type, family, result_type

__all__ = ["apply", "arithmetic", "boolean", "cast", "comparable", "negative", "text", "unify", "unsupported"]


def unsupported(what: str, detail: str, hint: str | None = None) -> InputError:
    """Return the refusal of a part of a query."""
    return InputError(f"{what} is not supported", code="unsupported-query", detail=detail, hint=hint)


def mismatch(message: str, detail: str, hint: str | None = None) -> InputError:
    """Return the refusal of an operand of the wrong kind."""
    return InputError(message, code="type-mismatch", detail=detail, hint=hint)


def comparable(operands: Sequence[Bound], *, looked_up: bool = True) -> tuple[Bound, ...]:
    """Return operands that are compared with one another, constants read as the others' type.

    Beside columns an exact number of any size has a place; beside anything else it is a BIGINT or a DECIMAL.
    """
    others = [operand for operand in operands if not isinstance(operand, Constant)]
    kinds = [operand.type for operand in others]
    kind = "DOUBLE" if "DOUBLE" in kinds else kinds[0] if kinds else _constants_type(operands)
    for other in kinds:
        if family(other) != family(kind):
            raise mismatch(f"{kinds[0]} does not compare with {other}", "Both sides must be of one kind.", "CAST one.")
    exact = "exact" if looked_up and len(others) == 1 and isinstance(others[0], Column) else "decimal"
    read = tuple(coerce(operand, kind, exact) if isinstance(operand, Constant) else operand for operand in operands)
    if exact == "decimal" and common_type([operand.type for operand in read]) is None:
        raise unsupported("a comparison of such wide numbers", "No DECIMAL holds both sides.", "CAST one to DOUBLE.")
    return read


def _constants_type(operands: Sequence[Bound]) -> str:
    """Return the type that constants compare in; numbers among themselves exactly."""
    kinds = [operand.type for operand in operands if not (isinstance(operand, Constant) and operand.value is None)]
    if not kinds:
        return "STRING"
    if family(kinds[0]) == "number":
        return "BIGINT"
    return next((kind for kind in ("TIMESTAMP", "DATE") if kind in kinds), kinds[0])


def unify(operands: Sequence[Bound], what: str) -> tuple[Bound, ...]:
    """Return operands that have one common type, as the results of CASE have."""
    known = [operand.type for operand in operands if not _null(operand)]
    times = [operand.type for operand in operands if operand.type in ("DATE", "TIMESTAMP")]
    kind = times[0] if times and set(known) <= {times[0], "STRING"} else common_type(known) if known else "STRING"
    if kind is None:
        if all(family(one) == "number" for one in known):
            raise unsupported(what, f"{' and '.join(dict.fromkeys(known))} have no common DECIMAL type.")
        raise mismatch(f"{what} mixes kinds", f"Its operands are {', '.join(dict.fromkeys(known))}.", "CAST them.")
    unified: list[Bound] = []
    for operand in operands:
        if isinstance(operand, Constant) and (_null(operand) or kind == "DOUBLE" or times):
            unified.append(coerce(operand, kind) if not _null(operand) else Constant(None, kind))
        elif times and operand.type != kind:
            raise mismatch(f"{what} mixes kinds", f"Its operands are {', '.join(dict.fromkeys(known))}.", "CAST them.")
        else:
            unified.append(operand)
    return tuple(unified)


def _null(operand: Bound) -> bool:
    return isinstance(operand, Constant) and operand.value is None


def boolean(operand: Bound, where: str) -> Bound:
    """Return an operand that must be BOOLEAN."""
    if _null(operand):
        return Constant(None, "BOOLEAN")
    if operand.type != "BOOLEAN":
        raise mismatch(f"{where} is not BOOLEAN", f"It is {operand.type}.", "Compare it with something.")
    return operand


def text(operand: Bound, what: str) -> Bound:
    """Return an operand that must be STRING."""
    return _fit(operand, "STRING", what)


def arithmetic(op: str, left: Bound, right: Bound) -> Term:
    """Return an arithmetic operation; `op` is one of ``+ - * / div % pmod``."""
    operands = [left, right]
    kinds = [operand.type for operand in operands if not _null(operand)]
    for kind in kinds:
        _check_number(kind, f'"{op}"')
    if op == "div" and "DOUBLE" in kinds:
        raise mismatch('"div" is of whole numbers', "One operand is DOUBLE.", 'Use "/".')
    wide = "DOUBLE" in kinds
    for i, operand in enumerate(operands):
        if _null(operand):
            operands[i] = Constant(None, kinds[0] if kinds else "INT")
        elif isinstance(operand, Constant) and wide:
            operands[i] = read_again(operand, "double") if operand.reader else operand
    if not wide and (decimal := next((kind for kind in kinds if kind.startswith("DECIMAL")), None)):
        raise unsupported(
            "DECIMAL arithmetic",
            f'An operand of "{op}" is {decimal}.',
            "A DOUBLE is written 1.5e0; columns can be CAST.",
        )
    if wide and any(o.type.startswith("DECIMAL") for o in operands):
        raise unsupported("DECIMAL arithmetic", f'An operand of "{op}" is DECIMAL.')
    return Term(op, tuple(operands), result_type(op, [operand.type for operand in operands]))


def negative(operand: Bound) -> Bound:
    """Return the negation of a number that is no literal."""
    if _null(operand):
        return Constant(None, "INT")
    if family(operand.type) != "number":
        _check_number(operand.type, '"-"')
    return Term("neg", (operand,), operand.type)


def _check_number(kind: str, what: str) -> None:
    if kind in ("DATE", "TIMESTAMP"):
        raise unsupported(
            "arithmetic with dates", f"An operand of {what} is {kind}.", "There are date_add and datediff."
        )
    if family(kind) != "number":
        raise mismatch(f"{what} is of numbers", f"One operand is {kind}.")


def apply(name: str, args: Sequence[Bound]) -> Bound:
    """Return a function of `functions.FUNCTIONS` applied to arguments.

    Raises:
        InputError: ``type-mismatch`` for too few, too many or the wrong arguments.
    """
    function = FUNCTIONS[name]
    least, most = len(function.params) - function.optional, len(function.params)
    if len(args) < least or (len(args) > most and not function.variadic):
        takes = f"{least} or more" if function.variadic else f"{least} to {most}" if function.optional else str(most)
        raise mismatch(f'function "{name}" takes {takes} arguments', f"There are {len(args)}.")
    what = f'an argument of "{name}"'
    if "COMMON" in function.params:
        fitted = comparable(args, looked_up=False) if name == "nullif" else unify(args, f'"{name}"')
    else:
        params = function.params + function.params[-1:] * (len(args) - most)
        fitted = tuple(_fit(argument, kind, what) for argument, kind in zip(args, params, strict=False))
    if name in ("concat", "coalesce") and len(fitted) == 1:
        return fitted[0]
    return Term(name, fitted, result_type(name, [argument.type for argument in fitted]))


def _fit(argument: Bound, kind: str, what: str) -> Bound:
    """Return an argument that suits a parameter."""
    if _null(argument):
        return Constant(None, {"NUMBER": "INT", "SIGNED": "INT", "DAY": "DATE"}.get(kind, kind))
    if isinstance(argument, Constant) and argument.reader and family(argument.type) == "number" and kind == "DOUBLE":
        return coerce(argument, kind)
    if isinstance(argument, Constant) and argument.type == "STRING" and kind in ("DATE", "TIMESTAMP"):
        return coerce(argument, kind)
    accepted = {
        "NUMBER": ("INT", "BIGINT", "DOUBLE"),
        "DOUBLE": ("INT", "BIGINT", "DOUBLE"),
        "DAY": ("DATE", "TIMESTAMP"),
    }.get(kind, (kind,))
    if argument.type in accepted or (kind == "SIGNED" and family(argument.type) == "number"):
        return argument
    if argument.type.startswith("DECIMAL") and kind in ("NUMBER", "DOUBLE"):
        raise unsupported(f"{what} of type {argument.type}", "It is computed for INT, BIGINT and DOUBLE.", "CAST it.")
    wanted = {"SIGNED": "a number", "NUMBER": "a number", "DAY": "DATE or TIMESTAMP"}.get(kind, kind)
    raise mismatch(f"{what} is {argument.type}", f"It must be {wanted}.", "CAST it.")


def cast(operand: Bound, kind: str) -> Bound:
    """Return the operand as another type; a constant DATE, TIMESTAMP or DOUBLE is a constant of that type."""
    if isinstance(operand, Constant) and operand.reader:
        if operand.type == "STRING" and kind in ("DATE", "TIMESTAMP"):
            return coerce(operand, kind)
        if family(operand.type) == "number" and kind == "DOUBLE":
            return coerce(operand, kind)
    if _null(operand):
        return Constant(None, kind)
    if operand.type == kind:
        return operand
    if kind not in CASTS.get(operand.type, ()):
        raise unsupported(f"CAST of {operand.type} to {kind}", "The result would not be exactly Spark's.")
    return Term("cast", (operand,), kind)
