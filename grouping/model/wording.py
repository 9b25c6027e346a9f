"""Numbers and lists in sentences for people: noun and verb agree with the number."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["alternatives", "are", "counted", "figure", "listed"]


def alternatives(names: Sequence[str]) -> str:
    """Return names with commas and a last "or" between them.

    Example:
        >>> alternatives(["CQ"]), alternatives(["CQ", "STREAM", "VIEW"])
        ('CQ', 'CQ, STREAM or VIEW')
    """
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    Example:
        >>> counted(1, "CQ"), counted(0, "group"), counted(1_000, "match")
        ('1 CQ', '0 groups', '1000 matches')
    """
    return f"{count} {_plural(noun, count)}"


def figure(count: float, noun: str) -> str:
    """Return a figure, which may have a fraction, with its noun.

    Example:
        >>> figure(1.0, "match"), figure(0.5, "match"), figure(50_000, "row")
        ('1 match', '0.5 matches', '50,000 rows')
    """
    return f"{count:,.0f} {_plural(noun, 0)}" if count >= 1_000 else f"{count:g} {_plural(noun, count)}"


def are(count: int) -> str:
    """Return the verb for a count: `There are 2`, `There is 1`.

    Example:
        >>> are(1), are(2)
        ('is', 'are')
    """
    return "is" if count == 1 else "are"


def listed(names: Sequence[str], noun: str) -> str:
    """Return names after their noun, as the end of a sentence that begins with `There are`.

    Example:
        >>> listed(["quotes"], "stream"), listed(["quotes", "trades"], "stream")
        ('the stream quotes', 'the streams quotes, trades')
    """
    return f"the {_plural(noun, len(names))} {', '.join(names)}"


def _plural(noun: str, count: float) -> str:
    if count == 1:
        return noun
    return noun + ("es" if noun.endswith(("ch", "s", "x")) else "s")
