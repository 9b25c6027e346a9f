"""A statement as a sequence of sqlglot's tokens, with the position of the next token to read.

The tokens come from the SQLite dialect of sqlglot, since it reads strings as standard SQL does (``''`` is a quote, a
backslash is an ordinary character) and accepts both ``"`` and a backtick around identifiers.
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.errors import InputError
from grouping.statements.literal_runs import cut_runs
from grouping.values.intervals import UNITS
from schemas.codec import LONGEST_NAME

__all__ = ["NAME_LENGTH", "PlainSql", "Tokens", "clipped", "unreadable"]

NAME_LENGTH = 255
"""The largest number of characters of a name. With this limit, a reply has room for a thousand names."""


class PlainSql(SQLite):
    """The dialect of SQLite, except that brackets do not quote names."""

    class Tokenizer(SQLite.Tokenizer):
        """The tokenizer, under the name that sqlglot requires."""

        IDENTIFIERS: ClassVar = ['"', "`"]


_TOKENIZER = PlainSql().tokenizer()
_STREAM_NAME = re.compile(r"[\w.\-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_RESERVED = frozenset({"AS", "FROM", "SELECT", "WHERE", "WITH"})
"""Words that are names only in quotes."""
_SHOWN = 60
_SHOWN_FOR_CONTROL = "\N{REPLACEMENT CHARACTER}"


_CLOSED = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|--[^\n]*|/\*.*?\*/|[^'"`/-]+|-|/(?!\*)""", re.DOTALL)
_OPENED = {"'": "a string", '"': "a quoted name", "`": "a quoted name", "/": "a comment"}


def unreadable(text: str) -> InputError:
    """Return the error of a text that cannot be divided into tokens."""
    place = 0
    while (found := _CLOSED.match(text, place)) is not None:
        place = found.end()
    if place == len(text):
        return InputError(
            "the statement cannot be read",
            code="syntax-error",
            detail="X'…' holds no hex digits, or a comment within a comment has no end.",
            hint=None,
        )
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
    what = _OPENED[text[place]]
    return InputError(
        f"{what} is never closed",
        code="syntax-error",
        detail=f"Line {line}, column {column}: it is opened here.",
        hint="A quote inside a string is written twice: 'it''s'." if text[place] == "'" else None,
    )


