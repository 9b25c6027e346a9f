"""Decides which stored aggregates may be merged: aggregates of which each later digest has all or none.

Two aggregates may be merged under these conditions. They have the same pane and source partition. Their ranges of
offsets are committed, so each later cut covers both. Each reader has the same visible times at the two versions of the
constant tables with which the aggregates were found, so it sees both or neither. Each earlier digest that a cursor
still names (`StoreReaders.covered`) had both or neither. The last range of a source partition is never merged, since a
later record may continue or repeat the range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grouping.digests.cursor import Cursor, SourceOffsets, VisibilityInterval, Window
from grouping.digests.first_times import FirstTimes
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_matches import PendingAggregates, PendingMatches
from grouping.digests.question_columns import Flags, QuestionNumbers

__all__ = ["Piece", "RolledParts", "StoreReaders", "plan_roll"]

_NEVER_REPEATED = np.iinfo(np.int32).max
"""The ordinal of a merged aggregate: the highest, so that `FirstTimes` takes a replayed aggregate with the same first
offset for a repeat."""


class StoreReaders(NamedTuple):
    """The visible times and digests of a store's readers, which limit the merging of its records."""

    places: MatchPlaces
    versions: tuple[tuple[int, int], ...]
    """Epochs and versions of the tables at which the visible times of a reader change; ascending."""
    covered: tuple[SourceOffsets, ...]
    """The cuts of earlier digests that the cursors of the readers still name."""

    @classmethod
    def of(
        cls, places: MatchPlaces, visibility: Iterable[tuple[VisibilityInterval, ...]], cursors: Iterable[Cursor]
    ) -> StoreReaders:
        """Return the limits from the visibility and the cursor of each reader."""
        versions = set()
        for history in visibility:
            before: list[Window] = []
            for epoch, version, windows in history:
                if windows != before:
                    versions.add((epoch, version))
                before = windows
        cuts: list[SourceOffsets] = []
        for cursor in cursors:
            known = (cursor.covered, *(one.covered for one in (*cursor.earlier, *cursor.window)))
            cuts += [offsets for offsets in known if offsets and offsets not in cuts]
        return cls(places, tuple(sorted(versions)), tuple(cuts))

    def wants(self, position: int, before: int) -> bool:
        """Tell whether a record is to be merged with others."""
        if position >= before or position == self.places.rolled:
            return position == self.places.rolled
        positions = self.places.positions
        place = bisect_left(positions, position)
        return place < len(positions) and positions[place] == position


class Piece(NamedTuple):
    """The partial aggregates of one record that are merged with others."""

    record: PendingMatches
    rows: QuestionNumbers
    """The numbers of their rows in the record's table of states (`PendingMatches.values`)."""
    parts: QuestionNumbers
    """By row: the number of the row's part. Rows of one part with the same key become a single row."""


class RolledParts(NamedTuple):
    """The merged records of some stores; the arrays have an entry for each part.

    A *part* is a set of aggregates that are merged with each other.
    """

    pieces: list[Piece]
    stores: QuestionNumbers
    versions: QuestionNumbers
    """By part: the place of the version in `known_versions`."""
    aggregates: PendingAggregates
    """The aggregates of each part; `rows` holds the part's own number."""
    known_versions: list[tuple[int, int]]


class _Items(NamedTuple):
    """The items (partial aggregates) without repeats, in the order of the log."""

    store: QuestionNumbers
    sight: QuestionNumbers
    """How many of the store's `StoreReaders.versions` are not after the version with which the item was found. Readers
    see items of a store with the same number in the same way."""
    version: QuestionNumbers
    aggregates: PendingAggregates


def plan_roll(
    records: Iterable[tuple[int, PendingMatches]],
    names: Sequence[bytes],
    readers: Mapping[bytes, StoreReaders],
    covered: SourceOffsets,
    before: int,
) -> RolledParts:
    """Merge the records of stores before an offset of the log. Stores whose records cannot be merged are left out.

    Args:
        records: The stores' records, rolled ones first, then in the order of the log.
        names: The stores.
        readers: The readers of each store.
        covered: The committed source offsets.
        before: The offset of the log before which records are merged.
    """
    numbers = {name: number for number, name in enumerate(names)}
    first_times, stays = FirstTimes(len(names)), np.zeros(len(names), np.bool_)
    sights: dict[int, QuestionNumbers] = {}
    versions: dict[tuple[int, int], int] = {}
    found: list[_Items] = []
    pieces: list[tuple[PendingMatches, QuestionNumbers]] = []
    for position, record in records:
        mine = [name for name in record.spans.keys() & numbers.keys() if readers[name].wants(position, before)]
        if not mine:
            continue
        found_by = (record.epoch, record.version)
        version = versions.setdefault(found_by, len(versions))
        items, owner = _items(record, mine, numbers)
        new = first_times.of(items, owner, np.ones(owner.size, np.bool_), found_by)
        sight_of = np.zeros(len(names), np.int64)
        sight_of[[numbers[name] for name in mine]] = [bisect_right(readers[name].versions, found_by) for name in mine]
        sight = sight_of[owner]
        for partition in np.unique(items.partitions).tolist():
            here = items.partitions == partition
            latest = sights.setdefault(partition, np.full(len(names), -1))
            stays[owner[here & ~new & (latest[owner] != sight)]] = True  # a repeat that readers see differently
            latest[owner[here & new]] = sight[here & new]
        found.append(_Items(owner[new], sight[new], np.full(int(new.sum()), version), items.at(np.flatnonzero(new))))
        pieces.append((record, found[-1].aggregates.rows.astype(np.int64)))
    if not found:
        none = np.empty(0, np.int64)
        return _parts([], _Items(none, none, none, _none()), none, {})
    whole = _joined(found)
    stays[whole.store[~_committed(whole.aggregates, covered)]] = True
    part, last_range = _part_of(whole, [readers[name].covered for name in names])
    part[stays[whole.store]] = -1
    bounds = np.cumsum([0, *(each.store.size for each in found)])
    own = [
        Piece(record, rows[kept], part[begin:end][kept])
        for (record, rows), begin, end in zip(pieces, bounds[:-1], bounds[1:], strict=True)
        if (kept := part[begin:end] >= 0).any()
    ]
    ordinals = np.where(last_range, whole.aggregates.ordinals, _NEVER_REPEATED).astype(np.int32)
    return _parts(own, whole._replace(aggregates=whole.aggregates._replace(ordinals=ordinals)), part, versions)


