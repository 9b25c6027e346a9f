"""Calls of functions, under any of their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grouping.binding.arrays import ARRAY_CALLS, concat_arrays, joined
from grouping.binding.bound import Bound, Term
from grouping.binding.calls.arguments import apply, check_count
from grouping.binding.calls.intervals import INTERVAL_CALLS
from grouping.binding.calls.numbers import NUMBER_CALLS
from grouping.binding.calls.refused import present_time
from grouping.binding.calls.rewritten import REWRITTEN_CALLS, decoded
from grouping.binding.calls.times import TIME_CALLS
from grouping.binding.maps import MAP_CALLS
from grouping.binding.nested import NESTED_CALLS
from grouping.binding.variants import VARIANT_CALLS
from grouping.functions.functions import ALIASES, FUNCTIONS, LAMBDAS
from grouping.functions.spark_functions import PRESENT, REASONS
from grouping.model.errors import InputError, near_name
from grouping.model.refusals import mismatch, unsupported
from grouping.model.wording import are

__all__ = ["call", "function_name"]

_BINDERS: dict[str, Callable[..., Bound]] = {
    **ARRAY_CALLS,
    **INTERVAL_CALLS,
    **MAP_CALLS,
    **NESTED_CALLS,
    **NUMBER_CALLS,
    **REWRITTEN_CALLS,
    **TIME_CALLS,
    **VARIANT_CALLS,
}
"""Function → its binder, for functions that need more than a conversion of the arguments to the parameters' types."""
_PAIRS = ("nvl", "ifnull")
"""Names of coalesce that take two arguments."""
_TRIMS = ("trim", "ltrim", "rtrim")
"""Functions whose calls have the text last, after the characters to trim; the evaluator takes the text first."""


def function_name(written: str) -> str:
    """Return the name of a called function in lower case.

    Raises:
        InputError: ``unknown-function``, or ``unsupported-query`` for a function of Spark that continuous queries do
            not support.
    """
    name = written.lower()
    if name not in ALIASES and name not in FUNCTIONS:
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
            f'"{name}" without a lambda', "The last argument is a lambda.", "Write exists(tags, t -> t = 'a')."
        )
    row = FUNCTIONS[ALIASES.get(name, name)]
    if any(argument.type.name == "ARRAY" for argument in args) and (made := _of_arrays(row.name, args)) is not None:
        return made
    if name == "decode" and len(args) > 2:
        return decoded(args)
    if name in _PAIRS and len(args) != 2:
        raise mismatch(f'function "{name}" takes 2 arguments', f"There {are(len(args))} {len(args)}.")
    check_count(row, name, args)
    if (bind := _BINDERS.get(row.name)) is not None:
        return bind(row.name, *args)
    return apply(row.name, args[::-1] if name in _TRIMS else args)


def _of_arrays(name: str, args: Sequence[Bound]) -> Bound | None:
    """Return a text function applied to arrays; None if the function takes only texts."""
    if name == "concat":
        return concat_arrays(name, *args)
    if name == "concat_ws" and args[0].type.name != "ARRAY":
        return joined(args[0], args[1:])
    if name == "reverse" and len(args) == 1:
        return Term("reverse array", (args[0],), args[0].type)
    return None


def _no_function(written: str) -> InputError:
    name = written.lower()
    if name in PRESENT:
        return present_time(f"{written}()")
    if name in REASONS:
        return unsupported(f'function "{written}"', *REASONS[name])
    return InputError(
        f'function "{written}" does not exist',
        code="unknown-function",
        detail="Neither queries nor Spark have this function.",
        hint=near_name(written, [*FUNCTIONS, *ALIASES]),
    )