class Tokens:
    """The tokens of a statement, and the position of the next token to read. For a single thread.

    Raises:
        InputError: ``syntax-error`` for a string, quoted name or comment without an end.

    Example:
        >>> tokens = Tokens("DROP STREAM eu.quotes-1;")
        >>> tokens.accept("DROP", "STREAM"), tokens.stream_name()
        (True, 'eu.quotes-1')
        >>> tokens.end()
    """

    def __init__(self, text: str) -> None:
        # sqlglot reads the rest of a text that begins with SHOW or EXPLAIN as one string; a first comma prevents this.
        self._text = "," + text
        try:
            self._tokens: list[Token] = _TOKENIZER.tokenize("," + cut_runs(text).text)[1:]
        except SqlglotError:
            raise unreadable(text) from None
        self.index = 0

    def type(self, ahead: int = 0) -> TokenType | None:
        """Return the type of the token `ahead` places after the next one; None after the last token."""
        place = self.index + ahead
        return self._tokens[place].token_type if place < len(self._tokens) else None

    def source(self, ahead: int = 0) -> str:
        """Return the token `ahead` places after the next one, as written; "" after the last token."""
        place = self.index + ahead
        if place >= len(self._tokens):
            return ""
        token = self._tokens[place]
        return self._text[token.start : token.end + 1]

    def word(self, ahead: int = 0) -> str:
        """Return the bare word `ahead` places after the next token, in capitals; "" for any other token."""
        source = self.source(ahead)
        return source.upper() if source.isidentifier() else ""

    def slice(self, start: int, end: int) -> str:
        """Return the text from the token `start` up to the token `end`, which is not included."""
        return self._text[self._tokens[start].start : self._tokens[end - 1].end + 1] if start < end else ""

    def before(self, index: int) -> str:
        """Return the text before a token."""
        return self._text[1 : self._tokens[index].start]

    def rest(self) -> str:
        """Return the whole text, with spaces in place of the text before the next token."""
        start = self._tokens[self.index].start if self.type() else len(self._text)
        return " " * (start - 1) + self._text[start:]

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if any(self.word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self.index += len(words)
        return True

    def accept_symbol(self, symbol: TokenType) -> bool:
        """Step over this symbol if it comes next."""
        if self.type() is not symbol:
            return False
        self.index += 1
        return True

    def expect(self, *words: str) -> None:
        """Step over these words, or raise a ``syntax-error`` that asks for them."""
        for word in words:
            if not self.accept(word):
                raise self.unexpected(word)

    def expect_symbol(self, symbol: TokenType, shown: str) -> None:
        """Step over this symbol, or raise a ``syntax-error`` that asks for it."""
        if not self.accept_symbol(symbol):
            raise self.unexpected(f'"{shown}"')

    def string(self, what: str, unit: str = "") -> str:
        """Read a string and return its value.

        Args:
            what: The name of the string in the ``syntax-error`` for another token.
            unit: If the string is an interval, a unit for the hint of that error; empty for any other string.
        """
        if self.type() is not TokenType.STRING:
            raise self.unexpected(f"{what} in single quotes", hint=self._in_quotes(unit))
        self.index += 1
        return self._tokens[self.index - 1].text

    def _in_quotes(self, unit: str) -> str | None:
        """Return the hint with the next token in quotes, and with a unit if it is the number of an interval."""
        first = int(self.word() == "INTERVAL" and self.type(1) is TokenType.STRING)  # Spark's form of an interval
        written = self.source(first).strip("'")
        if first or self.type() is TokenType.NUMBER:
            if self.word(first + 1).removesuffix("S") in UNITS:
                return f"Write it in quotes: '{written} {self.source(first + 1)}'."
            if unit and " " not in written:
                return f"Write it in quotes, with a unit: '{written} {unit}'."
            return f"Write it in quotes: '{written}'."
        shown = f"5 {unit}" if unit else written
        return f"Write it in quotes: '{shown}'." if self.word() else None

    def number(self, what: str, *, highest: int, lowest: int = 1) -> int:
        """Read a whole number from `lowest` to `highest`."""
        source = self.source()
        digits = source.isascii() and source.isdigit() and len(source) <= len(str(highest))
        if not digits or not lowest <= int(source) <= highest:
            raise self.unexpected(f"{what}, a whole number from {lowest} to {highest}")
        self.index += 1
        return int(source)

    def names(self, what: str) -> tuple[str, ...]:
        """Read one or more names with commas between them."""
        names = [self.name(what)]
        while self.accept_symbol(TokenType.COMMA):
            names.append(self.name(what))
        return tuple(names)

    def name(self, what: str, *, reserved: bool = True) -> str:
        """Read the name of a CQ, a column or a field, bare or quoted.

        Args:
            what: The kind of name, for errors.
            reserved: Whether reserved words are names only in quotes.
        """
        return _checked(self._identifier(what, reserved=reserved), NAME_LENGTH)

    def subscriber(self, what: str) -> str:
        """Read the name of a subscriber, bare or quoted."""
        return _checked(self._identifier(what), LONGEST_NAME)

    def subscriber_string(self, what: str) -> str:
        """Read the name of a subscriber, as a string."""
        return _checked(self.string(what), LONGEST_NAME)

    def _identifier(self, what: str, *, reserved: bool = True) -> str:
        if self.type() is TokenType.IDENTIFIER:
            name = self._tokens[self.index].text
        else:
            name = "" if reserved and self.word() in _RESERVED or not self.word() else self.source()
        if not name:
            raise self.unexpected(what, hint=self._quoted_name())
        self.index += 1
        return name

    def _quoted_name(self) -> str | None:
        """Return a hint if the next word or string would be a name in double quotes; None for any other token."""
        if self.type() is TokenType.STRING:
            return f'A name is written without quotes, or in double quotes: "{clipped(self._tokens[self.index].text)}".'
        if self.word() in _RESERVED and self.word(1) in ("", "AS", "STRING"):
            return f'As a name, this word must be in double quotes: "{self.source()}".'
        return None

    def stream_name(self) -> str:
        """Read the name of a stream. A bare name may consist of several tokens without blanks between them."""
        if self.type() is TokenType.IDENTIFIER:
            name = self._tokens[self.index].text
            width = 1
        else:
            width = 0
            while self._continues(width):
                width += 1
            name = self.slice(self.index, self.index + width)
        if not _STREAM_NAME.fullmatch(name):
            raise self.unexpected('the name of a stream, of letters, digits, "_", "." and "-"')
        self.index += width
        return _checked(name, NAME_LENGTH)

    def _continues(self, width: int) -> bool:
        if not _STREAM_NAME.fullmatch(self.source(width)):
            return False
        place = self.index + width
        return width == 0 or self._tokens[place].start == self._tokens[place - 1].end + 1

    def end(self) -> None:
        """Step over the optional semicolon and make sure that nothing follows."""
        self.accept_symbol(TokenType.SEMICOLON)
        if self.index < len(self._tokens):
            raise self.unexpected("the end of the statement")

    def unexpected(self, wanted: str, *, hint: str | None = None) -> InputError:
        """Return the ``syntax-error`` of an unexpected token."""
        source = self.source()
        start = self._tokens[self.index].start if source else len(self._text)
        before = self._text[1:start]
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        return InputError(
            f'"{clipped(source)}" is not expected here' if source else "the statement ends too early",
            code="syntax-error",
            detail=f"Line {line}, column {column}: there should be {wanted}.",
            hint=hint,
        )


def _checked(name: str, longest: int) -> str:
    """Return a name that is neither empty nor longer than `longest` characters, and has no control character."""
    if not name:
        raise InputError("a name is empty", code="syntax-error", detail="A name has at least one character.")
    if len(name) > longest:
        raise InputError(
            f'name "{clipped(name)}" is too long',
            code="syntax-error",
            detail=f"The name has {len(name)} characters; at most {longest} are possible.",
        )
    if control := _CONTROL.search(name):
        raise InputError(
            f'name "{clipped(name)}" has a control character',
            code="syntax-error",
            detail=f"Character {control.start() + 1} is U+{ord(control[0]):04X}.",
        )
    return name


def clipped(source: str) -> str:
    """Return a text for quotation in a message, without control characters, and truncated if long.

    Example:
        >>> clipped("symbol"), clipped("a" * 100)[-3:], clipped("a" + chr(0))
        ('symbol', 'aa…', 'a�')
    """
    shown = source if len(source) <= _SHOWN else f"{source[: _SHOWN - 1]}…"
    return _CONTROL.sub(_SHOWN_FOR_CONTROL, shown)
