"""Functions of times and their texts: by a format, which is part of a query's shape, or as a CAST without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grouping.binding.bound import Bound, Term
from grouping.binding.calls.numbers import number_text
from grouping.binding.operands import as_timestamp, cast, whole_number
from grouping.binding.time_units import text_of
from grouping.functions.functions import FUNCTIONS, result_type
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import DATE, STRING, TIMESTAMP
from grouping.model.wording import are
from grouping.values.time_format import read_format

__all__ = ["TIME_CALLS", "time_call", "to_char"]

_TIMES = (DATE, TIMESTAMP)
_USUAL = "yyyy-MM-dd HH:mm:ss"
"""The format of unix_timestamp and from_unixtime without one."""


def time_call(name: str, args: Sequence[Bound]) -> Bound:
    """Return one of `TIME_CALLS`, applied.

    Raises:
        InputError: ``type-mismatch`` for the wrong arguments, ``unsupported-query`` for a format that is not exact.
    """
    function = FUNCTIONS[name]
    most = len(function.params)
    if not most - function.optional <= len(args) <= most:
        takes = f"{most - function.optional} to {most}" if function.optional else f"{most}"
        raise mismatch(f'function "{name}" takes {takes} arguments', f"There {are(len(args))} {len(args)}.")
    pattern = text_of(args[1], f'the format of "{name}"') if len(args) > 1 else None
    return TIME_CALLS[name](args[0], pattern)


def to_char(name: str, args: Sequence[Bound]) -> Bound:
    """Return a time or a number by a format, or bytes by a code, as text.

    Raises:
        InputError: ``unsupported-query`` for a format that is not exact, ``type-mismatch`` for another value.
    """
    value, pattern = args[0], text_of(args[1], f'the format of "{name}"')
    if value.type in _TIMES:
        return _date_format(value, pattern)
    match value.type.name, pattern.lower():
        case "BINARY", "hex" | "base64" as code:
            return _term(code, value)
        case "BINARY", "utf-8":
            return _term("decode", value, Value("UTF-8", "STRING"))
        case "BINARY", _:
            raise unsupported(f'"{name}" of BINARY by "{pattern[:60]}"', "It is by hex, base64 or utf-8.")
    return number_text(name, value, pattern)


def _date_format(time: Bound, pattern: str | None) -> Bound:
    assert pattern is not None
    read_format(pattern, reads=False)
    time = cast(time, TIMESTAMP) if time.type == STRING else as_timestamp(time)
    return _term("date_format", time, Value(pattern, "STRING"))


def _to_timestamp(text: Bound, pattern: str | None) -> Bound:
    if text.type in _TIMES or pattern is None:
        return cast(text, TIMESTAMP)
    read_format(pattern, reads=True)
    if text.type != STRING:
        raise mismatch(f"a time is read of {text.type}", "It must be a STRING, a DATE or a TIMESTAMP.", "CAST it.")
    return _term("to_timestamp", text, Value(pattern, "STRING"))


def _to_date(text: Bound, pattern: str | None) -> Bound:
    return cast(text if pattern is None or text.type in _TIMES else _to_timestamp(text, pattern), DATE)


def _unix_timestamp(text: Bound, pattern: str | None) -> Bound:
    time = as_timestamp(text) if text.type in _TIMES else _to_timestamp(text, _USUAL if pattern is None else pattern)
    # As Spark has it here: cut towards 1970, where unix_seconds goes down.
    return _term("div", _term("unix_micros", time), Value(1_000_000, "BIGINT"))


def _from_unixtime(seconds: Bound, pattern: str | None) -> Bound:
    pattern = _USUAL if pattern is None else pattern
    read_format(pattern, reads=False)
    return _term("from_unixtime", whole_number(seconds, "from_unixtime"), Value(pattern, "STRING"))


def _term(name: str, *args: Bound) -> Term:
    return Term(name, args, result_type(name, [argument.type for argument in args]))


TIME_CALLS: dict[str, Callable[[Bound, str | None], Bound]] = {
    "date_format": _date_format,
    "from_unixtime": _from_unixtime,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    "unix_timestamp": _unix_timestamp,
}
"""By name, of a time or a text and a format."""
