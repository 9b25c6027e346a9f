"""Small tables whose keys are the same columns, as one: an event is looked up once for all of them (NiagaraCQ §5.2.2).

Whatever a table's own index would decide besides is left to be checked on pairs; and conjuncts that are the same up to
constants are checked together, whichever tables they are of. So a thousand groups cost what their pairs cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.expression import Call, Column, Expression, Slot
from spark_jobs.constant_rows import ConstantRows, concatenated
from spark_jobs.event_column import EventColumns
from spark_jobs.index import EqualityIndex, Ints, Ranges
from spark_jobs.key_codes import JointCodes, KeyCodes
from spark_jobs.lookup import comparison
from spark_jobs.table_shape import TableShape

__all__ = ["Bundle", "Key", "Member", "SharedConjunct", "bundled", "is_bundled"]

_LARGEST = 8_192
"""Rows of a part that is bundled: bundles are made anew whenever one of their parts changes."""
_LONGEST_RUN = 32
"""Rows with the same key above which an index that decides more than the key is worth having."""

Key = tuple[tuple[str, str, str], ...]
"""Column, its type and the constants' type, of each key column."""


class Member(Protocol):
    """A part of a table: `spark_jobs.constant_part.ConstantPart`."""

    shape: TableShape
    rows: ConstantRows
    alive: NDArray[np.bool_] | None
    version: int


def _key_of(shape: TableShape) -> Key | None:
    """Return what tables must have in common to be bundled; None for one that cannot be."""
    terms = _key_terms(shape)
    if shape.virtual or not terms:
        return None
    return tuple((column.name, column.type, _scalar(shape.types[slot])) for column, slot in terms)


def is_bundled(shape: TableShape, rows: ConstantRows) -> bool:
    """Tell whether rows are so few that they are looked up in a bundle."""
    if len(rows) > _LARGEST or _key_of(shape) is None:
        return False
    if shape.path.kind == "hash" or not len(rows):
        return True
    _, slot = _key_terms(shape)[0]
    constants = rows.constants[slot]
    keys = constants.flatten() if pa.types.is_list(constants.type) else constants
    return max(keys.value_counts().field("counts").to_pylist(), default=0) <= _LONGEST_RUN


def _key_terms(shape: TableShape) -> list[tuple[Column, int]]:
    path = shape.path
    if path.kind not in ("hash", "composite"):
        return []
    positions = path.equal or (path.set_member,)
    found = [comparison(shape.plan.conjuncts[position]) for position in positions if position is not None]
    return [(column, slot) for _, column, slot in found]


def _scalar(kind: str) -> str:
    return kind[4:-1] if kind.startswith("SET<") else kind


@dataclass(frozen=True, slots=True)
class SharedConjunct:
    """A conjunct that several tables have, up to constants."""

    conjunct: Expression
    """Its slots numbered from 0."""
    types: tuple[str, ...]
    constants: tuple[pa.Array, ...]
    """By slot, the constants of all rows of the tables that have it."""
    members: NDArray[np.bool_]
    """Which members have it."""
    shift: Ints
    """By member: what makes a row of the bundle a row of `constants`."""


class Bundle:
    """Parts of tables with the same keys. Built once, then only read."""

    def __init__(self, key: Key, members: Sequence[Member]) -> None:
        """Index the rows of all members."""
        self.key = key
        self.members = tuple(members)
        self.versions = tuple(member.version for member in members)
        sizes = [len(member.rows) for member in members]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        self.owner = np.repeat(np.arange(len(sizes)), sizes)
        """By row: the index of its member."""
        self.rows = ConstantRows.appended([member.rows for member in members])
        """All rows without their constants, one member's after the other's."""
        self.alive = _alive(members)
        self._codes, self._index = _indexed(key, members, starts[:-1])
        self.conjuncts = sorted(_shared_conjuncts(members, starts[:-1]), key=_dearness)
        self.ends = _ends(members)
        """By member and source partition, from which offset on events count no more; None when all count."""

    def is_of(self, members: Sequence[Member]) -> bool:
        """Tell whether these, as they are now, are what the bundle was made of."""
        return (
            len(members) == len(self.members)
            and all(mine is its for mine, its in zip(self.members, members, strict=True))
            and all(version == member.version for version, member in zip(self.versions, members, strict=True))
        )

    def find(self, events: EventColumns) -> tuple[Ints, Ranges]:
        """Return the events whose key is some row's, and the rows of each."""
        codes = self._codes.find(events)
        known = np.flatnonzero(codes >= 0)
        return known, self._index.find(codes[known])

    @property
    def nbytes(self) -> int:
        """Memory in bytes, beside that of the members."""
        own: int = self.rows.nbytes + self.owner.nbytes + self._codes.nbytes + self._index.nbytes
        return own + sum(int(array.nbytes) for conjunct in self.conjuncts for array in conjunct.constants)


