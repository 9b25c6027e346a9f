"""Parts of a JSON text as Spark's functions find them: as Jackson reads and writes JSON, one token after another.

The text is read as far as its first value goes: what follows may be anything. Strings may stand in single quotes and
hold control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isinf

from grouping.values.java_double import java_double
from grouping.values.json_path import JsonPath

__all__ = ["json_array_length", "json_object", "json_object_keys", "quoted"]

_BLANK = re.compile(r"[ \t\r\n]*")
_ESCAPES = r"""\\["\\/bfnrt']|\\u[0-9a-fA-F]{4}"""
_STRING = re.compile(rf"""(?s)"((?:[^"\\]|{_ESCAPES})*)"|'((?:[^'\\]|{_ESCAPES})*)'""")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z_.+\-])")
_WORD = re.compile(r"(?:true|false|null)(?!\w)")
_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.")
_UNESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
"""Characters that Jackson writes escaped: those of two UTF-16 units too, and halves of these."""
_SHORT = {'"': '\\"', "\\": "\\\\", **{plain: f"\\{letter}" for letter, plain in _UNESCAPED.items()}}
_DEEPEST = 1000
_LONGEST_NUMBER = 1000


class _NoJsonError(ValueError):
    """The text cannot be read any further."""


def json_object(text: str, path: JsonPath) -> str | None:
    """Return the part that a path leads to: a string as it is, anything else as JSON; None where there is none.

    Example:
        >>> json_object('{"user": {"id": 7, "tags": ["a", 1.50]}}', ("user", "tags"))
        '["a",1.5]'
    """
    try:
        return _Reader(text).find(path)
    except _NoJsonError:
        return None


def json_array_length(text: str) -> int | None:
    """Return how many elements an array has; None where the text is none.

    Example:
        >>> json_array_length("[1, [2, 3], {}]"), json_array_length('{"a": 1}')
        (3, None)
    """
    try:
        return sum(1 for _ in _Reader(text, halves=True).elements())
    except _NoJsonError:
        return None


def json_object_keys(text: str) -> list[str] | None:
    """Return the names of an object's fields in their order, repeated ones too; None where the text is no object.

    Example:
        >>> json_object_keys('{"a": {"b": 1}, "c": 2, "a": 3}')
        ['a', 'c', 'a']
    """
    try:
        return list(_Reader(text, halves=True).keys())
    except _NoJsonError:
        return None


class _Reader:
    def __init__(self, text: str, *, halves: bool = False) -> None:
        """Begin before the first value.

        Args:
            text: JSON, maybe.
            halves: Whether half of a surrogate pair may stand in values that are passed over.
        """
        self._text = text
        self._at = 0
        self._halves = halves

    def elements(self) -> Iterator[None]:
        """Pass over the elements of an array, and yield for each."""
        self._expect("[")
        if self._accept("]"):
            return
        while True:
            self.copy()
            yield
            if self._accept("]"):
                return
            self._expect(",")

    def keys(self) -> Iterator[str]:
        """Pass over the fields of an object, and yield their names."""
        self._expect("{")
        if self._accept("}"):
            return
        while True:
            yield self._key()
            self.copy()
            if self._accept("}"):
                return
            self._expect(",")

    def find(self, path: JsonPath) -> str | None:
        """Read a value and return the part of it that the path names."""
        character = self._peek()
        if not path:
            return self._string() if character in "\"'" else self.copy()
        step, rest = path[0], path[1:]
        if character == "{" and isinstance(step, str):
            return self._in_object(step, rest)
        if character == "[" and isinstance(step, int):
            return self._in_array(step, rest)
        self.copy()
        return None

    def _in_object(self, name: str, rest: JsonPath) -> str | None:
        """Return the part that the rest of the path names in the first field of that name that is not null."""
        found = None
        self._at += 1
        if self._accept("}"):
            return None
        while True:
            if self._key() == name and found is None and not self._text.startswith("null", self._begin()):
                found = self.find(rest)
            else:
                self.copy()
            if self._accept("}"):
                return found
            self._expect(",")

    def _in_array(self, place: int, rest: JsonPath) -> str | None:
        found, number = None, 0
        self._at += 1
        if self._accept("]"):
            return None
        while True:
            if number == place:
                found = self.find(rest)
            else:
                self.copy()
            number += 1
            if self._accept("]"):
                return found
            self._expect(",")

    def copy(self) -> str:
        """Read a value and return it as Jackson writes it."""
        parts: list[str] = []
        closing: list[str] = []
        while True:
            character = self._peek()
            if character in "{[":
                self._at += 1
                end = "}" if character == "{" else "]"
                parts.append(character)
                closing.append(end)
                if len(closing) > _DEEPEST:
                    raise _NoJsonError
                if self._peek() != end:
                    self._name(parts, end)
                    continue
            else:
                parts.append(self._scalar())
            if self._closed(parts, closing):
                return "".join(parts)

    def _closed(self, parts: list[str], closing: list[str]) -> bool:
        """Step over what ends after a value; tell whether that was the outermost one."""
        while closing:
            if self._accept(closing[-1]):
                parts.append(closing.pop())
                continue
            self._expect(",")
            parts.append(",")
            self._name(parts, closing[-1])
            return False
        return True

    def _name(self, parts: list[str], end: str) -> None:
        if end == "}":
            parts.append(f"{quoted(self._key())}:")

    def _key(self) -> str:
        if self._peek() not in "\"'":
            raise _NoJsonError
        name = self._string()
        self._expect(":")
        return name

    def _scalar(self) -> str:
        if self._peek() in "\"'":
            return quoted(self._string())
        if word := _WORD.match(self._text, self._at):
            self._at = word.end()
            return word[0]
        number = _NUMBER.match(self._text, self._at)
        if number is None or len(number[0]) > _LONGEST_NUMBER:
            raise _NoJsonError
        self._at = number.end()
        if number[1] or number[2]:
            value = float(number[0])
            return f'"{java_double(value)}"' if isinf(value) else java_double(value)
        return str(int(number[0]))

    def _string(self) -> str:
        found = _STRING.match(self._text, self._begin())
        if found is None:
            raise _NoJsonError
        self._at = found.end()
        inner = found[1] if found[1] is not None else found[2]
        text = _ESCAPE.sub(_plain, inner) if "\\" in inner else inner
        if not self._halves and any("\ud800" <= one <= "\udfff" for one in text if one > "\ud7ff"):
            raise _NoJsonError  # half of a surrogate pair, which no text of UTF-8 can hold
        return text

    def _begin(self) -> int:
        """Step over blanks."""
        self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches everywhere
        return self._at

    def _peek(self) -> str:
        """Return the next character that is no blank."""
        at = self._begin()
        if at >= len(self._text):
            raise _NoJsonError
        return self._text[at]

    def _accept(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            raise _NoJsonError


def _plain(escape: re.Match[str]) -> str:
    text = escape[0]
    if text[1] != "u":
        return _UNESCAPED.get(text[1], text[1])
    if len(text) == 12:
        high, low = int(text[2:6], 16), int(text[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    return chr(int(text[2:], 16))


def quoted(text: str) -> str:
    """Return a text as a JSON string that Jackson writes."""
    return f'"{_ESCAPED.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return _SHORT.get(found[0]) or "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
