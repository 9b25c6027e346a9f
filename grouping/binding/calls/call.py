"""Calls of functions, under any of their names."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.arrays import ARRAY_CALLS, concat_arrays, counted_call, joined
from grouping.binding.bound import Bound, Term
from grouping.binding.calls.arguments import apply
from grouping.binding.calls.intervals import INTERVAL_CALLS, interval_call
from grouping.binding.calls.numbers import NUMBER_CALLS, number_call
from grouping.binding.calls.refused import present_time
from grouping.binding.calls.rewritten import decoded, rewritten
from grouping.binding.calls.times import TIME_CALLS, time_call, to_char
from grouping.binding.maps import MAP_CALLS
from grouping.binding.nested import nested_call
from grouping.binding.time_units import field_of, text_of
from grouping.binding.variants import VARIANT_CALLS, variant_call
from grouping.functions.functions import ALIASES, FUNCTIONS, REWRITTEN
from grouping.functions.nested_functions import LAMBDAS, NESTED_ALIASES, NESTED_FUNCTIONS
from grouping.functions.spark_functions import PRESENT, REASONS
from grouping.model.errors import InputError, near_name
from grouping.model.refusals import unsupported
from grouping.model.wording import are, counted

__all__ = ["call", "function_name"]

_COUNTED = ARRAY_CALLS | MAP_CALLS


def function_name(written: str) -> str:
    """Return the name that a query calls a function by, in lower case.

    Raises:
        InputError: ``unknown-function``, or ``unsupported-query`` for a function of Spark that no continuous query can
            have.
    """
    name = written.lower()
    if name in LAMBDAS:
        return name
    if ALIASES.get(name, name) not in FUNCTIONS and name not in REWRITTEN and not _is_nested(name):
        raise _no_function(written)
    return name


def call(name: str, args: Sequence[Bound]) -> Bound:
    """Return a function applied to its arguments.

    Args:
        name: As `function_name` returns it.
        args: In the query's order.

    Raises:
        InputError: unsupported-query, type-mismatch.
    """
    if name in LAMBDAS:
        raise unsupported(
            f'"{name}" without a lambda', "Its last argument is a lambda.", "Write exists(tags, t -> t = 'a')."
        )
    if (counted_one := _COUNTED.get(name)) is not None:
        return counted_call(name, counted_one, args)
    if name in VARIANT_CALLS:
        return variant_call(name, args)
    if any(argument.type.name == "ARRAY" for argument in args) and (made := _of_arrays(name, args)) is not None:
        return made
    if _is_nested(name):
        return nested_call(NESTED_ALIASES.get(name, name), args)
    if name in NUMBER_CALLS:
        return number_call(name, args)
    if name in INTERVAL_CALLS:
        return interval_call(name, args)
    canonical = ALIASES.get(name, name)
    if name == "decode" and len(args) > 2:
        return decoded(args)
    wanted = len(REWRITTEN[name].params) if name in REWRITTEN else len(args)
    if name in ("nvl", "ifnull"):
        wanted = 2  # coalesce takes any number
    spared = REWRITTEN[name].optional if name in REWRITTEN else 0
    if not wanted - spared <= len(args) <= wanted:
        raise InputError(
            f'function "{name}" takes {counted(wanted, "argument")}',
            code="unsupported-query" if name in REWRITTEN else "type-mismatch",
            detail=f"There {are(len(args))} {len(args)}.",
        )
    if canonical in TIME_CALLS:
        return time_call(canonical, args)
    if name in ("to_char", "to_varchar"):
        return to_char(name, args)
    if canonical == "date_part" and len(args) == 2:
        return field_of(text_of(args[0], f'the field of "{name}"'), args[1])
    if name in REWRITTEN:
        return rewritten(name, args)
    if canonical in ("trim", "ltrim", "rtrim") and name != "btrim":
        args = args[::-1]  # Spark has the characters first
    return apply(canonical, args)


def _of_arrays(name: str, args: Sequence[Bound]) -> Bound | None:
    """Return a text function applied to arrays, None if it takes texts only."""
    if name == "concat":
        return concat_arrays(name, *args)
    if name == "concat_ws" and args[0].type.name != "ARRAY":
        return joined(args[0], args[1:])
    if name == "reverse" and len(args) == 1:
        return Term("reverse array", (args[0],), args[0].type)
    return None


def _is_nested(name: str) -> bool:
    return name in NESTED_FUNCTIONS or name in NESTED_ALIASES


def _no_function(written: str) -> InputError:
    name = written.lower()
    if name in PRESENT:
        return present_time(f"{written}()")
    if name in REASONS:
        return unsupported(f'function "{written}"', *REASONS[name])
    known = [*FUNCTIONS, *ALIASES, *REWRITTEN, *NESTED_FUNCTIONS, *NESTED_ALIASES]
    return InputError(
        f'function "{written}" does not exist',
        code="unknown-function",
        detail="Neither queries nor Spark have this function.",
        hint=near_name(written, known),
    )