def _dearness(shared: SharedConjunct) -> bool:
    """Put what compares a column with a constant before what computes something."""
    return not all(isinstance(argument, Column | Slot) for argument in getattr(shared.conjunct, "args", ()))


def bundled(members: Iterable[Member], before: Mapping[Key, Bundle]) -> dict[Key, Bundle]:
    """Return the bundles of parts that have no index of their own, those of before that are still good among them."""
    by_key: dict[Key, list[Member]] = {}
    for member in members:
        if (key := _key_of(member.shape)) is not None:
            by_key.setdefault(key, []).append(member)
    return {
        key: before[key] if key in before and before[key].is_of(parts) else Bundle(key, parts)
        for key, parts in by_key.items()
    }


def _alive(members: Sequence[Member]) -> NDArray[np.bool_] | None:
    if all(member.alive is None for member in members):
        return None
    return np.concatenate(
        [np.ones(len(member.rows), np.bool_) if member.alive is None else member.alive for member in members]
    )


def _indexed(key: Key, members: Sequence[Member], starts: Ints) -> tuple[JointCodes, EqualityIndex]:
    """Number the keys of all members together; a row with a set has a key for each of its elements."""
    columns: list[list[pa.Array]] = [[] for _ in key]
    owners: list[Ints] = []
    for member, start in zip(members, starts.tolist(), strict=True):
        for number, (_, slot) in enumerate(_key_terms(member.shape)):
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
    kept = np.flatnonzero(found >= 0)  # NULL is nobody's key
    if any(member.shape.path.set_member is not None for member in members):
        # An element that a set names twice, in two spellings, is one.
        kept = kept[np.unique(owner[kept] << 32 | found[kept], return_index=True)[1]]
    return joint, EqualityIndex(found[kept], joint.count, owner[kept].astype(np.int32))


def _shared_conjuncts(members: Sequence[Member], starts: Ints) -> Iterator[SharedConjunct]:
    """Yield what is left to check of the members' predicates, each conjunct once up to constants."""
    have: dict[tuple[Expression, tuple[str, ...], int], list[tuple[int, tuple[int, ...]]]] = {}
    for number, member in enumerate(members):
        met: dict[tuple[Expression, tuple[str, ...]], int] = {}
        for conjunct in _left(member.shape):
            slots: dict[int, int] = {}
            renumbered = _renumbered(conjunct, slots)
            kind = (renumbered, tuple(member.shape.types[slot] for slot in slots))
            met[kind] = met.get(kind, 0) + 1
            have.setdefault((*kind, met[kind]), []).append((number, tuple(slots)))
    for (conjunct, types, _), having in have.items():
        of = np.zeros(len(members), np.bool_)
        shift = np.zeros(len(members), np.int64)
        size = 0
        for number, _ in having:
            of[number], shift[number] = True, size - starts[number]
            size += len(members[number].rows)
        constants = tuple(
            concatenated([members[number].rows.constants[slots[i]] for number, slots in having])
            for i in range(len(types))
        )
        yield SharedConjunct(conjunct, types, constants, of, shift)


def _left(shape: TableShape) -> Iterable[Expression]:
    """Return the conjuncts that the key does not decide."""
    keys = {*shape.path.equal, shape.path.set_member}
    return (conjunct for position, conjunct in enumerate(shape.plan.conjuncts) if position not in keys)


def _renumbered(expression: Expression, slots: dict[int, int]) -> Expression:
    """Return an expression whose slots are numbered in the order in which they come; `slots` says which was which."""
    match expression:
        case Slot(index):
            return Slot(slots.setdefault(index, len(slots)))
        case Call(op, args, kind):
            return Call(op, tuple(_renumbered(arg, slots) for arg in args), kind)
    return expression


def _ends(members: Sequence[Member]) -> NDArray[np.int64] | None:
    width = max(len(member.shape.until) for member in members)
    if not width:
        return None
    ends = np.full((len(members), width + 1), np.iinfo(np.int64).max)
    for number, member in enumerate(members):
        if member.shape.until:
            ends[number] = 0  # a partition that was added since has no event that counts
            ends[number, : len(member.shape.until)] = member.shape.until
    return ends
