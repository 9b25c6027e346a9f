"""Applies functions to bound arguments: each argument is converted to the type of its parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grouping.binding.bound import Bound, Constant, Term, is_null, is_text_null, pinned
from grouping.binding.calls.bytes import OF_BYTES, bytes_call
from grouping.binding.calls.printed import printed
from grouping.binding.calls.roundings import ROUNDINGS, to_scale
from grouping.binding.constants import coerce, read_again
from grouping.binding.implicit import read_as
from grouping.binding.operands import as_timestamp, cast, comparable, unify
from grouping.functions.function import Function
from grouping.functions.functions import FUNCTIONS, result_type
from grouping.functions.params import PARAMS, SECONDS
from grouping.functions.results import common_type
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, WHOLE_BITS, SqlType
from grouping.model.wording import are, counted
from grouping.values.like_pattern import check_escapes

__all__ = ["apply", "check_count"]


def check_count(row: Function, written: str, args: Sequence[Bound]) -> None:
    """Check the number of a function's arguments.

    Args:
        row: The function.
        written: The name in the query.
        args: The arguments.

    Raises:
        InputError: ``type-mismatch``; ``unsupported-query`` for an argument that only Spark accepts.
    """
    least, most = len(row.params) - row.optional, len(row.params)
    if least <= len(args) and (len(args) <= most or row.variadic):
        return
    if len(args) > most and row.name in _SPARK_TAKES_MORE:
        raise unsupported(*_SPARK_TAKES_MORE[row.name])
    span = f"{least} or {most}" if most == least + 1 else f"{least} to {most}"
    takes = f"{least} or more arguments" if row.variadic else f"{span} arguments"
    takes = takes if row.variadic or row.optional else counted(most, "argument")
    raise mismatch(f'function "{written}" takes {takes}', f"There {are(len(args))} {len(args)}.")


_SPARK_TAKES_MORE = {
    "from_json": ("from_json with options", "Broken JSON always gives NULL.", "Leave the options out.")
}
"""Function → the refusal of further arguments that Spark would accept: the refused form, the reason, and a hint."""


def apply(name: str, args: Sequence[Bound]) -> Bound:
    """Return the call of a function that has no binder of its own.

    Raises:
        InputError: ``type-mismatch`` for too few, too many or the wrong arguments.
    """
    row = FUNCTIONS[name]
    check_count(row, name, args)
    if name in OF_BYTES and any(argument.type == BINARY for argument in args):
        return bytes_call(name, args)
    fitted = _alike(name, args) if "COMMON" in row.params else _fitted(row, args)
    complete = _COMPLETED.get(name)
    completed = None if complete is None else complete(name, fitted)
    if completed is not None:
        return completed
    return Term(name, fitted, result_type(name, [argument.type for argument in fitted]))


def _alike(name: str, args: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return arguments widened to their common type."""
    if name in ("greatest", "least"):
        _check_alike(name, args)
    fitted = _null_if(args) if name == "nullif" else unify(args, f'"{name}"')
    if name in ("greatest", "least") and not fitted[0].type.is_ordered:
        raise unsupported(f'"{name}" of {fitted[0].type}', f"Values of type {fitted[0].type} have no order.")
    return fitted


