"""Findings of the doctor: each fault, and whether it can be repaired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from grouping.model.wording import counted

__all__ = ["Finding", "Repair", "shown"]

Repair = Literal["", "refill Redis", "make the topic", "delete the topic", "bring the topics into form"]
"""How a finding is repaired, empty where the doctor cannot."""

_SHOWN = 3
"""Names that a finding shows of many."""


class Finding(NamedTuple):
    """Something that is not as it must be."""

    code: str
    """The kind, of which docs/operating.md has a row."""
    subject: str
    """What is wrong: a topic, a stream, a role; empty for Redis as a whole."""
    detail: str
    """A sentence with the figures."""
    hint: str
    """What an operator does."""
    repair: Repair = ""


def shown(names: Iterable[str], noun: str) -> str:
    """Return how many things there are, with the names of some.

    Example:
        >>> shown(["b", "a"], "CQ"), shown(["a", "b", "c", "d"], "row")
        ('2 CQs (a, b)', '4 rows (a, b, c, …)')
    """
    ordered = sorted(names)
    more = ", …" if len(ordered) > _SHOWN else ""
    return f"{counted(len(ordered), noun)} ({', '.join(ordered[:_SHOWN])}{more})"
