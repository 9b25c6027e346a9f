"""The shared indexes of the small parts of a stream's constant tables, updated when parts are added or removed.

New parts get a shared index of their own. Shared indexes of similar size are merged, and removed rows are struck out,
as in the parts themselves (`constant_part`). So the cost of a change depends on the number of changed rows, not on the
number of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.engine.constants.shared_conjunct import ConjunctCost, SharedKind, SharedPart
from spark_jobs.engine.constants.shared_index import SharedIndex
from spark_jobs.engine.constants.table_shape import KeyColumns

__all__ = ["SharedIndexes"]

_RATIO = 8
"""New parts are merged with the last shared index unless that index has more than `_RATIO` times their rows."""


_FEW_ROWS = 64
"""The largest number of rows of a small key.

Here, a key is a set of columns, and the rows of a key are the rows of all parts that are looked up by these columns. A
key of several columns that has more rows gets shared indexes of its own.
"""
_MANY_KEYS = 8
"""If a computation has at least this many small keys, they are looked up together (`mixed_keys`)."""
_IndexName = tuple[str, KeyColumns | None]
"""The id of a computation ("" for the events themselves), and the columns of the key; None for mixed keys."""


class SharedIndexes:
    """The shared indexes of each key, from the largest and oldest to the smallest and newest."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_key: dict[_IndexName, list[SharedIndex]] = {}
        self._tallies: dict[SharedKind, ConjunctCost] = {}

    def of(self, parts: Iterable[SharedPart]) -> tuple[SharedIndex, ...]:
        """Return the shared indexes of all live parts."""
        by_key: dict[_IndexName, dict[int, SharedPart]] = {}
        for part in parts:
            if (key := part.shape.shared_key) is not None:
                by_key.setdefault((part.shape.plan.computation_id, key), {})[id(part)] = part
        by_key = _mixed(by_key)
        self._by_key = {key: self._brought_forward(key, current) for key, current in by_key.items()}
        shared_indexes = tuple(shared for tiers in self._by_key.values() for shared in tiers)
        self._tallies = {conjunct.kind: conjunct.tally for shared in shared_indexes for conjunct in shared.conjuncts}
        return shared_indexes

    def _brought_forward(self, key: _IndexName, current: dict[int, SharedPart]) -> list[SharedIndex]:
        kept = [shared for shared in self._by_key.get(key, ()) if shared.settle(current)]
        old = {id(member) for shared in kept for member in shared.members}
        fresh = [part for name, part in current.items() if name not in old]
        if not fresh:
            return kept
        while kept and len(kept[-1].rows) <= _RATIO * sum(len(part.rows) for part in fresh):
            fresh = [member for member in kept.pop().members if id(member) in current] + fresh
        return [*kept, SharedIndex(key[1], fresh, self._tallies)]


def _mixed(by_key: dict[_IndexName, dict[int, SharedPart]]) -> dict[_IndexName, dict[int, SharedPart]]:
    """Return the parts by key. If a computation has many small keys, the key of all their parts becomes None."""
    few: dict[str, list[_IndexName]] = {}
    for (computation, key), parts in by_key.items():
        sets = any(part.shape.path.set_member is not None for part in parts.values())
        if key is not None and len(key) > 1 and not sets and _rows(parts) <= _FEW_ROWS:
            few.setdefault(computation, []).append((computation, key))
    for computation, keys in few.items():
        if len(keys) >= _MANY_KEYS:
            by_key[computation, None] = {name: part for key in keys for name, part in by_key.pop(key).items()}
    return by_key


def _rows(parts: dict[int, SharedPart]) -> int:
    return sum(len(part.rows) for part in parts.values())
