"""Numbers and lists in sentences for people: noun and verb agree with how many there are."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["are", "counted", "listed"]


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless there is one.

    Example:
        >>> counted(1, "CQ"), counted(0, "group"), counted(1_000, "match")
        ('1 CQ', '0 groups', '1000 matches')
    """
    return f"{count} {_plural(noun, count)}"


def are(count: int) -> str:
    """Return the verb for so many: `There are 2`, `There is 1`.

    Example:
        >>> are(1), are(2)
        ('is', 'are')
    """
    return "is" if count == 1 else "are"


def listed(names: Sequence[str], noun: str) -> str:
    """Return names after their noun, to go on after `There are`.

    Example:
        >>> listed(["quotes"], "stream"), listed(["quotes", "trades"], "stream")
        ('the stream quotes', 'the streams quotes, trades')
    """
    return f"the {_plural(noun, len(names))} {', '.join(names)}"


def _plural(noun: str, count: int) -> str:
    if count == 1:
        return noun
    return noun + ("es" if noun.endswith(("ch", "s", "x")) else "s")
