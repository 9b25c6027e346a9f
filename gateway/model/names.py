"""The sorted names of a subscriber's CQs, for SHOW and for hints about misspelt names.

A subscriber may have a million CQs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from heapq import merge

__all__ = ["Names"]

_FEW = 5_000
"""When there are this many changes, they are merged into the sorted names."""


class Names:
    """Folded names in order; adding, removing and finding names is fast.

    Example:
        >>> names = Names(["b", "a"])
        >>> names.add("c")
        >>> names.discard("a")
        >>> list(names.after("")), len(names)
        (['b', 'c'], 2)
    """

    def __init__(self, names: Iterable[str], merged_at: int = _FEW) -> None:
        """Begin with some names.

        Args:
            names: The names, in any order.
            merged_at: When there are this many changes, they are merged into the sorted names.
        """
        self._merged_at = merged_at
        self._sorted = sorted(names)
        self._added: list[str] = []
        self._removed: set[str] = set()

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._sorted) + len(self._added) - len(self._removed)

    def add(self, name: str) -> None:
        """Add a name; the name must not be among the names yet."""
        if name in self._removed:
            self._removed.remove(name)
        else:
            insort(self._added, name)
            self._merge_if_many()

    def discard(self, name: str) -> None:
        """Remove a name; the name must be among the names."""
        at = bisect_left(self._added, name)
        if at < len(self._added) and self._added[at] == name:
            del self._added[at]
        else:
            self._removed.add(name)
            self._merge_if_many()

    def after(self, name: str) -> Iterator[str]:
        """Yield the names after a given name, in order; the names must not change during the iteration."""
        for one in merge(_after(self._sorted, name), _after(self._added, name)):
            if one not in self._removed:
                yield one

    def near(self, name: str, most: int) -> list[str]:
        """Return the names that are near a given name in the order: about `most` before it and `most` after it."""
        found = []
        for names in (self._sorted, self._added):
            at = bisect_left(names, name)
            found += names[max(at - most, 0) : at + most]
        return [one for one in found if one not in self._removed]

    def _merge_if_many(self) -> None:
        if len(self._added) + len(self._removed) >= self._merged_at:
            left = [name for name in self._sorted if name not in self._removed] if self._removed else self._sorted
            self._sorted = sorted(left + self._added)
            self._added, self._removed = [], set()


def _after(names: list[str], name: str) -> Iterator[str]:
    return (names[at] for at in range(bisect_right(names, name), len(names)))
