"""Refusals of regular expressions, each with the nearest form that can be searched in linear time."""

from __future__ import annotations

from grouping.model.errors import InputError
from grouping.model.wording import counted

__all__ = ["nearest_form", "refused_pattern"]

_MOST = 60
"""The largest number of characters of a pattern that a message shows."""
_HINT = (
    "Characters, sets, groups, |, ^ $ \\A \\z \\b, * + ? {n,m}, \\d \\w \\s \\h \\R \\p{L} \\x41 and the flags "
    "(?i) (?s) (?m) work."
)
_NEAREST = {
    "?>": "Write (?:…): nearly always, the same texts match.",
    "?P": "Write (?<name>…).",
    "B": r"Write the neighbouring character too, as in \wing instead of \Bing.",
    "G": "Leave \\G out.",
    "X": "Write . or a set of characters.",
    "N": r"Write the character itself, or its code as in \x{1F600}.",
    "k": "A search in linear time has no back-references: write the alternatives out, as in (aa|bb).",
    "(?x)": "Leave (?x) out, and the blanks and comments too.",
    "(?d)": "Leave (?d) out, and write [^\\n] for a dot.",
    "(?u)": "Leave (?u) out, and write both cases of a letter that is not ASCII: [éÉ].",
    "(?U)": r"Leave (?U) out, and write \p{L} for a letter, \p{Nd} for a digit.",
}
"""Hints by construct."""


def refused_pattern(pattern: str, at: int, what: str, hint: str = _HINT) -> InputError:
    """Return the refusal of a pattern because of the construct `what` after its first `at` characters."""
    shown = pattern if len(pattern) <= _MOST else f"{pattern[:_MOST]}…"
    return InputError(
        f'regular expression "{shown}" is not supported',
        code="unsupported-query",
        detail=f"After {counted(at, 'character')} there is {what}.",
        hint=hint,
    )


def nearest_form(construct: str) -> tuple[str, ...]:
    """Return the hint for a construct; empty if the general hint applies."""
    return (_NEAREST[construct],) if construct in _NEAREST else ()
