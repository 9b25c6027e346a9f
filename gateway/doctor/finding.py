"""A finding of the doctor: a fault, with a hint and the kind of its repair."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from grouping.model.wording import counted

__all__ = ["Finding", "Repair", "shown"]

Repair = Literal["", "refill Redis", "make the topic", "delete the topic", "bring the topics into form"]
"""How the doctor repairs a finding; empty if the doctor cannot repair it."""

_SHOWN = 3
"""The largest number of names that a finding shows."""


class Finding(NamedTuple):
    """A fault that the doctor found."""

    code: str
    """The kind of fault, which docs/operating.md explains."""
    subject: str
    """The topic, stream or role with the fault; empty for Redis as a whole."""
    detail: str
    """The facts, as sentences."""
    hint: str
    """The advice for the operator."""
    repair: Repair = ""
    names: frozenset[str] = frozenset()
    """For a fault of several objects: their names. The names are compared with those of the first run."""

    def confirms(self, earlier: Finding) -> bool:
        """Tell whether an earlier finding is about the same fault. Findings with names must share at least one name.

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
    """Return the number of objects as text, with the first names.

    Example:
        >>> shown(["b", "a"], "CQ"), shown(["a", "b", "c", "d"], "row")
        ('2 CQs (a, b)', '4 rows (a, b, c, …)')
    """
    ordered = sorted(names)
    more = ", …" if len(ordered) > _SHOWN else ""
    return f"{counted(len(ordered), noun)} ({', '.join(ordered[:_SHOWN])}{more})"
