"""LIKE patterns: their pieces, and the common prefix of all their matches."""

from __future__ import annotations

import re

from grouping.model.errors import InputError

__all__ = ["check_escapes", "is_too_large", "like_part", "like_parts", "like_prefix"]

_WILDCARDS = re.compile("[%_]")
_SHOWN = 60
_MOST_BYTES = 100_000
_MOST_WILDCARDS = 5_000
"""The largest number of wildcards of a pattern. A compiled pattern with so many wildcards is still far below 10 MB, the
limit of Rust's engine.
"""


def like_parts(pattern: str, escape: str = "\\") -> list[str] | None:
    """Return a pattern's parts: ``%`` (once for several in a row), ``_``, or ``=`` and a plain character.

    The result is None if an escape character comes before a plain character, or is the last character of the pattern.
    Spark refuses these patterns.

    Example:
        >>> like_parts("a%%_")
        ['=a', '%', '_']
    """
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None or escaped not in ("_", "%", escape):
                return None
            parts.append("=" + escaped)
        elif character not in "%_":
            parts.append("=" + character)
        elif character == "_" or parts[-1:] != ["%"]:
            parts.append(character)
    return parts


def check_escapes(pattern: str, escape: str = "\\") -> None:
    """Check that each escape character of a pattern comes before a wildcard or before itself.

    Raises:
        InputError: ``type-mismatch``.
    """
    if escape in pattern and like_parts(pattern, escape) is None:
        raise InputError(
            f'"{pattern[:_SHOWN]}" is not a pattern of LIKE',
            code="type-mismatch",
            detail=f'The escape character "{escape}" is at the end, or is not followed by %, _ or itself.',
            hint="Write the escape character twice for the character itself.",
        )


def is_too_large(pattern: str) -> bool:
    """Return whether a pattern is too large to be a regular expression."""
    return len(pattern.encode()) > _MOST_BYTES or pattern.count("_") + pattern.count("%") > _MOST_WILDCARDS


def like_prefix(pattern: str) -> tuple[str, bool] | None:
    """Return the prefix of all matching texts, and whether all texts with this prefix match; None if no text matches.

    Example:
        >>> like_prefix("AB%"), like_prefix("A_%"), like_prefix("%B")
        (('AB', True), ('A', False), ('', False))
    """
    parts = like_parts(pattern)
    if parts is None:
        return None
    length = next((i for i, part in enumerate(parts) if part in ("%", "_")), len(parts))
    return "".join(part[1:] for part in parts[:length]), parts[length:] == ["%"]


def like_part(pattern: str) -> str | None:
    r"""Return the longest plain text that every match of a pattern contains; None if no text matches.

    Example:
        >>> like_part("%ab_cde%"), like_part(r"%\_%"), like_part("%")
        ('cde', '_', '')
    """
    if "\\" not in pattern:
        return max(_WILDCARDS.split(pattern), key=len)
    parts = like_parts(pattern)
    if parts is None:
        return None
    marked = "".join(part[1:] if part[0] == "=" else "\0" for part in parts)
    return max(marked.split("\0"), key=len)
