"""JSON texts as Spark's functions read and write them with Jackson, one token after another.

Only the first value of a text is read; any text may follow. Strings may have single quotes, and may contain control
characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grouping.values.java_double import json_double

__all__ = [
    "HALF",
    "JsonText",
    "NoJsonError",
    "encodable",
    "json_array_length",
    "json_object_keys",
    "plainly_quoted",
    "quoted",
    "unescaped",
]

_END = "\0"
"""The character that is appended to a text to mark its end; no JSON value has this character outside of strings."""
_BLANK = re.compile(r"[ \t\r\n]*")
_BLANKS = frozenset(" \t\r\n")
_ESCAPES = r"""\\["\\/bfnrt']|\\u[0-9a-fA-F]{4}"""
_STRING = re.compile(rf"""(?s)"((?:[^"\\]|{_ESCAPES})*)"|'((?:[^'\\]|{_ESCAPES})*)'""")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z_.+\-])")
_WORD = re.compile(r"(?:true|false|null)(?!\w)")
_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.")
HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which no text of UTF-8 can hold."""
_UNESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
"""Characters that Jackson escapes; among them are all characters of two UTF-16 units, and halves of surrogate pairs."""
_NO_PLAIN = re.compile('["\\\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", **{plain: f"\\{letter}" for letter, plain in _UNESCAPED.items()}}
_DEEPEST = 1000
_LONGEST_NUMBER = 1000


class NoJsonError(ValueError):
    """The text cannot be read any further."""


def json_array_length(text: str) -> int | None:
    """Return the number of elements of a JSON array; None if the text is no array.

    Example:
        >>> json_array_length("[1, [2, 3], {}]"), json_array_length('{"a": 1}')
        (3, None)
    """
    try:
        return _passed(JsonText(text))
    except NoJsonError:
        return None


def json_object_keys(text: str) -> list[str] | None:
    """Return the names of an object's fields in their order, including repeated names; None if the text is no object.

    Example:
        >>> json_object_keys('{"a": {"b": 1}, "c": 2, "a": 3}')
        ['a', 'c', 'a']
    """
    try:
        return [encodable(name) for name in _names(JsonText(text))]
    except NoJsonError:
        return None


def _passed(reader: JsonText) -> int:
    count = 0
    for _ in reader.values():
        reader.copy()
        count += 1
    return count


def _names(reader: JsonText) -> list[str]:
    names = []
    for name in reader.fields():
        reader.copy()
        names.append(name)
    return names


class JsonText:
    """A text that is read from left to right."""

    def __init__(self, text: str) -> None:
        """Begin before the first value of a text that may be JSON."""
        self._text = text + _END
        self._go_to(0)
        self._root = self._at
        """Where the first value begins."""
        self.quote = quoted
        """The function that writes a text as a JSON string."""

    def values(self) -> Iterator[None]:
        """Yield before each element of an array; the caller then reads the element."""
        yield from self._parts("[", "]")

    def fields(self) -> Iterator[str]:
        """Yield the name of each field of an object; the caller then reads the field's value."""
        for _ in self._parts("{", "}"):
            yield self._key()

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        self.expect(opening)
        if self.accept(closing):
            return
        while True:
            yield
            if self.accept(closing):
                return
            self.expect(",")

    def is_null(self) -> bool:
        """Tell whether the value that begins at the current place is null."""
        return self._text.startswith("null", self._at)

    def copy(self) -> str:
        """Read a value, and return the text that Jackson writes for the value."""
        parts: list[str] = []
        closing: list[str] = []
        while True:
            character = self.peek()
            if character in "{[":
                self._go_to(self._at + 1)
                end = "}" if character == "{" else "]"
                parts.append(character)
                closing.append(end)
                if len(closing) > _DEEPEST:
                    raise NoJsonError
                if self.peek() != end:
                    self._name(parts, end)
                    continue
            else:
                parts.append(self._scalar())
            if self._closed(parts, closing):
                return "".join(parts)

    def _closed(self, parts: list[str], closing: list[str]) -> bool:
        """Step from the end of a value to the beginning of the next one; tell whether the outermost value has ended."""
        while closing:
            if self.accept(closing[-1]):
                parts.append(closing.pop())
                continue
            self.expect(",")
            parts.append(",")
            self._name(parts, closing[-1])
            return False
        return True

    def _name(self, parts: list[str], end: str) -> None:
        if end == "}":
            parts.append(f"{self.quote(self._key())}:")

    def _key(self) -> str:
        if self.peek() not in "\"'":
            raise NoJsonError
        name = self.string()
        self.expect(":")
        return name

    def _scalar(self) -> str:
        if self.peek() in "\"'":
            return self.quote(self.string())
        if word := _WORD.match(self._text, self._at):
            self._go_to(word.end())
            return word[0]
        number = _NUMBER.match(self._text, self._at)
        if number is None or len(number[0]) > _LONGEST_NUMBER:
            raise NoJsonError
        end = number.end()
        if number.start() == self._root and self._text[end] not in _BLANKS and end < len(self._text) - len(_END):
            raise NoJsonError  # after a number that is the whole value, the text must end or have a blank
        self._go_to(end)
        return json_double(float(number[0])) if number[1] or number[2] else str(int(number[0]))

    def string(self) -> str:
        """Read a string and return its characters; halves of surrogate pairs may be among them."""
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise NoJsonError
        self._go_to(found.end())
        inner = found[1] if found[1] is not None else found[2]
        return unescaped(inner)

    def _go_to(self, place: int) -> None:
        """Step to a place, and over the blanks that begin at this place."""
        if self._text[place] in _BLANKS:
            place = _BLANK.match(self._text, place).end()  # type: ignore[union-attr]  # it matches everywhere
        self._at = place

    def peek(self) -> str:
        """Return the next non-blank character; at the end of the text, a character that begins no value."""
        return self._text[self._at]

    def accept(self, character: str) -> bool:
        """Step over the next character and the blanks after it if it is `character`; tell whether it is."""
        if self._text[self._at] != character:
            return False
        self._go_to(self._at + 1)
        return True

    def expect(self, character: str) -> None:
        """Step over a character.

        Raises:
            NoJsonError: Another character comes next.
        """
        if not self.accept(character):
            raise NoJsonError


def unescaped(text: str) -> str:
    """Return the characters of a string that has only valid escapes."""
    return _ESCAPE.sub(_plain, text) if "\\" in text else text


def _plain(escape: re.Match[str]) -> str:
    text = escape[0]
    if text[1] != "u":
        return _UNESCAPED.get(text[1], text[1])
    return bytes.fromhex(text.replace("\\u", "")).decode("utf-16-be", "surrogatepass")


def encodable(text: str) -> str:
    """Return a text with a question mark for each half of a surrogate pair, as Java writes them."""
    return HALF.sub("?", text)


def quoted(text: str) -> str:
    """Return a text as the JSON string that Jackson writes if its output is bytes."""
    return f'"{_ESCAPED.sub(_escaped, text)}"'


def plainly_quoted(text: str) -> str:
    """Return a text as the JSON string that Jackson writes, with fewer escapes, if its output is characters."""
    return f'"{_NO_PLAIN.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return _SHORT.get(found[0]) or "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
