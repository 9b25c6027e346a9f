"""Findings of the doctor: each fault, and whether it can be repaired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from grouping.model.wording import counted

__all__ = ["Finding", "Repair", "shown"]

Repair = Literal["", "refill Redis", "make the topic", "delete the topic", "bring the topics into form"]
"""How the doctor repairs a finding; empty if it cannot."""

_SHOWN = 3
"""Most names that a finding shows."""


class Finding(NamedTuple):
    """A fault that the doctor found."""

    code: str
    """The kind of fault; docs/operating.md has a row for it."""
    subject: str
    """The faulty thing: a topic, a stream, a role; empty for Redis as a whole."""
    detail: str
    """A sentence with the figures."""
    hint: str
    """The operator's remedy."""
    repair: Repair = ""
    names: frozenset[str] = frozenset()
    """The names concerned, if the fault is about several: a name missing from the second look is not at fault."""

    def confirms(self, earlier: Finding) -> bool:
        """Tell whether an earlier look found the same fault, with at least one common name if it is about several.

        Example:
            >>> first = Finding("cq-missing", "", "", "", names=frozenset(["alice.a", "alice.b"]))
            >>> [first._replace(names=frozenset(names)).confirms(first) for names in (["alice.b"], ["alice.c"])]
            [True, False]
        """
        same = (self.code, self.subject) == (earlier.code, earlier.subject)
        return same and (self.names == earlier.names or not self.names.isdisjoint(earlier.names))

    @property
    def fields(self) -> dict[str, str]:
        """The fields that ``cq doctor --json`` prints."""
        return {name: str(getattr(self, name)) for name in self._fields if name != "names"}


def shown(names: Iterable[str], noun: str) -> str:
    """Return how many things there are, with the names of some.

    Example:
        >>> shown(["b", "a"], "CQ"), shown(["a", "b", "c", "d"], "row")
        ('2 CQs (a, b)', '4 rows (a, b, c, …)')
    """
    ordered = sorted(names)
    more = ", …" if len(ordered) > _SHOWN else ""
    return f"{counted(len(ordered), noun)} ({', '.join(ordered[:_SHOWN])}{more})"
