"""An index that many small constant tables share: an event is looked up only once for all of them (NiagaraCQ §5.2.2).

The keys of the tables have the same columns, except that keys of very small tables may have different columns
(`mixed_keys`).

A shared index decides only the key. All other conjuncts are checked for each pair of an event and a candidate.
Conjuncts that are equal up to constants are checked together, for all tables that have them. So the cost depends on
the number of pairs, not on the number of groups.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from copy import copy

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.constants.constant_rows import ConstantRows, concatenated
from spark_jobs.engine.constants.mixed_keys import MixedKeys
from spark_jobs.engine.constants.shared_conjunct import ConjunctCost, SharedKind, SharedPart, shared_conjuncts
from spark_jobs.engine.constants.table_shape import KeyColumns
from spark_jobs.engine.index import EqualityIndex, Ints, Ranges
from spark_jobs.engine.index.key_codes import JointCodes, KeyCodes
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["SharedIndex"]

_DEAD = 4
"""A shared index is discarded when more than 1 / `_DEAD` of its rows are struck out."""


class SharedIndex:
    """An index over the rows of several parts of tables, called members. Rows of a removed part are struck out."""

    def __init__(
        self, key: KeyColumns | None, members: Sequence[SharedPart], tallies: Mapping[SharedKind, ConjunctCost]
    ) -> None:
        """Index the rows of all members.

        Args:
            key: The common key of the members; None if the members have different keys.
            members: The parts.
            tallies: Earlier measurements of the members' conjuncts.
        """
        self.members = tuple(members)
        sizes = [len(member.rows) for member in members]
        self._starts = np.concatenate(([0], np.cumsum(sizes)))
        self._versions: list[int | None] = [None] * len(sizes)
        self.owner = np.repeat(np.arange(len(sizes)), sizes)
        """For each row, the index of its member."""
        self.rows = ConstantRows.appended([member.rows for member in members])
        """All rows without their constants, member after member."""
        self.alive = np.ones(self.owner.size, np.bool_)
        """For each row, whether it is live: neither struck out in its part, nor a row of a part that is gone."""
        starts = self._starts[:-1]
        self._keys = MixedKeys(members, starts) if key is None else _JointKeys(key, members, starts)
        self.conjuncts = list(shared_conjuncts(members, self._starts[:-1], tallies))
        """The conjuncts that are checked on the candidates."""
        self.ends = _ends(members)
        """For each member and source partition, the offset of the first event that is no longer a match of its entries.

        None if no member has leaving entries (`TableShape`).
        """
        self.settle({id(member) for member in members})

    def settle(self, current: Container[int]) -> bool:
        """Strike out the rows that were removed since the last call; return False if too many rows are struck out.

        Args:
            current: The `id()` of each part that still exists.
        """
        for number, member in enumerate(self.members):
            version = member.version if id(member) in current else -1
            if version != self._versions[number]:
                self._versions[number] = version
                alive = False if version == -1 else True if member.alive is None else member.alive
                self.alive[self._starts[number] : self._starts[number + 1]] = alive
        return bool(np.count_nonzero(~self.alive) * _DEAD <= self.alive.size)

    def find(self, events: EventColumns) -> tuple[Ints, Ranges]:
        """Return the events whose key equals the key of a row, and for each of these events the rows with its key."""
        return self._keys.find(events)

    def only(self, groups: Container[str]) -> SharedIndex | None:
        """Return the index with only the rows of some groups; None if there are no such rows.

        The returned index is valid until the next call of `settle`.
        """
        kept = np.array([member.shape.plan.group_id in groups for member in self.members])
        if not kept.any():
            return None
        part = copy(self)
        part.alive = self.alive & kept[self.owner]
        return part

    @property
    def nbytes(self) -> int:
        """Memory in bytes, without the memory of the members."""
        own: int = self.rows.nbytes + self.owner.nbytes + self._keys.nbytes
        return own + sum(int(array.nbytes) for conjunct in self.conjuncts for array in conjunct.constants)


class _JointKeys:
    """The keys of members that compare the same columns; a row with a set has a key for each of its elements."""

    def __init__(self, key: KeyColumns, members: Sequence[SharedPart], starts: Ints) -> None:
        self._codes, self._index = _indexed(key, members, starts)

    def find(self, events: EventColumns) -> tuple[Ints, Ranges]:
        """Return the events whose key equals the key of a row, and for each of these events the rows with its key."""
        codes = self._codes.find(events)
        known = np.flatnonzero(codes >= 0)
        return known, self._index.find(codes[known])

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._codes.nbytes + self._index.nbytes


def _indexed(key: KeyColumns, members: Sequence[SharedPart], starts: Ints) -> tuple[JointCodes, EqualityIndex]:
    """Number the distinct keys of all members, and index the rows by these numbers."""
    columns: list[list[pa.Array]] = [[] for _ in key]
    owners: list[Ints] = []
    for member, start in zip(members, starts.tolist(), strict=True):
        for number, (_, slot) in enumerate(member.shape.key_terms):
            constants = member.rows.constants[slot]
            rows = np.arange(len(constants))
            if pa.types.is_list(constants.type):
                rows, constants = constants.value_parent_indices().to_numpy(), constants.flatten()
            columns[number].append(constants)
        owners.append(rows + start)
    constants = [concatenated(arrays) for arrays in columns]
    codes = [KeyCodes(*each, values) for each, values in zip(key, constants, strict=True)]
    joint, found = JointCodes.of(codes, constants)
    owner = np.concatenate(owners)
    kept = np.flatnonzero(found >= 0)  # NULL equals nothing, so a row with NULL in its key is never found
    if any(member.shape.path.set_member is not None for member in members):
        # A set may have the same value in two spellings; an event must find its row only once.
        kept = kept[np.unique(owner[kept] << 32 | found[kept], return_index=True)[1]]
    return joint, EqualityIndex(found[kept], joint.count, owner[kept].astype(np.int32))


def _ends(members: Sequence[SharedPart]) -> NDArray[np.int64] | None:
    width = max(len(member.shape.until) for member in members)
    if not width:
        return None
    ends = np.full((len(members), width + 1), np.iinfo(np.int64).max)
    for number, member in enumerate(members):
        if member.shape.until:
            ends[number] = 0  # no event of a partition that was added later is a match
            ends[number, : len(member.shape.until)] = member.shape.until
    return ends
