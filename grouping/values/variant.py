"""VARIANT values as text: JSON in a canonical form, so a column of VARIANTs is a column of texts.

The text is JSON without blanks, with the fields of objects sorted by name. The form of a number determines its type in
Spark: a BIGINT or DECIMAL has no exponent and no zeros at the end of its fraction, a DOUBLE has an exponent. `shown`
returns Spark's text of the value.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from math import isinf
from typing import Any, NoReturn

import msgspec

from grouping.model.errors import InputError
from grouping.model.wording import counted
from grouping.values.java_double import json_double

__all__ = [
    "MISSING",
    "VariantPath",
    "parse_variant",
    "parse_variant_path",
    "part_of",
    "read_variant",
    "refuse_constant",
    "shown",
    "unique_fields",
    "variant_number",
    "variant_text",
    "write_variant",
]

VariantPath = tuple[str | int, ...]
"""The steps of a path: the name of a field, or the index of an element from 0."""
MISSING = msgspec.UNSET
"""The result for a path that leads to no part of a value. A null of JSON is a part, and its value is None."""

_MOST_LEVELS = 200
"""The largest depth of nested objects and arrays. Spark allows 1,000."""
_LONGEST_NUMBER = 1000
"""The largest number of characters of a number that Jackson reads."""
_WIDEST = 38
"""The largest number of digits of a DECIMAL: in total, and after the point."""
_STEP = re.compile(r"""\.([^.\[]+)|\['([^']*)'\]|\["([^"]*)"\]|\[([0-9]{1,9})\]""")
_LONG_DIGITS = re.compile(rb"[0-9]{19}")
_EXPONENT = re.compile(r"[0-9][eE]")
_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?')
_ESCAPE = re.compile(r"\\(?:u00[0-9a-f]{2}|.)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)')
_BLANK = " \t\r\n"


def variant_number(digits: str) -> msgspec.Raw:
    """Return a JSON number in its form in a VARIANT's text.

    Raises:
        ValueError: The number has more characters than Spark reads.

    Example:
        >>> [bytes(variant_number(digits)).decode() for digits in ("1.50", "-0.0", "1e3", "1" + "0" * 38)]
        ['1.5', '0', '1e3', '1e+38']
    """
    return msgspec.Raw(_number(digits).encode())


def _number(digits: str) -> str:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError("a number has too many digits")
    if "e" in digits or "E" in digits:
        return digits
    if len(digits) > _WIDEST:
        _, figures, exponent = Decimal(digits).as_tuple()
        if len(figures) > _WIDEST or -int(exponent) > _WIDEST:
            return _double(float(digits))
    plain = digits.rstrip("0").removesuffix(".") if "." in digits else digits
    return "0" if plain == "-0" else plain


def _double(value: float) -> str:
    if isinf(value):
        return "1e999" if value > 0 else "-1e999"
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def variant_text(raw: bytes) -> str:
    """Return the VARIANT text of a JSON text, by a fast decoder. If a field is repeated, the last one is used.

    Raises:
        ValueError: The decoder cannot read the text. The text is no JSON, or has a number or a character that only a
            slower decoder can read.
        msgspec.MsgspecError: As for ValueError.
        RecursionError: As for ValueError.

    Example:
        >>> variant_text(b'{"b": [1.50, 2e0], "a": null}')
        '{"a":null,"b":[1.5,2e0]}'
    """
    if _LONG_DIGITS.search(raw):
        raise ValueError("its numbers have many digits")
    return write_variant(_READER.decode(raw))


def parse_variant(text: str) -> str | None:
    """Return the text of a VARIANT as Spark's parse_json reads it. Only the first JSON value of a text is read.

    The result is None if the text is not JSON, is nested too deeply, or has a repeated field. Spark fails for these.

    Example:
        >>> parse_variant(' {"b":1,"a":[]} {'), parse_variant('{"a":1,"a":2}'), parse_variant("[1,]")
        ('{"a":[],"b":1}', None, None)
    """
    start = len(text) - len(text.lstrip(_BLANK))
    try:
        value, end = _JACKSON.raw_decode(text, start)
        if _joined(text[start], text[end : end + 1]):
            return None
        try:
            return write_variant(value)
        except UnicodeEncodeError:
            return write_variant(_without_halves(value))
    except (ValueError, RecursionError):
        return None


def _joined(first: str, after: str) -> bool:
    """Tell whether the next character would continue a number or word, so that the value is malformed."""
    if not after or first in '"{[':
        return False
    if first in "tfn":
        return after.isidentifier() or after.isdigit() or after == "$"
    return after not in _BLANK


def unique_fields(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object. Raise ValueError for a repeated field."""
    found = dict(fields)
    if len(found) < len(fields):
        raise ValueError("a field is there twice")
    return found


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and infinities, which Python's decoder would accept."""
    raise ValueError(f"{name} is no JSON")


def _without_halves(value: Any) -> Any:
    """Return a value whose texts have a question mark for half of a surrogate pair, as Java writes them."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list():
            return [_without_halves(each) for each in value]
        case dict():
            return {_without_halves(name): _without_halves(each) for name, each in value.items()}
    return value


_READER = msgspec.json.Decoder(float_hook=variant_number)
_WRITER = msgspec.json.Encoder(order="sorted")
_JACKSON = json.JSONDecoder(
    object_pairs_hook=unique_fields,
    parse_float=variant_number,
    parse_int=variant_number,
    parse_constant=refuse_constant,
)


def write_variant(value: Any) -> str:
    """Return the text of a VARIANT that is made of dicts, lists, texts, booleans, None and numbers.

    Args:
        value: The value, with numbers that are ints within BIGINT, or as `variant_number` returns them.

    Raises:
        ValueError: The value is nested too deeply, or (`UnicodeEncodeError`) a text has half of a surrogate pair.
        RecursionError: The value is nested far too deeply.
    """
    text = _WRITER.encode(value).decode()
    if "\\u00" in text:
        text = _ESCAPE.sub(lambda found: _upper(found[0]), text)
    if text.count("{") + text.count("[") > _MOST_LEVELS and _levels(text) > _MOST_LEVELS:
        raise ValueError("it is nested too deeply")
    return text


def _upper(escape: str) -> str:
    return f"\\u{escape[2:].upper()}" if escape[1] == "u" else escape


def _levels(text: str) -> int:
    deepest = level = 0
    for mark in _STRING.sub("", text):
        if mark in "{[":
            level += 1
            deepest = max(deepest, level)
        elif mark in "}]":
            level -= 1
    return deepest


def read_variant(text: str) -> Any:
    """Return the value of a VARIANT's text. A number with a point or an exponent becomes a `msgspec.Raw`.

    Example:
        >>> read_variant('{"a":[1,"x",true,null]}')
        {'a': [1, 'x', True, None]}
    """
    return _PLAIN_READER.decode(text)


_PLAIN_READER = msgspec.json.Decoder(float_hook=lambda digits: msgspec.Raw(digits.encode()))


def part_of(value: Any, path: VariantPath) -> Any:
    """Return the part of a value at a path; `MISSING` if the path leads to no part.

    Example:
        >>> part_of({"a": [1, {"b": None}]}, ("a", 1, "b")), part_of([1], ("a",))
        (None, UNSET)
    """
    for step in path:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else MISSING
        if value is MISSING:
            return MISSING
    return value


def shown(text: str) -> str:
    """Return a VARIANT in the form of Spark's to_json.

    Example:
        >>> shown('{"a":[1.5,1e3,1e999],"b":"1e3"}')
        '{"a":[1.5,1000.0,"Infinity"],"b":"1e3"}'
    """
    if _EXPONENT.search(text) is None:
        return text
    return _STRING_OR_NUMBER.sub(lambda found: _shown(found[0]), text)


def _shown(token: str) -> str:
    if token[0] == '"' or _EXPONENT.search(token) is None:
        return token
    return json_double(float(token))


def parse_variant_path(text: str) -> VariantPath:
    """Return the steps of a path of variant_get.

    Raises:
        InputError: ``unsupported-query``.

    Example:
        >>> parse_variant_path('$.items[0]["unit price"]')
        ('items', 0, 'unit price')
    """
    steps: list[str | int] = []
    at = 1
    while text.startswith("$") and (step := _STEP.match(text, at)):
        steps.append(int(step[4]) if step[4] else next(name for name in step.groups() if name is not None))
        at = step.end()
    if not text.startswith("$") or at < len(text):
        raise InputError(
            f'path "{text[:60]}" is not supported',
            code="unsupported-query",
            detail=f"After {counted(min(at, len(text)), 'character')} no further field or element can be read.",
            hint="A path is $ and then .name, ['name'] or [0].",
        )
    return tuple(steps)
