"""What a query calls by name: a function, under any of its names; and what is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from grouping.binding.arrays import ARRAY_CALLS, concat_arrays, counted_call, joined
from grouping.binding.bound import Bound, Term
from grouping.binding.calls.arguments import apply
from grouping.binding.calls.intervals import INTERVAL_CALLS, interval_call
from grouping.binding.calls.numbers import NUMBER_CALLS, number_call
from grouping.binding.calls.rewritten import decoded, rewritten
from grouping.binding.calls.times import TIME_CALLS, time_call, to_char
from grouping.binding.maps import MAP_CALLS
from grouping.binding.nested import nested_call
from grouping.binding.time_units import field_of, text_of
from grouping.binding.variants import VARIANT_CALLS, variant_call
from grouping.functions.functions import ALIASES, FUNCTIONS, REWRITTEN
from grouping.functions.nested_functions import LAMBDAS, NESTED_ALIASES, NESTED_FUNCTIONS
from grouping.functions.spark_functions import REASONS
from grouping.model.errors import InputError, near_name
from grouping.model.refusals import unsupported
from grouping.model.wording import are, counted

__all__ = ["call", "function_name", "refusal"]

_COUNTED = ARRAY_CALLS | MAP_CALLS
_NO_OPERATOR = "It is no operator that a query may use."
_PARTS = "user.id is a field of a STRUCT, and variant_get(body, '$.user.id', 'INT') a part of a VARIANT."
_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Subquery: ("a subquery", "A query is over one stream."),
    exp.Select: ("a subquery", "A query is over one stream."),
    exp.Exists: ("a subquery", "EXISTS is over one."),
    exp.Window: ("a window function", "A query is evaluated for each event alone."),
    exp.CurrentDate: ("the present time", "The record's own time is there as _time."),
    exp.CurrentTimestamp: ("the present time", "The record's own time is there as _time."),
    exp.CurrentTime: ("the present time", "The record's own time is there as _time."),
    exp.Localtimestamp: ("the present time", "The record's own time is there as _time."),
    exp.Interval: ("such an INTERVAL", "It is a number or a string with a unit: INTERVAL 5 MINUTES."),
    exp.Star: ("* within an expression", "It stands for all columns of the SELECT list."),
    exp.Distinct: ("DISTINCT", "It belongs to count."),
    exp.Placeholder: ("a parameter", "Constants are written out; the gateway itself tells them from the signature."),
    exp.Parameter: ("a parameter", "Constants are written out; the gateway itself tells them from the signature."),
    **dict.fromkeys((exp.JSONExtract, exp.JSONExtractScalar), ('"->"', _PARTS)),
    exp.JSONBExtract: ('"#>"', _PARTS),
    exp.JSONBContainsTopKey: ('"?"', "map_contains_key(attrs, 'key') asks for a key."),
    exp.Kwarg: ('"=>"', "A lambda has ->, and greater or equal is >=."),
    exp.PropertyEQ: ('":="', "Equal is =."),
    exp.Array: ("a list in brackets", "array(1, 2) is one, and names stand without brackets."),
    exp.Struct: ("a list in braces", "named_struct('a', 1) is a STRUCT, map('a', 1) a MAP."),
    exp.Lambda: ("a lambda here", "exists, filter, transform and their like take one, array_sort none."),
    exp.Slice: ("a part of an ARRAY in brackets", "slice(tags, 1, 2) is one."),
    exp.AtTimeZone: ("AT TIME ZONE", "from_utc_timestamp(at, 'Europe/Madrid') shows a clock's time."),
    exp.RegexpILike: ('"~*"', "RLIKE '(?i)pattern' looks for a pattern."),
    **dict.fromkeys((exp.SimilarTo, exp.Glob), ("such a pattern", "There are LIKE, ILIKE and RLIKE.")),
    exp.National: ("N before a string", "A string is Unicode anyhow."),
    exp.If: ("IF", "if(condition, a, b) and CASE choose."),
    **dict.fromkeys((exp.Any, exp.All), ("a comparison with ANY or ALL", "IN and OR do the same.")),
    exp.Tuple: ("a row of values", "Its values are compared one by one, with AND."),
}
"""By SQL's words, never by the parser's."""


def function_name(written: str) -> str:
    """Return the name that a query calls a function by, in lower case.

    Raises:
        InputError: ``unknown-function``, or ``unsupported-query`` for one of Spark's that cannot be kept running.
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
        raise unsupported(f'"{name}" without a lambda', "It takes one, as in exists(tags, t -> t = 'a').")
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
    """Return what a function of texts is of arrays, None for one that is of texts alone."""
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
    if name in REASONS:
        part, why = REASONS[name]
        detail = why if part == "function" else f"{part.capitalize()}: {why[0].lower()}{why[1:]}"
        return InputError(f'function "{written}" is not supported', code="unsupported-query", detail=detail)
    known = [*FUNCTIONS, *ALIASES, *REWRITTEN, *NESTED_FUNCTIONS, *NESTED_ALIASES]
    return InputError(
        f'function "{written}" does not exist',
        code="unknown-function",
        detail="It is neither one that a query may use nor one of Spark's.",
        hint=near_name(written, known),
    )


def refusal(node: exp.Expr) -> InputError:
    """Return why an expression is refused, ``unsupported-query``."""
    kind = type(node)
    name = kind.__name__ if kind.__name__.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__)
    return unsupported(*_REFUSED.get(kind, (f'"{name.upper()}"', _NO_OPERATOR)))
