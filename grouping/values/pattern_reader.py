r"""The parser of regular expressions by Java's rules, to a tree.

``\d \w \s`` are ASCII, ``.`` does not match Java's line ends, and ``(?i)`` folds ASCII letters. A construct that Rust's
engine cannot express is refused, with a hint to the nearest form.
"""

from __future__ import annotations

import re

from grouping.model.errors import InputError
from grouping.values.pattern_classes import ANY, CLASSES, DOT, LINE_ENDS, Chars, complement, named_class
from grouping.values.pattern_refusals import nearest_form, refused_pattern
from grouping.values.pattern_tree import (
    Branch,
    LookAround,
    PatternGroup,
    PatternNode,
    PlaceKind,
    Repetition,
    TextPlace,
    branches_size,
    node_size,
)

__all__ = ["read_pattern"]

_LARGEST = 5000
"""The largest number of elements of a pattern, with counted repetitions written out. Rust compiles a pattern of this
size quickly.
"""
_DEEPEST = 150
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_PLACES: dict[str, PlaceKind] = {"b": "border", "A": "start", "z": "very end", "Z": "end"}
_NAME = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_COUNT = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}", re.ASCII)
_CODE = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|0([0-3]?[0-7]{1,2})")
_PROPERTY = re.compile(r"\{([\w=]{1,40})\}|([A-Z])", re.ASCII)
_LOOKS = {"?=": (True, False), "?!": (True, True), "?<=": (False, False), "?<!": (False, True)}


