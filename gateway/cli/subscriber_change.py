"""`SET SUBSCRIBER name` between the statements of a file: in whose name `cq sql` sends those behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gateway.sdk.statements import quoted

__all__ = ["by_subscriber", "change_to"]

_COMMENTS = r"(?:--[^\n]*(?:\n|$)|/\*.*?\*/|\s)*"
_CHANGE = re.compile(rf'{_COMMENTS}SET\s+SUBSCRIBER\s+(?:"((?:[^"]|"")+)"|([\w.@:-]+)){_COMMENTS}', re.I | re.S)


def change_to(subscriber: str) -> str:
    """Return the line that has the statements behind it sent as a subscriber's.

    Example:
        >>> change_to("alice")
        'SET SUBSCRIBER "alice"'
    """
    return f"SET SUBSCRIBER {quoted(subscriber)}"


def by_subscriber(texts: Iterable[str], first: str | None) -> Iterator[tuple[str | None, list[str]]]:
    """Yield the statements that one subscriber sends in a row, and who that is.

    Args:
        texts: Statements, and changes of the subscriber between them.
        first: Who sends what stands before the first change; None for whoever is meant without a name.

    Example:
        >>> list(by_subscriber(["SHOW CQS", "set subscriber bob", "SHOW CQS", "/* his */ DROP CQ a"], None))
        [(None, ['SHOW CQS']), ('bob', ['SHOW CQS', '/* his */ DROP CQ a'])]
    """
    own: list[str] = []
    for text in texts:
        change = _CHANGE.fullmatch(text)
        if change is None:
            own.append(text)
            continue
        if own:
            yield first, own
        first, own = change[2] or change[1].replace('""', '"'), []
    if own:
        yield first, own
