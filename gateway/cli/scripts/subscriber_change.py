"""`SET SUBSCRIBER name` in a script: names the subscriber for whom `cq sql` sends the statements after it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gateway.sdk.statements import quoted, text_literal
from grouping.model.errors import InputError

__all__ = ["begins_change", "by_subscriber", "section"]

_GAP = r"(?:[\s\ufeff]|--[^\n]*+|(?>/\*.*?\*/)|(?>\{\#.*?\#\}))"
_BEGIN = rf"{_GAP}*+SET{_GAP}++SUBSCRIBER\b"
_CHANGE = re.compile(
    rf"""{_BEGIN}{_GAP}*+(?:"((?:[^"]|"")++)"|([\w.@:-]++))(?:{_GAP}*+FOR{_GAP}*+'(\w+)')?{_GAP}*+""", re.I | re.S
)
_BEGINS_CHANGE = re.compile(_BEGIN, re.I | re.S)


def section(subscriber: str, statements: Sequence[str]) -> Iterator[str]:
    """Yield a SET SUBSCRIBER with a fingerprint of the subscriber and the statements, and then the statements.

    Example:
        >>> print(*section("alice", ["SHOW CQS"]), sep="; ")
        SET SUBSCRIBER "alice" FOR '6e4c4f47321799d3e835b1bd07a9be5d'; SHOW CQS
    """
    yield f"SET SUBSCRIBER {quoted(subscriber)} FOR {text_literal(_fingerprint(subscriber, statements))}"
    yield from statements


def begins_change(text: str) -> bool:
    """Tell whether `by_subscriber` treats a statement as a SET SUBSCRIBER, even as a malformed one."""
    return _BEGINS_CHANGE.match(text) is not None


def by_subscriber(texts: Iterable[str], first: str | None) -> list[tuple[str | None, list[str]]]:
    """Return the statements of a script in sections, each with the subscriber who sends them.

    Args:
        texts: The statements, with SET SUBSCRIBER between them.
        first: The subscriber of the statements before the first SET SUBSCRIBER; None for the default subscriber.

    Example:
        >>> by_subscriber(["SHOW CQS", "set subscriber bob", "SHOW CQS", "/* his */ DROP CQ a"], None)
        [(None, ['SHOW CQS']), ('bob', ['SHOW CQS', '/* his */ DROP CQ a'])]

    Raises:
        InputError: A SET SUBSCRIBER cannot be read, or a section differs from the exported section.
    """
    sections: list[tuple[str | None, list[str]]] = [(first, [])]
    fingerprints: list[str | None] = [None]
    for text in texts:
        if not begins_change(text):
            sections[-1][1].append(text)
            continue
        change = _CHANGE.fullmatch(text)
        if change is None:
            raise InputError(
                "a SET SUBSCRIBER of the script cannot be read, so no statement is sent",
                code="syntax-error",
                hint='Write SET SUBSCRIBER "alice"; before the statements that alice sends.',
            )
        sections.append((change[2] or change[1].replace('""', '"'), []))
        fingerprints.append(change[3])
    for (subscriber, own), expected in zip(sections, fingerprints, strict=True):
        if expected is not None and expected != _fingerprint(str(subscriber), own):
            raise InputError(
                f'the statements of "{subscriber}" differ from the exported statements, so no statement is sent',
                code="syntax-error",
                hint="Export again, and move the file as bytes: programs that convert line ends change statements. "
                "To send an edited script, delete FOR '…' after each SET SUBSCRIBER.",
            )
    return [each for each in sections if each[1]]


def _fingerprint(subscriber: str, statements: Sequence[str]) -> str:
    return hashlib.sha256(msgspec.json.encode([subscriber, *statements])).hexdigest()[:32]
