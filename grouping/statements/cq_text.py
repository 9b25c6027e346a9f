"""The text of a CREATE CQ, cut into a template and the parts that differ between CQs: the CQ's name and the literals.

The template consists of the pieces between these parts. For a text with a known template, the compiler only reads the
literals (`grouping/compiler/prepared.py`). The gateway stores a template once, and for each text only the literals.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable
from functools import lru_cache

import msgspec

__all__ = ["LITERAL", "RECENT", "WHOLE", "CqText", "RecentKinds", "TextTemplate"]

_HEAD = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?CQ\s+"
    r'("?)((?<=")[a-z0-9_][a-z0-9_ .:/-]{0,200}|[a-z_][a-z0-9_]{0,200})\1\s+(?=SELECT\b|AS\b)',
    re.I | re.A,
)
"""The beginning of a CREATE CQ. The name is plain, or in quotes (as the SDK writes names) and without special
characters.
"""
_REST = r"(?:[eE][+-]?[0-9]+)?(?![\w.])"
_STRING = r"'[^']*(?:''[^']*)*'"
_NUMBER = rf"[0-9](?<![\w.][0-9])[0-9]*(?:\.[0-9]*)?{_REST}|\.[0-9](?<![\w.]\.[0-9])[0-9]*{_REST}"
LITERAL = re.compile(f"({_STRING}|{_NUMBER})")
"""A string, or a number without its sign. The expression checks the character before a number only after the first
digit, because a search is twice as fast if the expression begins with a set of characters.
"""
_EXPONENT = re.compile(r"(?<![\w.])[0-9.]+[eE][+-]$", re.A)
"""Matches a piece that ends in a number up to its exponent's sign. The next literal would continue this number."""
_NO_NAMES = frozenset(("AS", "FROM", "SELECT", "WHERE", "WITH"))
_LONGEST = 4096
"""The largest length of a text that is cut, in characters."""
_KINDS = 4
"""The largest number of templates that are remembered."""


class TextTemplate(msgspec.Struct, frozen=True):
    """The pieces that similar texts share."""

    template_id: str
    """Empty for the template of uncut texts."""
    pieces: tuple[str, ...]


WHOLE = TextTemplate("", ("", ""))
"""The template of an uncut text: the whole text is a single literal."""


class CqText(msgspec.Struct, frozen=True, array_like=True):
    """The text of a CREATE CQ: piece, literal, piece, …, piece.

    Example:
        >>> text = CqText.cut("CREATE CQ a AS SELECT b FROM s WHERE c > 5")
        >>> text.literals, str(text)
        (('a', '5'), 'CREATE CQ a AS SELECT b FROM s WHERE c > 5')
    """

    template: TextTemplate
    literals: tuple[str, ...]
    """The CQ's name as written, then strings with their quotes and numbers. There is one literal fewer than pieces."""

    @classmethod
    def cut(cls, text: str) -> CqText:
        """Cut a text; a text that is not clearly a CREATE CQ becomes a single literal."""
        if len(text) > _LONGEST:
            return cls(WHOLE, (text,))
        for known, like in RECENT.kinds:
            if (match := like(text)) is not None and match[1].upper() not in _NO_NAMES:
                return cls(known, match.groups())
        head = _HEAD.match(text)
        if head is None or head[2].upper() in _NO_NAMES:
            return cls(WHOLE, (text,))
        start, end = head.span(2)
        parts = LITERAL.split(text[end:])
        literals = (head[2], *parts[1::2])
        template = _template((text[:start], *parts[::2]))
        RECENT.note(template, literals)
        return cls(template, literals)

    @property
    def is_cut(self) -> bool:
        """Whether the text was cut as a CREATE CQ. The meaning of the text is not checked."""
        return bool(self.template.template_id)

    @property
    def name_end(self) -> int:
        """The position after the CQ's name."""
        return len(self.template.pieces[0]) + len(self.literals[0])

    def __str__(self) -> str:
        """The original text."""
        parts = [""] * (2 * len(self.literals) + 1)
        parts[::2] = self.template.pieces
        parts[1::2] = self.literals
        return "".join(parts)


@lru_cache(maxsize=10_000)
def _template(pieces: tuple[str, ...]) -> TextTemplate:
    body = msgspec.json.encode(pieces)
    return TextTemplate("t_" + hashlib.blake2b(body, digest_size=8).hexdigest(), pieces)


_Like = Callable[[str], re.Match[str] | None]
"""Returns the match of a text with a template; None for a text of another template."""


class RecentKinds:
    """Templates of recent texts, each with a regular expression that cuts further texts of the template."""

    def __init__(self) -> None:
        self.kinds: list[tuple[TextTemplate, _Like]] = []
        self._before: deque[TextTemplate] = deque(maxlen=_KINDS)

    def clear(self) -> None:
        """Forget all templates."""
        self.kinds.clear()
        self._before.clear()

    def note(self, template: TextTemplate, literals: tuple[str, ...]) -> None:
        """Note how a text was cut. A regular expression takes long to make, so a template's second text makes it."""
        if template not in self._before:
            self._before.append(template)
            return
        like = _like(template, tuple(literal[0] == "'" for literal in literals[1:]))
        if like is not None:
            self.kinds = [(template, like), *self.kinds[: _KINDS - 1]]


@lru_cache(maxsize=100)
def _like(template: TextTemplate, strings: tuple[bool, ...]) -> _Like | None:
    """Return a matcher for texts of a template with strings in the same places; None if the matcher might cut wrongly.

    A cut may be wrong if a piece has a quote, or if a piece may be part of the next literal (``5e+'a'``, ``5e+7``,
    ``5e+7.``).
    """
    before, after, *rest = template.pieces
    if any("'" in piece or _EXPONENT.search(piece) for piece in (after, *rest)):
        return None
    name = "[A-Za-z0-9_][A-Za-z0-9_ .:/-]{0,200}" if before.endswith('"') else "[A-Za-z_][A-Za-z0-9_]{0,200}"
    parts = [re.escape(before), f"({name})", re.escape(after)]
    for string, piece in zip(strings, rest, strict=True):
        parts += (f"({_STRING if string else _NUMBER})", re.escape(piece))
    return re.compile("".join(parts)).fullmatch


RECENT = RecentKinds()
