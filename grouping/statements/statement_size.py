"""The size of a statement's text, which is bounded before it is read: reading takes time in proportion to it."""

from __future__ import annotations

import re
from functools import lru_cache

from grouping.model.errors import InputError

__all__ = ["check_bytes", "check_words", "words"]

_PARTS = re.compile(
    r"(--[^\n]*|/\*.*?(?:\*/|\Z))"  # comments
    r"|('[^']*(?:''[^']*)*'|[0-9][\w.]*|,)"  # constants, and what stands between them
    r'|("[^"]*"|`[^`]*`|\w+|[^\s\w])',  # names, keywords and signs
    re.DOTALL,
)
_LIGHT = 24
"""Constants and commas that count as one word: with an IN list, of whatever length, a text is within its bytes."""
_WEIGHTS = (0, 0, 1, _LIGHT)
"""By the kind of a part: how much it counts."""


def check_bytes(text: str, limit: int) -> None:
    """Check that a command's text is not too long.

    Raises:
        InputError: ``command-too-large``.
    """
    if len(text) * 4 > limit and (size := len(text.encode("utf-8", "surrogatepass"))) > limit:
        raise InputError(
            "the command is too large",
            code="command-too-large",
            detail=f"Its text has {size} bytes, and the limit is {limit}.",
        )


def check_words(text: str, limit: int) -> None:
    """Check that a statement has not too many words and signs; 24 constants or commas count as one of them.

    Raises:
        InputError: ``quota-exceeded``.
    """
    if len(text) > limit and words(text, limit) > limit:
        raise InputError(
            "the statement is too large",
            code="quota-exceeded",
            detail=f"It has more than {limit:,} words and signs; {_LIGHT} constants or commas count as one.",
            hint="Write an OR of equalities as IN, or divide the query into several.",
        )


@lru_cache(maxsize=100)
def words(text: str, most: int) -> int:
    """Return how many words and signs a text has, one more than the most at most: no more of it is looked at.

    Example:
        >>> words("SELECT a FROM s WHERE a IN (1, 2, 3)", 100), words("SELECT a FROM s", 2)
        (10, 3)
    """
    weight = 0
    for part in _PARTS.finditer(text):
        weight += _WEIGHTS[part.lastindex or 0]
        if weight > _LIGHT * most:
            break
    return -(-weight // _LIGHT)
