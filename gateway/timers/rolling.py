"""Rolling: merges aggregates that wait for a tick, so that the log does not grow meanwhile.

A rolled record replaces all records of its stores before an offset (`grouping/digests/rolling.py`). The gateway writes
the rolled record to the log, and takes it in like any other record. Afterwards no store needs the replaced records, so
the gateway deletes them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import NamedTuple

from gateway.kafka import OutgoingRecord
from gateway.model.membership import Membership
from gateway.model.records import incarnation_of
from gateway.state.commit import Commits
from gateway.state.timer_state import TimerState
from gateway.state.working_copy import WorkingCopy
from gateway.timers.intake import Intake
from gateway.timers.open_cuts import OpenCuts
from gateway.timers.probes import ProgressProbes
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.rolling import StoreReaders
from grouping.model.ids import SelectId, StreamId
from grouping.settings.settings import Settings

__all__ = ["LEAST_BYTES", "REST", "Rolling"]

log = logging.getLogger(__name__)

LEAST_BYTES = 8 << 20
"""The smallest number of bytes of aggregates that come in on a partition between two rollings."""
_RATIO = 4
"""The smallest number of bytes that come in between two rollings, in multiples of the bytes that the last rolling
read."""
_MOST_BYTES = 64 << 20
"""Once the records that were read have more than this number of bytes, a step reads no further records."""
_AT_ONCE = 64
_READERS = 2500
"""Approximate number of readers whose cursors are looked up together."""
_PLACES = 10_000
"""Approximate number of positions that a step merges. With this number, a step holds up commands for less than a
second."""
REST = 50
"""The shortest pause after a rolling, in multiples of the rolling's duration."""

_Query = tuple[StreamId, SelectId]
_PendingRecords = list[tuple[int, PendingMatches]]


class _Roll(NamedTuple):
    """A partition to roll: its records before an offset are merged."""

    partition: int
    before: int
    stores: list[bytes]
    """The stores that are still to be merged."""


