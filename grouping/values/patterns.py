r"""Regular expressions with the same meaning in Java (Spark's engine) and in Rust (Polars' engine).

A pattern is read as Java reads it and written anew for Rust: ``\d \w \s`` are ASCII, ``.`` stops at Java's line ends,
``$`` holds before a last line end, ``\b`` stands between letters, digits and ``_`` of ASCII and all else, as in Java 19
and later. Constructs on which the two engines cannot be made to agree are refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from grouping.model.errors import InputError

__all__ = ["LAST_LINE_END", "Groups", "Presence", "occurrences", "rust_groups", "rust_pattern"]

_LARGEST = 5000
"""Elements of a pattern with its counted repetitions written out: a size that Rust compiles without a thought."""
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_END = rf"(?:\r\n|[{_LINE_ENDS}])?\z"
_END_GROUP = rf"(\r\n|[{_LINE_ENDS}])?\z"
LAST_LINE_END = rf"(?:\r\n|[{_LINE_ENDS}])\z"
"""The end of a text before which ``$`` matches, for Rust's engine."""
_BORDER = r"(?-u:\b)"
_CLASSES = {
    "d": "0-9",
    "w": "0-9A-Z_a-z",
    "s": r"\t\n\x{B}\f\r ",
    "D": r"\x{0}-/:-\x{10FFFF}",
    "W": r"\x{0}-/:-@\[-\^`\{-\x{10FFFF}",
    "S": r"\x{0}-\x{8}\x{E}-\x{1F}!-\x{10FFFF}",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAME = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_COUNT = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}", re.ASCII)
_MOST = 60
"""Characters of a pattern that a message repeats."""


class Presence(NamedTuple):
    """A pattern used only for its presence."""

    text: str
    """For Rust's engine."""
    twice: bool
    """Whether the text is searched again without its last line end: Java finds no end between the two characters of a
    line end, and Rust cannot look back into the match."""
    size: int
    """Its elements, counted repetitions written out: at worst each costs a step at each byte of a text."""


@lru_cache(maxsize=4096)
def rust_pattern(pattern: str) -> Presence:
    r"""Return a Java pattern for Rust's engine.

    Raises:
        InputError: ``unsupported-query``, where it might mean something else there.

    Example:
        >>> print(rust_pattern("^A[^b]{2}").text)
        \A\x{41}[^\x{62}]{2}
    """
    return _PatternText(pattern).read_presence()


class Groups(NamedTuple):
    """A pattern used for more than its presence."""

    text: str
    """For Rust's engine: its group 1 is the match, group n + 1 the pattern's group n; the last group, if the pattern
    ends in ``$``, is the line end behind the match."""
    number: int
    """Number of capturing groups in the pattern."""
    ends: bool
    """Whether it ends in ``$``."""
    empty: bool
    """Whether it may match the empty text."""
    size: int
    """As of `Presence`."""


@lru_cache(maxsize=4096)
def rust_groups(pattern: str) -> Groups:
    r"""Return a Java pattern for Rust's engine, with its groups, for a search of its first occurrence.

    Raises:
        InputError: ``unsupported-query``, where its occurrence or its groups might be others there.

    Example:
        >>> print(rust_groups("A(b)").text)
        (\x{41}(\x{62}))
    """
    return _PatternText(pattern, captures=True).read_groups()


def occurrences(pattern: str) -> Groups:
    """Return a pattern as `rust_groups` does, for a search of all its occurrences.

    Raises:
        InputError: As there; and for a pattern matching the empty text: engines find it in different places.
    """
    groups = rust_groups(pattern)
    if groups.empty:
        raise InputError(
            f'regular expression "{_shown(pattern)}" matches the empty text',
            code="unsupported-query",
            detail="Engines find the empty text in different places.",
            hint="Ask for one character at least: + instead of *.",
        )
    return groups