def read_pattern(pattern: str) -> tuple[Branch, ...]:
    """Return the alternatives of a pattern.

    Raises:
        InputError: ``unsupported-query`` with the place, for a construct without the same meaning in both engines, and
            for a pattern that is too large.
    """
    return _Reader(pattern).read()


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._names: set[str] = set()
        self._depth = 0

    def read(self) -> tuple[Branch, ...]:
        branches = self._alternatives()
        if self._at < len(self._text):
            raise self._refused("a parenthesis that closes nothing", r"Write \) for the character.")
        return branches

    def _alternatives(self) -> tuple[Branch, ...]:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        if branches_size(tuple(branches)) > _LARGEST:
            raise self._refused("repetitions that make it too large", "Write smaller counts.")
        return tuple(branches)

    def _sequence(self) -> Branch:
        parts: list[PatternNode] = []
        while self._peek() not in ("", "|", ")"):
            at = self._at
            if (part := self._part()) is None:
                continue
            if isinstance(part, TextPlace | LookAround):
                self._no_count()
                parts.append(part)
            else:
                parts.append(self._repeated(part, at))
        return tuple(parts)

    def _part(self) -> PatternNode | None:
        """Return the next element; None for flags (which take effect from here on) and for an empty quotation."""
        at, character = self._at, self._peek()
        self._at += 1
        match character:
            case "(":
                return self._parenthesis(at)
            case "[":
                return self._set()
            case ".":
                return ANY if "s" in self._flags else DOT
            case "^":
                return TextPlace("line start" if "m" in self._flags else "start", at)
            case "$":
                return TextPlace("line end" if "m" in self._flags else "end", at)
            case "*" | "+" | "?" | "{":
                raise self._refused(f'"{character}" with nothing before it', f"Write \\{character} for the character.")
            case "\\":
                return self._escaped(at)
        return self._range(character, character)

    def _escaped(self, at: int) -> PatternNode | None:
        letter = self._peek()
        if letter and letter in _PLACES:
            self._at += 1
            return TextPlace(_PLACES[letter], at)
        if letter == "R":
            self._at += 1
            pair = (self._range("\r", "\r"), self._range("\n", "\n"))
            return PatternGroup((pair, (CLASSES["v"],)), at=at)
        if letter == "Q":
            return self._quotation(at)
        read = self._escape()
        return read if isinstance(read, Chars) else self._range(read, read)

    def _quotation(self, at: int) -> PatternGroup | None:
        r"""Return the text between ``\Q`` and ``\E``. A repetition after several characters is refused."""
        end = self._text.find("\\E", self._at + 1)
        literal = self._text[self._at + 1 : end if end >= 0 else len(self._text)]
        self._at = end + 2 if end >= 0 else len(self._text)
        if len(literal) > 1:
            self._no_count()
        return PatternGroup((tuple(self._range(each, each) for each in literal),), at=at) if literal else None

    def _parenthesis(self, at: int) -> PatternNode | None:
        flags = self._flags
        look = next((sign for sign in ("?<=", "?<!", "?=", "?!") if self._text.startswith(sign, self._at)), "")
        captures = False
        if look:
            self._at += len(look)
        elif self._peek() != "?":
            captures = True
        elif named := _NAME.match(self._text, self._at):
            if named[1] in self._names:
                raise self._refused("a second group of the same name", "Write another name.")
            self._names.add(named[1])
            self._at, captures = named.end(), True  # Spark refers to a named group by its number
        elif self._flags_end():
            return None
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refused("a group within too many other groups", "Write fewer parentheses.")
        branches = self._alternatives()
        self._depth -= 1
        if self._peek() != ")":
            raise self._refused("a parenthesis that is not closed", r"Write \( for the character.")
        self._at += 1
        self._flags = flags
        return LookAround(branches, *_LOOKS[look], at) if look else PatternGroup(branches, captures, at)

    def _flags_end(self) -> bool:
        """Read flags; return whether they are in effect from here on, and not only for a group that begins here."""
        found = _FLAGS.match(self._text, self._at)
        if found is None:
            sign = self._text[self._at : self._at + 2]
            raise self._refused('a group that begins with "(?"', *nearest_form(sign))
        for flag in found[1] + (found[2] or ""):
            if flag not in "ism":
                raise self._refused(f'the flag "{flag}"', *nearest_form(f"(?{flag})"))
        if found[2] is None and not found[1] and found[3] == ")":
            raise self._refused('a group that begins with "(?"')
        self._at = found.end()
        self._flags = (self._flags | {*found[1]}) - {*(found[2] or "")}
        return found[3] == ")"

    def _set(self) -> Chars:
        negated = self._peek() == "^"
        self._at += negated
        items: list[str] = []
        ends: frozenset[str] = frozenset()
        weight, first = 1, True
        while (character := self._peek()) != "]" or first:
            if character == "":
                raise self._refused("a set that does not end", r"Write \[ for the character.")
            if self._text.startswith("[:", self._at):
                raise self._refused("a POSIX class in brackets", r"Write \p{Alpha}, \p{Digit} or \p{Punct}.")
            if self._text.startswith("&&", self._at):
                return self._intersection(items, ends, weight, negated=negated)
            if character == "]" or (character == "[" and negated):
                raise self._refused("a bracket in a set", r"Write \[ and \] for the characters.")
            self._at += 1
            part = self._set() if character == "[" else self._item(character)
            items.append(part.text)
            ends |= part.ends
            weight, first = max(weight, part.weight), False
        self._at += 1
        if negated:
            return Chars(f"[^{''.join(items)}]", frozenset(LINE_ENDS) - ends, weight=weight)
        return Chars(f"[{''.join(items)}]", ends, weight=weight)

    def _intersection(self, items: list[str], ends: frozenset[str], weight: int, *, negated: bool) -> Chars:
        """Return the characters that are in two sets, as in ``[a-z&&[^aeiou]]``; the first set is read already."""
        self._at += 2
        if negated or not items or self._peek() != "[":
            raise self._refused('"&&" in a set', "Write [a-z&&[^aeiou]], with a set on both sides.")
        self._at += 1
        other = self._set()
        if self._peek() != "]":
            raise self._refused('"&&" in a set', "Write [a-z&&[^aeiou]], with one set after &&.")
        self._at += 1
        return Chars(f"[{''.join(items)}&&{other.text}]", ends & other.ends, weight=max(weight, other.weight))

    def _item(self, character: str) -> Chars:
        """Return a class, a character or a range within a set."""
        if character == "\\":
            read = self._escape()
            if isinstance(read, Chars):
                return read
            character = read
        last = character
        if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("", "]"):
            self._at += 1
            last = self._peek()
            self._at += 1
            if last == "[":
                raise self._refused("a range that ends in a set", r"Write \- for the character.")
            if last == "\\":
                read = self._escape()
                if isinstance(read, Chars):
                    raise self._refused("a range that ends in a class", r"Write \- for the character.")
                last = read
            if last < character:
                raise self._refused("a range that ends before it begins", r"Write \- for the character.")
        return self._range(character, last)

    def _escape(self) -> str | Chars:
        """Return the character or class of an escape; the backslash is read already."""
        letter = self._peek()
        if letter in ("p", "P"):
            return self._property()
        if coded := _CODE.match(self._text, self._at):
            return self._coded(coded)
        self._at += 1
        if letter and letter in CLASSES:
            return CLASSES[letter]
        if letter and letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isdigit() and letter != "0":
            raise self._refused(f'"\\{letter}"', *nearest_form("k"))
        if not letter or letter.isalnum() or not letter.isascii() or letter.isspace():
            raise self._refused(f'"\\{letter}"', *nearest_form(letter))
        return letter

    def _coded(self, coded: re.Match[str]) -> str:
        self._at = coded.end()
        code = int(coded[4], 8) if coded[4] else int(coded[1] or coded[2] or coded[3], 16)
        if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            raise self._refused("a code that is not a character", r"Write a code such as \x{1F600}.")
        return chr(code)

    def _property(self) -> Chars:
        negated = self._peek() == "P"
        found = _PROPERTY.match(self._text, self._at + 1)
        name = (found[1] or found[2]) if found else ""
        chars = named_class(name, folded="i" in self._flags)
        if chars is None or found is None:
            block = name.startswith("In")
            raise self._refused(
                f'the property "{name}"',
                rf"Write \p{{Is{name[2:]}}}, which is a script, or a range such as [\x{{400}}-\x{{4FF}}]."
                if block
                else r"Write a general category such as \p{L} or \p{Lu}, a script such as \p{IsLatin}, or \p{Alpha}.",
            )
        self._at = found.end()
        return complement(chars) if negated else chars

    def _range(self, first: str, last: str) -> Chars:
        """Return a character or a range, with the other case of its ASCII letters under ``(?i)``."""
        written = _code(first) + (f"-{_code(last)}" if last != first else "")
        members = first if first == last else ""
        if "i" in self._flags:
            for code in (*range(65, 91), *range(97, 123)):
                if first <= chr(code) <= last and not first <= chr(code ^ 32) <= last:
                    written += _code(chr(code ^ 32))
                    members += chr(code ^ 32) if members else ""
        ends = frozenset(end for end in LINE_ENDS if first <= end <= last)
        return Chars(written if len(members) == 1 else f"[{written}]", ends, members)

    def _repeated(self, part: Chars | Repetition | PatternGroup, at: int) -> PatternNode:
        character = self._peek()
        times = 1
        if character and character in "*+?":
            self._at += 1
            count = character
        elif character == "{":
            match = _COUNT.match(self._text, self._at)
            if not match or (match[3] and int(match[3]) < int(match[1])):
                raise self._refused('"{" that is not a count of up to 999', r"Write \{ for the character.")
            self._at = match.end()
            count, times = match[0], max(int(match[3] or 0), int(match[1]) + bool(match[2]), 1)
        else:
            return part
        lazy = self._peek() == "?"
        self._at += lazy
        self._no_count()
        repeated = Repetition(part, count, lazy, times, at)
        if node_size(repeated) > _LARGEST:
            raise self._refused("repetitions that make it too large", "Write smaller counts.")
        return repeated

    def _no_count(self) -> None:
        if self._peek() == "+":
            raise self._refused(
                "a possessive repetition, or a repetition of an anchor",
                "Leave the second + out: nearly always, the same texts match.",
            )
        if self._peek() and self._peek() in "*?{":
            raise self._refused("a repetition of a repetition or of an anchor", "Write one repetition, around (?:…).")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _refused(self, what: str, *hint: str) -> InputError:
        return refused_pattern(self._text, self._at, what, *hint)


def _code(character: str) -> str:
    return f"\\x{{{ord(character):X}}}"