def _fitted(row: Function, args: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return arguments converted to the types of the function's parameters."""
    params = row.params + row.params[-1:] * (len(args) - len(row.params))
    escaped = "ESCAPE" in params and len(args) == len(params)
    if escaped:
        params = tuple("ESCAPED" if kind == "LIKE" else kind for kind in params)
    if row.name.startswith("shift") and not args[0].type.is_whole:
        params = ("INT", *params[1:])  # Spark casts other values than whole numbers to INT
    what = f'an argument of "{row.name}"'
    fitted = tuple(
        _fit(argument, kind, what, strict=_is_strict(row, argument, kind))
        for argument, kind in zip(args, params, strict=False)
    )
    return _with_escape(fitted) if escaped else fitted


def _bit_get(name: str, args: tuple[Bound, ...]) -> Bound | None:
    """Return bit_get with a constant place; None for a place that is NULL or no constant.

    Raises:
        InputError: ``unsupported-query`` for a place that the number's type does not have.
    """
    number, place = args
    if not isinstance(place, Constant) or place.value is None:
        return None
    width = WHOLE_BITS.get(number.type.name, 64)
    if not isinstance(place.value, int) or not 0 <= place.value < width:
        raise unsupported(
            f"the bit {place.value} of {number.type}",
            f"The bits are numbered from 0 to {width - 1}.",
            "Write a number of this range.",
        )
    # The place is pinned, because the fast path would not check another place.
    return Term(name, (number, pinned(place)), result_type(name, [number.type, place.type]))


def _only(name: str, args: tuple[Bound, ...]) -> Bound | None:
    """Return a single argument unchanged."""
    return args[0] if len(args) == 1 else None


def _check_alike(name: str, args: Sequence[Bound]) -> None:
    """Refuse a STRING together with another type, since only CASE and coalesce have an implicit CAST."""
    kinds = [argument.type for argument in args if not is_null(argument) or is_text_null(argument)]
    if STRING in kinds and len({*kinds}) > 1:
        raise mismatch(f'"{name}" mixes types', f"The operands are {', '.join(map(str, kinds))}.", "CAST them.")


def _null_if(args: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return the operands of nullif; the first operand keeps its type, because it is the result."""
    if any(argument.type == BINARY for argument in args):
        raise unsupported('"nullif" of a BINARY', "nullif compares no BINARY values.", "Use CASE.")
    read = read_as([one.type for one in args])
    if read is not None and args[1].type == STRING and not isinstance(args[1], Constant):
        args = (args[0], cast(args[1], read))
    first, other = comparable(args, looked_up=False)
    if isinstance(args[0], Constant) and args[0].type != first.type and not is_null(first):
        if not first.type.is_number:
            raise unsupported('"nullif" of a text and a date', "The result would be a STRING.", "CAST it.")
        if common_type((args[0].type, other.type)) is None:
            raise unsupported('"nullif" of numbers this wide', "No DECIMAL holds both.", "CAST one to DOUBLE.")
    return args[0], other


def _without_case(name: str, args: tuple[Bound, ...]) -> Term:
    """Return ILIKE as LIKE of lower-case operands, as Spark does."""
    text, pattern, *escape = args
    if isinstance(pattern, Constant):
        small: Bound = read_again(pattern, "escaped ilike" if escape else "ilike") if pattern.reader else pattern
    else:
        small = Term("lower", (pattern,), STRING)
    return Term("like", (Term("lower", (text,), STRING), small, *escape), BOOLEAN)


def _with_escape(args: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Return the arguments of LIKE with ESCAPE; a pattern is pinned: the fast path would not check another pattern."""
    text, pattern, escape = args
    if isinstance(pattern, Constant) and isinstance(escape, Constant) and pattern.reader:
        check_escapes(str(pattern.value), str(escape.value))
        pattern = pinned(pattern)
    return text, pattern, escape


def _escape(argument: Bound) -> Constant:
    if isinstance(argument, Constant) and isinstance(argument.value, str) and len(argument.value) == 1:
        return Constant(argument.value, STRING, position=argument.position, is_pinned=True)
    raise mismatch("ESCAPE is not one character", "ESCAPE takes a string of one character.")


def _is_strict(row: Function, argument: Bound, kind: str) -> bool:
    """Tell whether an argument must have the parameter's type already, because Spark does not cast it."""
    if row.name in ("bit_count", "bit_get"):
        return kind == "WHOLE"
    return not row.casts or (row.name in ("date_add", "date_sub") and argument.type.is_number)


def _implicit(argument: Bound, kind: str) -> Bound | None:
    """Return an argument after Spark's implicit CAST; None without such a CAST."""
    sql_type = argument.type
    if kind in ("DATE", "DAY") and (sql_type == STRING or (sql_type == TIMESTAMP and kind == "DATE")):
        return cast(argument, DATE)
    if kind == "TIMESTAMP" and sql_type == DATE:
        return as_timestamp(argument)
    if kind == "TIMESTAMP" and sql_type == STRING:
        return cast(argument, TIMESTAMP)
    if kind in ("STRING", "TEXT", "HEXED") and (sql_type.is_number or sql_type in (BOOLEAN, DATE, TIMESTAMP)):
        if kind == "HEXED" and sql_type.is_whole:
            return argument
        return cast(argument, BIGINT if kind == "HEXED" and sql_type.is_number else STRING)
    if kind == "SECONDS":
        return cast(argument, SECONDS)
    if kind in ("NUMBER", "DOUBLE") and sql_type == STRING:
        return cast(argument, DOUBLE)
    if kind in _AS_WHOLE and (sql_type == STRING or sql_type.is_number) and sql_type.name not in PARAMS[kind].accepted:
        return cast(argument, _AS_WHOLE[kind])
    return None


_AS_WHOLE = {"INT": INT, "WHOLE": BIGINT}
"""Kind of parameter for a whole number → the type to which Spark casts a number or a text."""


def _fit(argument: Bound, kind: str, what: str, *, strict: bool = False) -> Bound:
    """Return an argument converted to the type of a parameter.

    Args:
        argument: The argument.
        kind: The parameter's kind (`params.PARAMS`).
        what: The name of the argument in messages.
        strict: Whether Spark does not cast the argument.
    """
    param = PARAMS[kind]
    if is_null(argument) and not (strict and is_text_null(argument)):
        typed = kind in ("NUMBER", "WHOLE") and argument.type.is_number
        return argument if typed else Constant(None, param.null or SqlType.of(kind))
    if kind in ("LIKE", "ESCAPED"):
        pattern = _fit(argument, "STRING", what)
        return read_again(pattern, kind.lower()) if isinstance(pattern, Constant) and pattern.reader else pattern
    if kind == "ESCAPE":
        return _escape(argument)
    if kind in ("PRINTF", "PRINTED"):
        return argument
    if param.reader:
        if not isinstance(argument, Constant):
            raise unsupported(f"{what} that is not a constant", f"The argument must be a constant {param.null}.")
        if argument.type != param.null:
            raise mismatch(f"{what} is {argument.type}", f"The argument must be {param.null}.")
        return read_again(argument, param.reader)
    if isinstance(argument, Constant) and argument.reader and argument.type.is_number and kind == "DOUBLE":
        return coerce(argument, DOUBLE)
    if not strict and (fitting := _implicit(argument, kind)) is not None:
        return fitting
    if kind == "VALUE" and argument.type.is_ordered:
        return argument
    number = kind in ("NUMBER", "DOUBLE") and argument.type.is_number
    if number or argument.type.name in (param.accepted or (kind,)):
        return argument
    raise mismatch(f"{what} is {argument.type}", f"The argument must be {param.phrase or kind}.", "CAST it.")


_COMPLETED: dict[str, Callable[[str, tuple[Bound, ...]], Bound | None]] = {
    **dict.fromkeys(ROUNDINGS, to_scale),
    **dict.fromkeys(("concat", "coalesce"), _only),
    "bit_get": _bit_get,
    "format_string": printed,
    "ilike": _without_case,
    "nullif": lambda _, args: args[0] if is_null(args[0]) else None,
}
"""Function → a last step over the converted arguments, which returns the bound call, or None for a plain call."""
