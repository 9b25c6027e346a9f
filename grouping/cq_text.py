"""A command's text, cut at what differs between thousands of its kind: the CQ's name and the literals.

The pieces between are a template. Texts of one template are compiled by reading their literals (prepared.py), and kept
as literals beside a template that is stored once.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

import msgspec

__all__ = ["LITERAL", "WHOLE", "CqText", "TextTemplate"]

_HEAD = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?CQ\s+"
    r'("?)((?<=")[a-z0-9_][a-z0-9_ .:/-]{0,200}|[a-z_][a-z0-9_]{0,200})\1\s+(?=SELECT\b|AS\b)',
    re.I | re.A,
)
"""A plain name, or a quoted one of harmless characters: the SDK quotes all names."""
_REST = r"(?:[eE][+-]?[0-9]+)?(?![\w.])"
LITERAL = re.compile(
    r"('[^']*(?:''[^']*)*'"
    rf"|[0-9](?<![\w.][0-9])[0-9]*(?:\.[0-9]*)?{_REST}"
    rf"|\.[0-9](?<![\w.]\.[0-9])[0-9]*{_REST})"
)
"""A string, or a number without its sign. What may not stand before is looked at behind the first character: an
expression that begins with a set of characters is searched for twice as fast."""
_NO_NAMES = frozenset(("AS", "FROM", "SELECT", "WHERE", "WITH"))
_LONGEST = 4096
"""Characters of a text that is cut at most."""


class TextTemplate(msgspec.Struct, frozen=True):
    """What texts of one kind have in common."""

    template_id: str
    """Empty for that of texts that are not cut."""
    pieces: tuple[str, ...]


WHOLE = TextTemplate("", ("", ""))
"""Of a text that is one literal."""


class CqText(msgspec.Struct, frozen=True, array_like=True):
    """The text of a CREATE CQ: piece, literal, piece, …, piece.

    Example:
        >>> text = CqText.cut("CREATE CQ a AS SELECT b FROM s WHERE c > 5")
        >>> text.literals, str(text)
        (('a', '5'), 'CREATE CQ a AS SELECT b FROM s WHERE c > 5')
    """

    template: TextTemplate
    literals: tuple[str, ...]
    """One fewer than pieces: first the CQ's name as it is written, then strings with their quotes, and numbers."""

    @classmethod
    def cut(cls, text: str) -> CqText:
        """Cut a text; one that is not plainly a CREATE CQ is one literal."""
        head = _HEAD.match(text) if len(text) <= _LONGEST else None
        if head is None or head[2].upper() in _NO_NAMES:
            return cls(WHOLE, (text,))
        start, end = head.span(2)
        parts = LITERAL.split(text[end:])
        return cls(_template((text[:start], *parts[::2])), (head[2], *parts[1::2]))

    @property
    def is_cut(self) -> bool:
        """Whether the template is that of a CREATE CQ; what it means is not known by that."""
        return bool(self.template.template_id)

    def __str__(self) -> str:
        """The text, as it was before it was cut."""
        parts = [""] * (2 * len(self.literals) + 1)
        parts[::2] = self.template.pieces
        parts[1::2] = self.literals
        return "".join(parts)


@lru_cache(maxsize=10_000)
def _template(pieces: tuple[str, ...]) -> TextTemplate:
    body = msgspec.json.encode(pieces)
    return TextTemplate("t_" + hashlib.blake2b(body, digest_size=8).hexdigest(), pieces)
