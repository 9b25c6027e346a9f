"""The tokens of a JSON text as Jackson reads them, and the place where Jackson goes on after a fault.

Spark's from_json keeps the values before a fault. The result for a broken text therefore depends on Jackson's place
after each fault. Strings may have single quotes; NaN and infinities are numbers.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from spark_jobs.engine.expressions.nested.json_reader import unescaped

__all__ = ["BrokenJsonError", "JsonTokens", "Token"]

_BLANK = re.compile(r"[ \t\r\n]*")
_ESCAPE = r"""\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})"""
_STRINGS = {
    '"': re.compile(rf"""((?:[^"\\\x00-\x1f]|{_ESCAPE})*)(")?"""),
    "'": re.compile(rf"""((?:[^'\\\x00-\x1f]|{_ESCAPE})*)(')?"""),
}
"""By the quote that begins a string: the pattern of the string's valid part and, if it is there, the closing quote."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<part>\.[0-9]+)?(?P<power>[eE][+-]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[0-9]+[.eE]?")
_ODD_NUMBERS = ("NaN", "Infinity", "+INF", "+Infinity", "-INF", "-Infinity")
_WORDS = {"t": "true", "f": "false", "n": "null", "N": "NaN", "I": "Infinity"}
_DIGITS = frozenset("0123456789")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_MOST_LEVELS = 1000
_LONGEST_NUMBER = 1000


class BrokenJsonError(ValueError):
    """The text is no JSON at the current place, or a value does not have the wanted type."""


class Token(Enum):
    """The kinds of tokens."""

    NAME = auto()
    STRING = auto()
    WHOLE = auto()
    """A number without fraction and exponent."""
    FLOAT = auto()
    TRUE = auto()
    FALSE = auto()
    NULL = auto()
    OBJECT = auto()
    OBJECT_END = auto()
    ARRAY = auto()
    ARRAY_END = auto()


_OPENING = {"{": Token.OBJECT, "[": Token.ARRAY}
_CLOSING = {"}": (Token.OBJECT_END, Token.OBJECT), "]": (Token.ARRAY_END, Token.ARRAY)}
_OF_WORDS = {"true": Token.TRUE, "false": Token.FALSE, "null": Token.NULL}


class _Level:
    """An object or an array that is open."""

    __slots__ = ("kind", "name", "values")

    def __init__(self, kind: Token) -> None:
        self.kind = kind
        self.name: str | None = None
        self.values = 0


class JsonTokens:
    """The tokens of a text, from left to right.

    Example:
        >>> tokens = JsonTokens('{"a": [1]}')
        >>> [tokens.next().name for _ in range(6)], tokens.next()
        (['OBJECT', 'NAME', 'ARRAY', 'WHOLE', 'ARRAY_END', 'OBJECT_END'], None)
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._levels: list[_Level] = []
        self._value: Token | None = None
        """The token after the current name, since Jackson reads a name and the token after it at once."""
        self._fault: int | None = None
        """The place where Jackson goes on after the fault in the current string; None if no fault is left to report."""
        self.current: Token | None = None
        self.text = ""
        """The text of the current number as written, or the characters of the current string.

        The string may be broken: `string` checks it and returns it.
        """

    @property
    def name(self) -> str | None:
        """The name of the field to which the current token belongs; None within an array."""
        opened = self.current in (Token.OBJECT, Token.ARRAY)
        level = len(self._levels) - 1 - opened
        return self._levels[level].name if level >= 0 else None

    def string(self) -> str:
        """Return the current string; halves of surrogate pairs are among its characters.

        Raises:
            BrokenJsonError: The string has a fault.
        """
        self._find_fault()
        return self.text

    def next(self) -> Token | None:
        """Go to the next token and return it; None at the end, and after a name whose value is broken.

        Raises:
            BrokenJsonError: The text has no token here.
        """
        if self.current is Token.NAME:
            self.current, self._value = self._value, None
            self._open(self.current)
            return self.current
        self._find_fault()
        character = self._character()
        if character is None:
            self._check_end()
            self.current = None
        elif character in _CLOSING:
            self._close(character)
        else:
            self._go_on(character)
        return self.current

    def skip_children(self) -> None:
        """Go to the end of the object or array that begins at the current token; raises as `next` does."""
        if self.current not in (Token.OBJECT, Token.ARRAY):
            return
        opened = 1
        while opened:
            token = self.next()
            if token is None:
                raise BrokenJsonError
            opened += (token in (Token.OBJECT, Token.ARRAY)) - (token in (Token.OBJECT_END, Token.ARRAY_END))

    def _go_on(self, character: str) -> None:
        """Read the value, or the name and its value, that begins with the character `character`."""
        level = self._levels[-1] if self._levels else None
        if level is not None:
            level.values += 1
            if level.values > 1:
                self._expect(character, ",")
                character = self._required()
            if level.kind is Token.OBJECT:
                if character not in _STRINGS:
                    raise BrokenJsonError
                self._string(character)
                self._find_fault()
                level.name = self.text
                self.current = Token.NAME
                self._expect(self._required(), ":")
                self._value = self._read(self._required())
                return
        self.current = self._read(character)
        self._open(self.current)

    def _open(self, token: Token | None) -> None:
        if token in (Token.OBJECT, Token.ARRAY):
            if len(self._levels) >= _MOST_LEVELS:
                raise BrokenJsonError
            self._levels.append(_Level(token))

    def _close(self, character: str) -> None:
        token, opened = _CLOSING[character]
        if not self._levels or self._levels[-1].kind is not opened:
            raise BrokenJsonError
        self._levels.pop()
        self.current = token

    def _read(self, character: str) -> Token:
        if character in _OPENING:
            return _OPENING[character]
        if character in _STRINGS:
            self._string(character)
            if character == "'":
                self._find_fault()
            return Token.STRING
        if character == "-" or character in _DIGITS:
            return self._number(character)
        if character in _WORDS or character == "+":
            return self._word(character)
        self._pass_identifier(character)
        raise BrokenJsonError

    def _string(self, quote: str) -> None:
        """Read a string as far as it is valid, and note where Jackson goes on if the string is broken."""
        found = _STRINGS[quote].match(self._text, self._at)
        assert found is not None, "it matches everywhere"
        self._at = found.end()
        self.text = unescaped(found[1])
        self._fault = None if found[2] else self._behind_fault(found.end())

    def _behind_fault(self, at: int) -> int:
        if self._text[at : at + 1] != "\\":
            return min(at + 1, len(self._text))
        if self._text[at + 1 : at + 2] != "u":
            return min(at + 2, len(self._text))
        at += 2
        while self._text[at : at + 1] in _HEX_DIGITS:
            at += 1
        return min(at + 1, len(self._text))

    def _find_fault(self) -> None:
        if self._fault is not None:
            self._at, self._fault = self._fault, None
            raise BrokenJsonError

    def _number(self, character: str) -> Token:
        start = self._at - 1
        found = _NUMBER.match(self._text, start)
        if found is None:  # a minus sign that no digit follows
            self._at += 1
            return self._odd_number("-")
        end, follower = found.end(), self._text[found.end() : found.end() + 1]
        if follower and (
            (follower == "." and not found["part"] and not found["power"])
            or (follower in "eE" and not found["power"])
            or (follower in _DIGITS and found[0].lstrip("-") == "0")
        ):
            behind = _NO_NUMBER.match(self._text, start + (character == "-"))
            self._at = behind.end() if behind and follower not in _DIGITS else end
            raise BrokenJsonError
        self._at = end
        self.text = found[0]
        if len(self.text) > _LONGEST_NUMBER:
            raise BrokenJsonError
        return Token.FLOAT if found["part"] or found["power"] else Token.WHOLE

    def _odd_number(self, sign: str) -> Token:
        start = self._at - 2
        for written in _ODD_NUMBERS:
            if written[0] == sign and self._text.startswith(written, start):
                self._at = start + len(written)
                self._check_word_end()
                self.text = written
                return Token.FLOAT
        raise BrokenJsonError

    def _word(self, character: str) -> Token:
        if character == "+":
            self._at += 1
            return self._odd_number("+")
        word = _WORDS[character]
        for place in range(1, len(word)):
            if self._text[self._at : self._at + 1] != word[place]:
                self._pass_identifier(character)
                raise BrokenJsonError
            self._at += 1
        self._check_word_end()
        self.text = word
        return _OF_WORDS.get(word, Token.FLOAT)

    def _check_word_end(self) -> None:
        follower = self._text[self._at : self._at + 1]
        if follower.isalnum() or follower in ("_", "$"):
            self._pass_identifier(follower)
            raise BrokenJsonError

    def _pass_identifier(self, first: str) -> None:
        """Step over the rest of a word; Jackson reads the word to show it in its error."""
        if not (first.isalpha() or first in "_$" or first.isdigit()):
            return
        while (character := self._text[self._at : self._at + 1]).isalnum() or character in ("_", "$"):
            self._at += 1

    def _character(self) -> str | None:
        """Step over blanks and a character, and return the character; None at the end."""
        at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches everywhere
        self._at = min(at + 1, len(self._text))
        return self._text[at] if at < len(self._text) else None

    def _required(self) -> str:
        character = self._character()
        if character is None:
            raise BrokenJsonError
        return character

    def _expect(self, found: str, wanted: str) -> None:
        if found != wanted:
            raise BrokenJsonError

    def _check_end(self) -> None:
        if self._levels:
            raise BrokenJsonError
