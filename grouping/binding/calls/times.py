"""Functions that convert times to texts and texts to times: by a format, which stays in the signature, or by CAST."""

from __future__ import annotations

from collections.abc import Callable

from grouping.binding.bound import Bound, Term
from grouping.binding.calls.numbers import number_text
from grouping.binding.operands import as_timestamp, cast, whole_number
from grouping.binding.time_units import field_of, text_of
from grouping.functions.functions import result_type
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import DATE, STRING, TIMESTAMP
from grouping.values.time_format import read_format

__all__ = ["TIME_CALLS"]

_TIMES = (DATE, TIMESTAMP)
_USUAL = "yyyy-MM-dd HH:mm:ss"
"""The default format of unix_timestamp and from_unixtime."""


def _to_char(name: str, value: Bound, form: Bound) -> Bound:
    """Return a time, a number or a BINARY as a text in a given format.

    Raises:
        InputError: ``unsupported-query`` for a format whose result would not be exactly Spark's; ``type-mismatch`` for
            a value of another type.
    """
    if value.type in _TIMES:
        return _date_format(name, value, form)
    pattern = _pattern(name, form)
    match value.type.name, pattern.lower():
        case "BINARY", "hex" | "base64" as code:
            return _term(code, value)
        case "BINARY", "utf-8":
            return _term("decode", value, Value("UTF-8", "STRING"))
        case "BINARY", _:
            raise unsupported(f'"{name}" of BINARY by "{pattern[:60]}"', "The format must be hex, base64 or utf-8.")
    return number_text(name, value, pattern)


def _pattern(name: str, form: Bound | None) -> str:
    return _USUAL if form is None else text_of(form, f'the format of "{name}"')


def _date_format(name: str, time: Bound, form: Bound) -> Bound:
    pattern = _pattern(name, form)
    read_format(pattern, reads=False)
    time = cast(time, TIMESTAMP) if time.type == STRING else as_timestamp(time)
    return _term("date_format", time, Value(pattern, "STRING"))


def _to_timestamp(name: str, text: Bound, form: Bound | None = None) -> Bound:
    pattern = _pattern(name, form)
    if text.type in _TIMES or form is None:
        return cast(text, TIMESTAMP)
    return _read(text, pattern)


def _read(text: Bound, pattern: str) -> Bound:
    """Return a text parsed by a format as a TIMESTAMP."""
    read_format(pattern, reads=True)
    if text.type != STRING:
        raise mismatch(
            f"a time is read from {text.type}", "The argument must be a STRING, a DATE or a TIMESTAMP.", "CAST it."
        )
    return _term("to_timestamp", text, Value(pattern, "STRING"))


def _to_date(name: str, text: Bound, form: Bound | None = None) -> Bound:
    pattern = _pattern(name, form)
    return cast(text if form is None or text.type in _TIMES else _read(text, pattern), DATE)


def _unix_timestamp(name: str, text: Bound, form: Bound | None = None) -> Bound:
    pattern = _pattern(name, form)
    time = as_timestamp(text) if text.type in _TIMES else _read(text, pattern)
    # As in Spark, unix_timestamp cuts fractions of a second towards 1970, whereas unix_seconds rounds down.
    return _term("div", _term("unix_micros", time), Value(1_000_000, "BIGINT"))


def _from_unixtime(name: str, seconds: Bound, form: Bound | None = None) -> Bound:
    pattern = _pattern(name, form)
    read_format(pattern, reads=False)
    return _term(name, whole_number(seconds, name), Value(pattern, "STRING"))


def _date_part(name: str, field: Bound, time: Bound) -> Bound:
    return field_of(text_of(field, f'the field of "{name}"'), time)


def _term(name: str, *args: Bound) -> Term:
    return Term(name, args, result_type(name, [argument.type for argument in args]))


TIME_CALLS: dict[str, Callable[..., Bound]] = {
    **dict.fromkeys(("to_char", "to_varchar"), _to_char),
    "date_format": _date_format,
    "date_part": _date_part,
    "from_unixtime": _from_unixtime,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    "unix_timestamp": _unix_timestamp,
}
"""Binders by function, called with the function's name and the bound arguments."""
