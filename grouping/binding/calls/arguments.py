"""Functions applied to bound arguments: each fitted to its parameter, constants read for their place."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.arithmetic import check_turned
from grouping.binding.bound import Bound, Constant, Term, is_null, is_text_null, pinned
from grouping.binding.calls.bytes import OF_BYTES, bytes_call
from grouping.binding.calls.printed import printed
from grouping.binding.calls.roundings import ROUNDINGS, to_scale
from grouping.binding.constants import coerce, read_again
from grouping.binding.implicit import read_as
from grouping.binding.operands import as_timestamp, cast, comparable, unify
from grouping.functions.functions import FUNCTIONS, common_type, result_type
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType, decimal
from grouping.model.wording import are, counted
from grouping.values.like_pattern import check_escapes

__all__ = ["apply"]


def apply(name: str, args: Sequence[Bound]) -> Bound:
    """Return a function of `functions.FUNCTIONS` applied to arguments.

    Raises:
        InputError: ``type-mismatch`` for too few, too many or the wrong arguments.
    """
    function = FUNCTIONS[name]
    least, most = len(function.params) - function.optional, len(function.params)
    if len(args) < least or (len(args) > most and not function.variadic):
        span = f"{least} or {most}" if most == least + 1 else f"{least} to {most}"
        takes = f"{least} or more arguments" if function.variadic else f"{span} arguments"
        takes = takes if function.variadic or function.optional else counted(most, "argument")
        raise mismatch(f'function "{name}" takes {takes}', f"There {are(len(args))} {len(args)}.")
    if name in OF_BYTES and any(argument.type == BINARY for argument in args):
        return bytes_call(name, args)
    what = f'an argument of "{name}"'
    if "COMMON" in function.params:
        if name in ("greatest", "least"):
            _check_alike(name, args)
        fitted = _null_if(args) if name == "nullif" else unify(args, f'"{name}"')
        if name == "nullif" and is_null(args[0]):
            return args[0]
        if name in ("greatest", "least") and not fitted[0].type.is_ordered:
            raise unsupported(f'"{name}" of {fitted[0].type}', "Its values are not compared.")
    else:
        params = function.params + function.params[-1:] * (len(args) - most)
        if "ESCAPE" in params and len(args) == len(params):
            params = tuple("ESCAPED" if param == "LIKE" else param for param in params)
        fitted = tuple(
            _fit(argument, kind, what, strict=_is_strict(name, argument, kind))
            for argument, kind in zip(args, _of_shifts(name, args, params), strict=False)
        )
        if "ESCAPE" in params and len(args) == len(params):
            fitted = _with_escape(fitted)
    if name == "bit_get":
        fitted = (fitted[0], _bit_place(*fitted))
    if name == "abs":
        check_turned(fitted[0], '"abs"')
    if name in ROUNDINGS and (rounded := to_scale(name, fitted)) is not None:
        return rounded
    if name == "format_string":
        return printed(fitted)
    if name in ("concat", "coalesce") and len(fitted) == 1:
        return fitted[0]
    if name == "ilike":
        return _without_case(fitted)
    return Term(name, fitted, result_type(name, [argument.type for argument in fitted]))


_WIDTHS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def _bit_place(number: Bound, place: Bound) -> Bound:
    """Return the place of a bit; a constant place must exist in the number's type."""
    if not isinstance(place, Constant) or place.value is None:
        return place
    width = _WIDTHS.get(number.type.name, 64)
    if not isinstance(place.value, int) or not 0 <= place.value < width:
        raise unsupported(
            f"the bit {place.value} of {number.type}",
            f"Its bits have the places 0 to {width - 1}.",
            "Write one of these.",
        )
    return pinned(place)  # a literal in its place has to be checked again


def _check_alike(name: str, args: Sequence[Bound]) -> None:
    """Refuse a text beside a time; only CASE and its like cast the text implicitly."""
    kinds = [argument.type for argument in args if not is_null(argument) or is_text_null(argument)]
    if STRING in kinds and len({*kinds}) > 1:
        raise mismatch(f'"{name}" mixes kinds', f"Its operands are {', '.join(map(str, kinds))}.", "CAST them.")


