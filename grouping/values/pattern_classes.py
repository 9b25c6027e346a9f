r"""Sets of characters of regular expressions: Java's classes and properties, written for Rust's engine.

POSIX classes have only ASCII characters, as in Java. Unicode properties have the characters of Unicode 13, as in Java
17: ``\p{age:13.0}`` leaves out later characters.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ANY", "CLASSES", "DOT", "LINE_ENDS", "Chars", "complement", "named_class", "union"]

LINE_ENDS = "\n\r\x85\u2028\u2029"
"""The characters that end a line in Java."""
_ALL_ENDS = frozenset(LINE_ENDS)


class Chars(NamedTuple):
    """A set of characters, as an element of a pattern."""

    text: str
    """The text for Rust's engine, alone or within a set."""
    ends: frozenset[str] = frozenset()
    """The characters of the set that end a line in Java."""
    members: str = ""
    """The characters of a set with one or two characters; empty for larger sets."""
    weight: int = 1
    """The number of elements that the set adds to the size of a pattern."""


def complement(chars: Chars) -> Chars:
    """Return all characters that are not in a set."""
    return Chars(f"[^{chars.text}]", _ALL_ENDS - chars.ends, weight=chars.weight)


def union(sets: list[Chars]) -> Chars:
    """Return the characters of several sets."""
    if len(sets) == 1:
        return sets[0]
    ends = frozenset[str]().union(*(each.ends for each in sets))
    return Chars(f"[{''.join(each.text for each in sets)}]", ends, weight=max(each.weight for each in sets))


def _class(content: str, ends: str = "") -> Chars:
    return Chars(f"[{content}]", frozenset(ends))


_BREAKS = r"\n\r\x{85}\x{2028}\x{2029}"
ANY = Chars(r"[\x{0}-\x{10FFFF}]", _ALL_ENDS)
"""Any character."""
DOT = complement(_class(_BREAKS, LINE_ENDS))
"""Any character except a line end."""
_BLANKS = _class(r"\t \x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}")
_SMALL = {
    "d": _class("0-9"),
    "w": _class("0-9A-Z_a-z"),
    "s": _class(r"\t\n\x{B}\f\r ", "\n\r"),
    "h": _BLANKS,
    "v": _class(rf"\x{{B}}\f{_BREAKS}", LINE_ENDS),
}
CLASSES = _SMALL | {letter.upper(): complement(chars) for letter, chars in _SMALL.items()}
"""Letter after a backslash → set."""

_POSIX = {
    "Lower": _class("a-z"),
    "Upper": _class("A-Z"),
    "ASCII": _class(r"\x{0}-\x{7F}", "\n\r"),
    "Alpha": _class("A-Za-z"),
    "Digit": _class("0-9"),
    "Alnum": _class("0-9A-Za-z"),
    "Punct": _class(r"!-/:-@\[-`\{-~"),
    "Graph": _class("!-~"),
    "Print": _class(" -~"),
    "Blank": _class(r" \t"),
    "Cntrl": _class(r"\x{0}-\x{1F}\x{7F}", "\n\r"),
    "XDigit": _class("0-9A-Fa-f"),
    "Space": _class(r"\t\n\x{B}\f\r ", "\n\r"),
}
_CATEGORIES = "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc".split()
_ENDS = {"Z": "\u2028\u2029", "Zl": "\u2028", "Zp": "\u2029", "Cc": "\n\r\x85"}
_SCRIPTS = "Arabic Cyrillic Devanagari Greek Han Hangul Hebrew Hiragana Katakana Latin Thai".split()
_BINARY = {"lowercase": "Lowercase", "uppercase": "Uppercase", "ideographic": "Ideographic"}
_OTHERWISE = {
    "Han": ("--", r"\x{16FE2}\x{16FE3}"),
    "Lowercase": ("--", r"\x{10FC}\x{AB69}"),
    "Mc": ("--", r"\x{1734}\x{1171E}"),
    "Mn": ("", r"\x{1734}\x{1171E}"),
}
"""Property → a set operator, and characters that gained or lost the property in Unicode versions after that of Java 17.
The operator ``--`` removes the characters from the set of the property; "" adds them.
"""
_WITH_CASE = frozenset(("Lower", "Upper", "Lu", "Ll", "Lt", "lowercase", "uppercase"))
"""Properties that Java widens under ``(?i)``."""
_UNICODE_WEIGHT = 40
"""The weight of a Unicode property. The hundreds of ranges of a property take many states of Rust's engine."""


def named_class(name: str, *, folded: bool) -> Chars | None:
    r"""Return the set of ``\p{name}``; None if the name is unknown or the two engines may differ.

    Args:
        name: The name within the braces.
        folded: Whether ``(?i)`` is in effect.
    """
    if folded and (name in _WITH_CASE or name.removeprefix("Is").lower() in _WITH_CASE):
        return None
    if name in _POSIX:
        return _POSIX[name]
    kind, separator, value = name.partition("=")
    if separator:
        kind = kind.lower()
        if kind in ("gc", "general_category"):
            return _category(value)
        return _script(value) if kind in ("sc", "script") else None
    if not name.startswith("Is"):
        return _category(name)
    rest = name[2:]
    if rest.lower() in ("white_space", "whitespace"):
        return _unicode("White_Space", LINE_ENDS)
    if rest.lower() in _BINARY:
        return _unicode(_BINARY[rest.lower()])
    return _category(rest) or _script(rest)


def _category(name: str) -> Chars | None:
    return _unicode(name, _ENDS.get(name, "")) if name in _CATEGORIES else None


def _script(name: str) -> Chars | None:
    return _unicode(name.title()) if name.title() in _SCRIPTS else None


def _unicode(name: str, ends: str = "") -> Chars:
    text = rf"[\p{{{name}}}&&\p{{age:13.0}}]"
    if name in _OTHERWISE:
        sign, characters = _OTHERWISE[name]
        text = f"[{text}{sign}[{characters}]]"
    return Chars(text, frozenset(ends), weight=_UNICODE_WEIGHT)