class Rolling:
    """Merges stored aggregates, some stores of one partition at a time, when no tick is due."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        commits: Commits,
        state: TimerState,
        intake: Intake,
        probes: ProgressProbes,
        cuts: OpenCuts,
    ) -> None:
        self._topic = settings.topics.pending
        self._working = working
        self._commits = commits
        self._state = state
        self._intake = intake
        self._probes = probes
        self._cuts = cuts
        self.reset()

    def reset(self) -> None:
        """Forget all rollings, as after a crash."""
        self._reached: dict[int, int] = {}
        """Partition → offset up to which records were taken in at the last call of `begin`.

        By the next call, the evaluator has committed nearly all events of the records before this offset.
        """
        self._written: dict[int, int] = {}
        """Partition → offset of the last rolled record."""
        self._sizes: dict[int, int] = {}
        """Partition → number of bytes that the last rolling read."""
        self._due: list[_Roll] = []
        self._spent = self._rested = 0.0

    def begin(self) -> None:
        """Find the partitions with enough new records; called about twice a minute."""
        if not self._due and time.monotonic() >= self._rested:
            taken = self._intake.aggregate_bytes
            for partition, before in self._reached.items():
                enough = max(LEAST_BYTES, _RATIO * self._sizes.get(partition, 0))
                if taken[partition] >= enough and self._written.get(partition, -1) < before:
                    taken[partition] = self._sizes[partition] = 0
                    stores = self._intake.index.of_partition(partition)
                    waiting = [store for store, stored in stores if _gains(stored, before)]
                    self._due.append(_Roll(partition, before, waiting))
        self._reached = dict(self._intake.reached)

    def step(self) -> bool:
        """Merge the aggregates of some stores; return whether there is more to do now."""
        if not self._due or self._cuts.untried:
            return False
        started = time.monotonic()
        roll, readers, places, index = self._due[-1], 0, 0, self._intake.index
        some: list[tuple[bytes, MatchPlaces]] = []
        while roll.stores and readers < _READERS and places < _PLACES:
            store = roll.stores.pop()
            stored = index.get(store)
            if stored is not None and store not in self._intake.held and _gains(stored, roll.before):
                some.append((store, stored))
                readers += max(stored.readers, 1)
                places += len(stored.positions)
        self._roll(roll, some)
        if not roll.stores:
            self._due.pop()
        self._spent += time.monotonic() - started
        if not self._due:
            self._rested, self._spent = time.monotonic() + REST * self._spent, 0.0
        return bool(self._due)

    def _roll(self, roll: _Roll, some: list[tuple[bytes, MatchPlaces]]) -> None:
        queries = self._queries(some)
        if not queries:
            return
        # The import takes too long for the gateway's start.
        from spark_jobs.engine.operators.aggregate.rolled import rolled_records
        from spark_jobs.engine.rows.faults import FAULTS

        bodies: list[bytes] = []
        for (stream_id, select_id), stores in queries.items():
            select, covered = self._working.select(stream_id, select_id), self._probes.progress(stream_id).covered
            records, before = self._records(roll, [store.places for store in stores.values()])
            try:
                bodies += rolled_records(select, records, stores, covered, before)
            except FAULTS:
                # A bug with the aggregates of one query must not hold up other queries. These aggregates stay as they
                # are.
                log.exception("aggregates not rolled", extra={"stream": stream_id, "select": select_id})
        if bodies:
            records_out = [OutgoingRecord(self._topic, None, body, (), roll.partition) for body in bodies]
            offsets = self._commits.write_records(records_out, watched=range(len(bodies)))
            self._written[roll.partition] = max(offsets.values())

    def _queries(self, some: Iterable[tuple[bytes, MatchPlaces]]) -> dict[_Query, dict[bytes, StoreReaders]]:
        """Return, by query, the stores of aggregates with their readers.

        A store is left out if one of its readers has a digest in an open cut, or if it has no aggregates.
        """
        stores = list(some)
        readers = self._state.readers([store for store, _ in stores])
        names = [name for own in readers for name in own]
        known = {
            name: membership
            for name, membership in zip(names, self._state.memberships(names), strict=True)
            if membership is not None and membership.destination.slots is not None and name not in self._cuts.waiting
        }
        incarnations = {name: incarnation_of(name, membership.timed) for name, membership in known.items()}
        cursors = dict(zip(incarnations, self._state.cursors(list(incarnations.values())), strict=True))
        queries: dict[_Query, dict[bytes, StoreReaders]] = {}
        for (store, stored), own in zip(stores, readers, strict=True):
            members: list[Membership] = [known[name] for name in own if name in known]
            if not members or len(members) < len(own):
                continue
            destination, visibility = members[0].destination, [member.timed.visibility for member in members]
            of = StoreReaders.of(stored, visibility, [cursors[name] for name in own])
            queries.setdefault((destination.stream_id, destination.select_id), {})[store] = of
        return queries

    def _records(self, roll: _Roll, places: Iterable[MatchPlaces]) -> tuple[_PendingRecords, int]:
        """Return the records of stores before the roll's offset, in the order in which they are merged, and the offset.

        If all these records together are too large, later records are left out, and the returned offset is lower.
        """
        rolled = {each.rolled for each in places if each.rolled is not None}
        single = sorted({offset for each in places for offset in each.positions if offset < roll.before} - rolled)
        found = self._loaded(roll.partition, sorted(rolled))
        before = roll.before
        for first in range(0, len(single), _AT_ONCE):
            if sum(size for _, _, size in found) > _MOST_BYTES:
                before = single[first]
                break
            found += self._loaded(roll.partition, single[first : first + _AT_ONCE])
        size = sum(size for _, _, size in found)
        self._sizes[roll.partition] = max(self._sizes.get(roll.partition, 0), size)
        return [(offset, record) for offset, record, _ in found], before

    def _loaded(self, partition: int, offsets: Iterable[int]) -> list[tuple[int, PendingMatches, int]]:
        """Return records with their offsets and sizes."""
        places = [(partition, offset) for offset in offsets]
        found = self._intake.log.load(places)
        return [
            (place[1], found[place], sum(len(part.values[0]) for part in found[place].whole))
            for place in places
            if place in found
        ]


def _gains(stored: MatchPlaces, before: int) -> bool:
    """Tell whether a rolling makes a store smaller.

    For this, the store must have several records before the offset, and the positions of all its records must be known.
    """
    if stored.older is not None or stored.rolled_before >= before:
        return False
    count = sum(position < before for position in stored.positions[:2]) + (stored.rolled is not None)
    return count > 1