def _null_if(args: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return the operands of nullif: the first one is the result, and keeps its type."""
    if any(argument.type == BINARY for argument in args):
        raise unsupported('"nullif" of a BINARY', "Its operands are compared by their digits.", "Use CASE.")
    read = read_as([one.type for one in args])
    if read is not None and args[1].type == STRING and not isinstance(args[1], Constant):
        args = (args[0], cast(args[1], read))
    first, other = comparable(args, looked_up=False)
    if isinstance(args[0], Constant) and args[0].type != first.type and not is_null(first):
        if not first.type.is_number:
            raise unsupported('"nullif" of a text beside a date', "The result would be a STRING.", "CAST it.")
        if common_type((args[0].type, other.type)) is None:
            raise unsupported('"nullif" of numbers this wide', "No DECIMAL holds both.", "CAST one to DOUBLE.")
    return args[0], other


def _without_case(args: tuple[Bound, ...]) -> Term:
    """Return ILIKE as LIKE of lower-case operands, as Spark does."""
    text, pattern, *escape = args
    if isinstance(pattern, Constant):
        small: Bound = read_again(pattern, "escaped ilike" if escape else "ilike") if pattern.reader else pattern
    else:
        small = Term("lower", (pattern,), STRING)
    return Term("like", (Term("lower", (text,), STRING), small, *escape), BOOLEAN)


def _with_escape(args: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Return the arguments of LIKE with ESCAPE: no other pattern may take a constant one's place unchecked."""
    text, pattern, escape = args
    if isinstance(pattern, Constant) and isinstance(escape, Constant) and pattern.reader:
        check_escapes(str(pattern.value), str(escape.value))
        pattern = pinned(pattern)
    return text, pattern, escape


def _escape(argument: Bound) -> Constant:
    if isinstance(argument, Constant) and isinstance(argument.value, str) and len(argument.value) == 1:
        return Constant(argument.value, STRING, position=argument.position, is_pinned=True)
    raise mismatch("ESCAPE is not one character", "It takes a string of one character.")


_CONSTANT_PARAMS = {
    "ZONE": (STRING, "zone"),
    "SCALE": (INT, "literal"),
    "COUNT": (INT, "count"),
    "PATTERN": (STRING, "pattern"),
    "GROUPS": (STRING, "groups"),
    "OCCURRENCES": (STRING, "occurrences"),
    "REPLACEMENT": (STRING, "replacement"),
    "MASK": (STRING, "mask"),
    "KEY": (STRING, "key"),
}
"""For a parameter that takes only a constant: its type, and the reader of its text."""
_SECONDS = decimal(16, 6)
_NULL_PARAMS = {
    "NUMBER": DOUBLE,
    "WHOLE": INT,
    "SECONDS": _SECONDS,
    "ZONE": STRING,
    "DAY": DATE,
    "SCALE": INT,
    "COUNT": INT,
    **dict.fromkeys(("PATTERN", "GROUPS", "OCCURRENCES", "REPLACEMENT", "MASK", "KEY", "PRINTF", "PRINTED"), STRING),
    **dict.fromkeys(("LIKE", "ESCAPED", "ESCAPE", "BYTES", "TEXT", "HEXED", "VALUE"), STRING),
}


def _of_shifts(name: str, args: Sequence[Bound], params: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parameters of a shift, which casts other values than whole numbers to INT."""
    return ("INT", *params[1:]) if name.startswith("shift") and args[0].type.name not in _WHOLE else params


def _is_strict(name: str, argument: Bound, param: str) -> bool:
    """Tell whether Spark does not cast an argument to the function's parameter."""
    if name in ("bit_count", "bit_get"):
        return param == "WHOLE"
    return name in _STRICT or (name in ("date_add", "date_sub") and argument.type.is_number)


_STRICT = frozenset(
    (
        "format_number",
        "isnan",
        "json_array_length",
        "json_object_keys",
        "mask",
        "parse_url",
        "soundex",
        "timestamp_micros",
        "timestamp_millis",
        "timestamp_seconds",
        "unix_date",
        "unix_seconds",
        "unix_millis",
        "unix_micros",
    )
)
"""Functions whose arguments Spark does not cast."""


def _implicit(argument: Bound, param: str) -> Bound | None:
    """Return an argument after Spark's implicit CAST, None where there is none."""
    sql_type = argument.type
    if param in ("DATE", "DAY") and (sql_type == STRING or (sql_type == TIMESTAMP and param == "DATE")):
        return cast(argument, DATE)
    if param == "TIMESTAMP" and sql_type == DATE:
        return as_timestamp(argument)
    if param == "TIMESTAMP" and sql_type == STRING:
        return cast(argument, TIMESTAMP)
    if param in ("STRING", "TEXT", "HEXED") and (sql_type.is_number or sql_type in (BOOLEAN, DATE, TIMESTAMP)):
        whole = param == "HEXED" and sql_type.is_number
        return cast(argument, STRING) if not whole else argument if sql_type.name in _WHOLE else cast(argument, BIGINT)
    if param == "SECONDS":
        return cast(argument, _SECONDS)
    if param in ("NUMBER", "DOUBLE") and sql_type == STRING:
        return cast(argument, DOUBLE)
    if param in _AS_WHOLE and (sql_type == STRING or sql_type.is_number) and sql_type.name not in _ACCEPTED[param]:
        return cast(argument, _AS_WHOLE[param])
    return None


_AS_WHOLE = {"INT": INT, "WHOLE": BIGINT}
"""Spark's implicit CAST of a number or a text where a function takes a whole number."""


_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_ACCEPTED = {
    **dict.fromkeys(("BYTES", "TEXT"), ("STRING", "BINARY")),
    "HEXED": ("STRING", "BINARY", *_WHOLE),
    "INT": ("TINYINT", "SMALLINT", "INT"),
    "WHOLE": _WHOLE,
    "DAY": ("DATE", "TIMESTAMP"),
}
_SHOWN_PARAMS = {
    **dict.fromkeys(("BYTES", "TEXT"), "STRING or BINARY"),
    "HEXED": "STRING, BINARY or a whole number",
    "VALUE": "of a type without parts",
    "NUMBER": "a number",
    "WHOLE": "INT or BIGINT",
    "DAY": "DATE or TIMESTAMP",
}


def _fit(argument: Bound, param: str, what: str, *, strict: bool = False) -> Bound:
    """Return an argument fitted to a parameter, named as in `functions.Function`."""
    if is_null(argument) and not (strict and is_text_null(argument)):
        typed = param in ("NUMBER", "WHOLE") and argument.type.is_number
        return argument if typed else Constant(None, _NULL_PARAMS.get(param) or SqlType.of(param))
    if param in ("LIKE", "ESCAPED"):
        pattern = _fit(argument, "STRING", what)
        return read_again(pattern, param.lower()) if isinstance(pattern, Constant) and pattern.reader else pattern
    if param == "ESCAPE":
        return _escape(argument)
    if param in ("PRINTF", "PRINTED"):
        return argument
    if param in _CONSTANT_PARAMS:
        wanted, reader = _CONSTANT_PARAMS[param]
        if not isinstance(argument, Constant):
            raise unsupported(f"{what} that is no constant", f"It must be one of type {wanted}.")
        if argument.type != wanted:
            raise mismatch(f"{what} is {argument.type}", f"It must be {wanted}.")
        return read_again(argument, reader)
    if isinstance(argument, Constant) and argument.reader and argument.type.is_number and param == "DOUBLE":
        return coerce(argument, DOUBLE)
    if not strict and (fitting := _implicit(argument, param)) is not None:
        return fitting
    if param == "VALUE" and argument.type.is_ordered:
        return argument
    number = param in ("NUMBER", "DOUBLE") and argument.type.is_number
    if number or argument.type.name in _ACCEPTED.get(param, (param,)):
        return argument
    raise mismatch(f"{what} is {argument.type}", f"It must be {_SHOWN_PARAMS.get(param, param)}.", "CAST it.")