class _PatternText:
    def __init__(self, pattern: str, *, captures: bool = False) -> None:
        self._captures = captures
        self._groups = 0
        self._names: set[str] = set()
        self._folded = pattern.startswith("(?i)")
        self._text = pattern
        self._at = 4 if self._folded else 0
        self._ends = False
        self._takes_return = False
        self._takes_line_end = False
        self._empty = True
        self._size = 0

    def read_presence(self) -> Presence:
        """Return the pattern without its groups."""
        written = self.read()
        if self._ends and self._takes_return:
            return Presence(written.removesuffix(_END) + r"\z", True, self._size)
        return Presence(written, False, self._size)

    def read_groups(self) -> Groups:
        """Return the pattern with its groups."""
        written = self.read()
        if self._ends:
            if self._takes_line_end:
                raise self._refused('"$" beside what may be a line end')
            written = f"({written.removesuffix(_END)}){_END_GROUP}"
        else:
            written = f"({written})"
        return Groups(written, self._groups, self._ends, self._empty, self._size)

    def read(self) -> str:
        written, size = self._alternatives()
        if self._at < len(self._text):
            raise self._refused("a parenthesis that closes nothing")
        if size > _LARGEST:
            raise self._refused("repetitions that make it too large")
        self._size = size
        return written

    def _alternatives(self) -> tuple[str, int]:
        branches, size, empty = [], 0, False
        while True:
            written, more = self._sequence()
            branches.append(written)
            size += more
            empty |= self._empty
            if self._peek() != "|":
                self._empty = empty
                if self._captures and self._ends and len(branches) > 1:
                    raise self._refused('"$" in one of several branches')
                return "|".join(branches), size + 1
            self._at += 1

    def _sequence(self) -> tuple[str, int]:
        parts, size, empty = [], 0, True
        while (character := self._peek()) not in ("", "|", ")"):
            if character == "^" or self._text.startswith("\\b", self._at):
                self._at += len("^" if character == "^" else "\\b")
                parts.append(r"\A" if character == "^" else _BORDER)
                self._no_count()
                continue
            if character == "$":
                self._at += 1
                if self._at < len(self._text):
                    raise self._refused('"$" before its end')
                self._ends = True
                parts.append(_END)
                continue
            self._empty = False
            written, weight = self._element(character)
            count, times = self._repetition()
            if self._captures and self._empty and count:
                raise self._refused("a repetition of what may be empty")
            empty &= self._empty or count[:1] in ("*", "?") or count.startswith("{0")
            parts.append(written + count)
            size += weight * times
            if size > _LARGEST:
                raise self._refused("repetitions that make it too large")
        self._empty = empty
        return "".join(parts), size

    def _element(self, character: str) -> tuple[str, int]:
        self._at += 1
        if character == "(":
            return self._group()
        if character == "[":
            return self._set(), 1
        if character == ".":
            return f"[^{_LINE_ENDS}]", 1
        if character in "*+?{":
            raise self._refused(f'"{character}" with nothing before it')
        if character == "\\":
            kind, literal = self._escape()
            if kind:
                self._take_class(kind)
                return f"[{_CLASSES[kind]}]", 1
            character = literal
        self._take_range(character, character)
        both = self._cases(character)
        return (both if len(character) == len(set(character)) and both.count("\\x") == 1 else f"[{both}]"), 1

    def _group(self) -> tuple[str, int]:
        plain = self._peek() == "?"
        if plain and (named := _NAME.match(self._text, self._at)):
            if named[1] in self._names:
                raise self._refused("a second group of the same name")
            self._names.add(named[1])
            self._at = named.end()
            plain = False  # to Spark it is the group of its number
        elif plain:
            if not self._text.startswith("?:", self._at):
                raise self._refused('a group that begins with "(?"')
            self._at += 2
        self._groups += not plain
        written, size = self._alternatives()
        if self._peek() != ")":
            raise self._refused("a parenthesis that is not closed")
        if self._ends:
            raise self._refused('"$" within a group')
        self._at += 1
        return (f"({written})" if self._captures and not plain else f"(?:{written})"), size

    def _set(self) -> str:
        negated = self._peek() == "^"
        self._at += negated
        items: list[str] = []
        first = True
        while True:
            character = self._peek()
            if character == "]" and not first:
                break
            if character in ("", "[", "]") or self._text.startswith("&&", self._at):
                raise self._refused("a set of characters within another, or one that does not end")
            self._at += 1
            items.append(self._item(character, first=first))
            first = False
        self._at += 1
        self._takes_return |= negated
        self._takes_line_end |= negated
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _item(self, character: str, *, first: bool) -> str:
        if character == "-" and not (first or self._peek() == "]"):
            raise self._refused('"-" in the middle of a set')
        if character == "\\":
            kind, character = self._escape()
            if kind:
                self._take_class(kind)
                return _CLASSES[kind]
        last = character
        if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("", "]"):
            self._at += 1
            last = self._peek()
            self._at += 1
            if last == "\\":
                kind, last = self._escape()
                if kind:
                    raise self._refused("a range that ends in a class")
            if last in "[]-&" or last < character:
                raise self._refused("a range that ends before it begins")
        self._take_range(character, last)
        return self._cases(character, last)

    def _take_class(self, kind: str) -> None:
        self._takes_return |= kind in "sDW"
        self._takes_line_end |= kind in "sDWS"

    def _take_range(self, first: str, last: str) -> None:
        self._takes_return |= first <= "\r" <= last
        self._takes_line_end |= any(first <= end <= last for end in "\n\r\x85\u2028\u2029")

    def _escape(self) -> tuple[str, str]:
        """Return a class's letter, or the character that is meant."""
        character = self._peek()
        self._at += 1
        if character in _CLASSES and character:
            return character, ""
        if character in _CONTROLS and character:
            return "", _CONTROLS[character]
        if not character or character.isalnum() or not character.isascii() or character.isspace():
            raise self._refused(f'"\\{character}"')
        return "", character

    def _cases(self, first: str, last: str = "") -> str:
        """Return a character or a range for a set, with the other case of its ASCII letters under ``(?i)``."""
        last = last or first
        written = _code(first) + (f"-{_code(last)}" if last != first else "")
        if self._folded:
            for code in (*range(65, 91), *range(97, 123)):
                if first <= chr(code) <= last and not first <= chr(code ^ 32) <= last:
                    written += _code(chr(code ^ 32))
        return written

    def _repetition(self) -> tuple[str, int]:
        character = self._peek()
        times = 1
        if character and character in "*+?":
            self._at += 1
            count = character
        elif character == "{":
            match = _COUNT.match(self._text, self._at)
            if not match or (match[3] and int(match[3]) < int(match[1])):
                raise self._refused('"{" that is no count of up to 999')
            self._at = match.end()
            count, times = match[0], max(int(match[3] or 0), int(match[1]) + bool(match[2]), 1)
        else:
            return "", 1
        if self._peek() == "?":
            self._at += 1
            count += "?" if self._captures else ""  # it makes no difference to whether there is a match
        self._no_count()
        return count, times

    def _no_count(self) -> None:
        if self._peek() and self._peek() in "*+?{":
            raise self._refused("a repetition of a repetition or of a place")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _refused(self, what: str) -> InputError:
        return InputError(
            f'regular expression "{_shown(self._text)}" is not supported',
            code="unsupported-query",
            detail=f"After {self._at} characters there is {what}: engines read it differently.",
            hint="Characters, sets, groups, |, ^, a last $, * + ? {n,m}, \\d \\w \\s \\b and a first (?i) work.",
        )


def _shown(pattern: str) -> str:
    return pattern if len(pattern) <= _MOST else f"{pattern[:_MOST]}…"


def _code(character: str) -> str:
    return f"\\x{{{ord(character):X}}}"