def _items(
    record: PendingMatches, mine: Sequence[bytes], numbers: Mapping[bytes, int]
) -> tuple[PendingAggregates, QuestionNumbers]:
    """Return a record's items of the given stores, with the number of each item's store."""
    begins, ends = np.array([record.spans[name] for name in mine]).T
    sizes = ends - begins
    places = np.arange(sizes.sum()) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
    return record.aggregates.at(places), np.repeat([numbers[name] for name in mine], sizes)


def _none() -> PendingAggregates:
    return PendingAggregates(*[np.empty(0, np.int64)] * 6)  # type: ignore[arg-type]


def _joined(found: Sequence[_Items]) -> _Items:
    aggregates = PendingAggregates(*map(np.concatenate, zip(*(each.aggregates for each in found), strict=True)))
    store, sight, version = (np.concatenate([each[at] for each in found]) for at in range(3))
    return _Items(store, sight, version, aggregates)


def _committed(aggregates: PendingAggregates, covered: SourceOffsets) -> NDArray[np.bool_]:
    ends = np.zeros(int(aggregates.partitions.max()) + 1, np.int64)
    for partition, offset in covered.items():
        if int(partition) < ends.size:
            ends[int(partition)] = offset
    committed: NDArray[np.bool_] = aggregates.last < ends[aggregates.partitions]
    return committed


def _part_of(items: _Items, covered: Sequence[tuple[SourceOffsets, ...]]) -> tuple[QuestionNumbers, Flags]:
    """Return the number of each item's part, and whether the item is in the last range of its source partition."""
    aggregates = items.aggregates
    low, high = np.empty(items.store.size, np.int64), np.empty(items.store.size, np.int64)
    single = np.full(items.store.size, -1)
    place = items.store * (int(aggregates.partitions.max()) + 1) + aggregates.partitions
    order = np.argsort(place, kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        partition = str(aggregates.partitions[some[0]])
        limits = np.unique([offsets.get(partition, 0) for offsets in covered[items.store[some[0]]]])
        low[some] = np.searchsorted(limits, aggregates.first[some], side="right")
        high[some] = np.searchsorted(limits, aggregates.last[some], side="right")
        last_range = some[aggregates.first[some] == aggregates.first[some[-1]]]
        single[last_range] = last_range
    columns = (items.store, aggregates.partitions, items.sight, aggregates.times, low, high, single)
    _, part = np.unique(np.stack([column.astype(np.int64) for column in columns], axis=1), axis=0, return_inverse=True)
    return part.ravel(), single >= 0


def _parts(
    pieces: list[Piece], items: _Items, part: QuestionNumbers, versions: Mapping[tuple[int, int], int]
) -> RolledParts:
    """Return the parts.

    Parts of a store and source partition that all readers see in the same way get the latest of their versions.
    """
    known = sorted(versions)
    place = np.empty(len(known), np.int64)
    for at, each in enumerate(known):
        place[versions[each]] = at
    count = int(part.max(initial=-1)) + 1
    kept = part >= 0
    owner = part[kept]
    first, last, latest = np.full(count, np.iinfo(np.int64).max), np.full(count, -1), np.full(count, -1)
    np.minimum.at(first, owner, items.aggregates.first[kept])
    np.maximum.at(last, owner, items.aggregates.last[kept])
    member = np.zeros(count, np.int64)
    member[owner] = np.flatnonzero(kept)
    aggregates, version = items.aggregates.at(member), place[items.version]
    _, together = np.unique(
        np.stack([items.store, items.aggregates.partitions.astype(np.int64), items.sight], axis=1),
        axis=0,
        return_inverse=True,
    )
    together = together.ravel()
    newest = np.full(together.max(initial=-1) + 1, -1)
    np.maximum.at(newest, together, version)
    latest = newest[together[member]]
    aggregates = aggregates._replace(first=first, last=last, rows=np.arange(count, dtype=np.int32))
    return RolledParts(pieces, items.store[member], latest, aggregates, known)
