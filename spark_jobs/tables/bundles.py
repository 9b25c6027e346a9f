"""The bundles of a stream's small parts, brought forward as parts come and go.

As with the parts themselves (`constant_part`): what is new stands in small bundles, which are merged when they have
grown alike, and what is gone is struck out. So a change costs what it changes, however many rows are bundled.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.tables.bundle import Bundle
from spark_jobs.tables.bundle_key import Key, key_of
from spark_jobs.tables.shared_conjunct import Kind, Member, Tally

__all__ = ["Bundles"]

_RATIO = 8
"""A bundle is merged into the one before it unless that is this many times larger."""


class Bundles:
    """Bundles by their key, each the larger and older ones first."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_key: dict[Key, list[Bundle]] = {}
        self._tallies: dict[Kind, Tally] = {}

    def of(self, parts: Iterable[Member]) -> tuple[Bundle, ...]:
        """Return the bundles of all parts that are there now."""
        by_key: dict[Key, dict[int, Member]] = {}
        for part in parts:
            if (key := key_of(part.shape)) is not None:
                by_key.setdefault(key, {})[id(part)] = part
        self._by_key = {key: self._brought_forward(key, current) for key, current in by_key.items()}
        bundles = tuple(bundle for tiers in self._by_key.values() for bundle in tiers)
        self._tallies = {conjunct.kind: conjunct.tally for bundle in bundles for conjunct in bundle.conjuncts}
        return bundles

    def _brought_forward(self, key: Key, current: dict[int, Member]) -> list[Bundle]:
        kept = [bundle for bundle in self._by_key.get(key, ()) if bundle.settle(current)]
        old = {id(member) for bundle in kept for member in bundle.members}
        fresh = [part for name, part in current.items() if name not in old]
        if not fresh:
            return kept
        while kept and len(kept[-1].rows) <= _RATIO * sum(len(part.rows) for part in fresh):
            fresh = [member for member in kept.pop().members if id(member) in current] + fresh
        return [*kept, Bundle(key, fresh, self._tallies)]
