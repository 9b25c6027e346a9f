"""A command's text, cut at what differs between thousands of its kind: the CQ's name and the literals.

The pieces between are a template. Texts of one template are compiled by reading their literals (prepared.py), and kept
as literals beside a template that is stored once.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

import msgspec

__all__ = ["LITERAL", "CqText", "TextTemplate"]

_HEAD = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?CQ\s+"
    r'("?)((?<=")[a-z0-9_][a-z0-9_ .:/-]{0,200}|[a-z_][a-z0-9_]{0,200})\1\s+(?=SELECT\b|AS\b)',
    re.I | re.A,
)
"""A plain name, or a quoted one of harmless characters: the SDK quotes all names."""
LITERAL = re.compile(r"('[^']*(?:''[^']*)*'|(?<![\w.])(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))")
"""A string or a number without its sign."""
_NO_NAMES = frozenset(("AS", "FROM", "SELECT", "WHERE", "WITH"))
_LONGEST = 4096
"""Characters of a text that is cut at most."""


class TextTemplate(msgspec.Struct, frozen=True):
    """What texts of one kind have in common."""

    template_id: str
    pieces: tuple[str, ...]


class CqText(msgspec.Struct, frozen=True, array_like=True):
    """The text of a CREATE CQ: piece, literal, piece, …, piece.

    Example:
        >>> text = CqText.cut("CREATE CQ a AS SELECT b FROM s WHERE c > 5")
        >>> text.literals, str(text)
        (('a', '5'), 'CREATE CQ a AS SELECT b FROM s WHERE c > 5')
    """

    pieces: tuple[str, ...]
    literals: tuple[str, ...]
    """One fewer than pieces: first the CQ's name as it is written, then strings with their quotes, and numbers."""

    @classmethod
    def cut(cls, text: str) -> CqText:
        """Cut a text; one that cannot be a template (see `is_template`) is one literal."""
        head = _HEAD.match(text) if len(text) <= _LONGEST else None
        if head is None or head[2].upper() in _NO_NAMES:
            return cls(("", ""), (text,))
        parts = LITERAL.split(text[head.end(2) :])
        return cls((text[: head.start(2)], *parts[::2]), (head[2], *parts[1::2]))

    @property
    def is_template(self) -> bool:
        """Whether the pieces are a CREATE CQ's; what they mean is not known by that."""
        return self.pieces[0] != ""

    @property
    def template(self) -> TextTemplate:
        """The pieces, and the id by which they are stored."""
        return _template(self.pieces)

    def __str__(self) -> str:
        """The text, as it was before it was cut."""
        parts = [""] * (2 * len(self.literals) + 1)
        parts[::2] = self.pieces
        parts[1::2] = self.literals
        return "".join(parts)


@lru_cache(maxsize=10_000)
def _template(pieces: tuple[str, ...]) -> TextTemplate:
    body = msgspec.json.encode(pieces)
    return TextTemplate("t_" + hashlib.blake2b(body, digest_size=8).hexdigest(), pieces)
