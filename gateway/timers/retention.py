"""Retention: the gateway forgets positions that all readers have passed, and deletes records that no store needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gateway.kafka import Topics
from gateway.model.membership import Membership
from gateway.model.records import Destination, incarnation_of
from gateway.state.timer_state import TimerState
from gateway.timers.intake import Intake
from gateway.timers.pending_index import store_key
from grouping.digests.cursor import Cursor
from grouping.model.ids import DestinationId, StreamId
from grouping.settings.settings import Settings

__all__ = ["Retention"]

_READERS = 2500
"""Approximate number of readers whose cursors are looked up together."""


class _Passed(NamedTuple):
    """The positions of a store that some of its readers no longer need."""

    readers: int = 0
    """The number of these readers, whose cursors were looked up."""
    low: int = 0
    """These readers need no position below `low`, except for the positions in `held`."""
    held: frozenset[int] = frozenset()

    def joined(self, cursors: Iterable[Cursor]) -> _Passed:
        """Return the positions that neither these readers nor the readers with further cursors need."""
        readers, low, held = self.readers, self.low, set(self.held)
        for cursor in cursors:
            low = min(low, cursor.next) if readers else cursor.next
            held.update(cursor.held)
            readers += 1
        return _Passed(readers, low, frozenset(held))


class _LargeStore(NamedTuple):
    """A store with very many readers, whose cursors are looked up step by step."""

    store: bytes
    names: list[DestinationId]
    """The readers whose cursors are still to be looked up."""
    passed: _Passed
    reached: int
    """The offset up to which the store's partition of the log was taken in at the first look-up."""


class Retention:
    """Forgets stored matches, in memory and on the log."""

    def __init__(self, settings: Settings, topics: Topics, state: TimerState, intake: Intake) -> None:
        self._settings = settings
        self._topics = topics
        self._state = state
        self._intake = intake
        self.last_digests: Counter[str] = Counter()
        """Destination → number of its ended incarnations whose last digest is not written yet.

        Until these last digests are written, no later incarnation of the destination fires.
        """
        self._served: dict[bytes, None] = {}
        """Stores with several readers, after all readers of the store were served. `step` looks up the cursors of the
        readers, and forgets the positions that all cursors have passed."""
        self._large: _LargeStore | None = None

    def reset(self) -> None:
        """Forget everything, as after a crash; `LastDigests` then calls `hold` again."""
        self.last_digests.clear()
        self._served.clear()
        self._large = None
        self._intake.held.clear()

    def release(self, served: Iterable[tuple[DestinationId, Membership]], moved: Mapping[str, Cursor]) -> None:
        """Forget positions that the only reader of a store has passed.

        A store with several readers is noted once all its readers were served, and a later `step` forgets positions.

        Args:
            served: Destinations that were served, at a tick or for a look.
            moved: Incarnation of a destination → its new cursor.
        """
        index = self._intake.index
        for name, membership in served:
            store = store_key(membership.timed.store)
            stored = index.get(store)
            if stored is None:
                continue
            stored.idle.add(name)
            stored.fired += 1
            if store in self._intake.held or stored.fired < stored.readers:
                continue
            stored.fired = 0
            cursor = moved.get(incarnation_of(name, membership.timed))
            if stored.readers == 1 and cursor is not None:
                self._forget(store, _Passed().joined([cursor]))
            else:
                self._served[store] = None

    def step(self) -> bool:
        """Forget positions of some stores with several readers; return whether there is more to do now.

        The step looks up the cursors of all readers of a store, which takes time, so steps come when no tick is due.
        For a store with very many readers, a step looks up only some of the cursors. Between two steps cursors may
        move, but never backwards, so the result stays correct.
        """
        some: list[bytes] = []
        readers = 0
        for store in self._served:
            stored = self._intake.index.get(store)
            own = 0 if stored is None else stored.readers
            if own > _READERS:
                if not some:
                    return self._look_on(store)
                break
            some.append(store)
            readers += own
            if readers >= _READERS:
                break
        for store, cursors in zip(some, self._state.cursors_of(some), strict=True):
            del self._served[store]
            if store not in self._intake.held:
                self._forget(store, _Passed().joined(cursors))
        return bool(self._served)

    def _look_on(self, store: bytes) -> bool:
        """Look up the cursors of some further readers of a store; after the last reader, forget positions."""
        if self._large is None or self._large.store != store:
            [names] = self._state.readers([store])
            stored = self._intake.index.get(store)
            reached = 0 if stored is None else self._intake.reached[stored.partition]
            self._large = _LargeStore(store, names, _Passed(), reached)
        large = self._large
        some = [large.names.pop() for _ in range(min(_READERS, len(large.names)))]
        passed = large.passed.joined(self._state.readers_cursors(some).values())
        self._large = large._replace(passed=passed)
        if not large.names:
            self._large = None
            del self._served[store]
            if store not in self._intake.held:
                # A reader that was added after the first look-up needs no position below `reached`.
                self._forget(store, passed._replace(low=min(passed.low, large.reached)))
        return bool(self._served)

    def _forget(self, store: bytes, passed: _Passed) -> None:
        stored = self._intake.index.get(store)
        if stored is None:
            return
        stored.readers = passed.readers
        if passed.readers:
            stored.forget_before(passed.low, set(passed.held))
        if stored.first is None:
            self._intake.index.drop(store)

    # -- last digests --------------------------------------------------------------------------------------------------

    def hold(self, destination_id: DestinationId, store: bytes) -> None:
        """Keep the stored matches of an ended destination until its last digest is written."""
        self.last_digests[destination_id] += 1
        self._intake.held[store] += 1

    def end_hold(self, done: Iterable[tuple[Destination, bytes]], living: Iterable[Destination]) -> None:
        """Undo `hold` for destinations whose last digests are written.

        Args:
            done: The destinations with their stores; a destination appears once for each call of `hold`.
            living: The destinations in `done` with a new incarnation. The new incarnation gets a look.
        """
        held = self._intake.held
        for destination, store in done:
            name = destination.destination_id
            self.last_digests[name] -= 1
            if self.last_digests[name] <= 0:
                del self.last_digests[name]
            held[store] -= 1
            if held[store] <= 0:
                del held[store]
        looks: dict[StreamId, dict[DestinationId, int]] = {}
        for destination in living:
            looks.setdefault(destination.stream_id, {})[destination.destination_id] = 0
        for stream_id, names in looks.items():
            self._state.arm(stream_id, names)

    def drop_unread(self, stores: Iterable[bytes]) -> None:
        """Forget the matches of stores that no destination reads and no last digest needs."""
        index, held = self._intake.index, self._intake.held
        some = [store for store in dict.fromkeys(stores) if store not in held and index.get(store) is not None]
        for store, readers in zip(some, self._state.reader_counts(some), strict=True):
            if not readers:
                index.drop(store)

    # -- the log -------------------------------------------------------------------------------------------------------

    def trim(self) -> None:
        """Delete the records of the log that no store needs, and note the end of `cq.ticks` in Redis.

        Redis has the cursors and the progress of all records before this end. So a gateway that starts restores only
        the cursors and the progress of later records.
        """
        floors = dict(self._intake.reached) | self._intake.index.floors()
        topic = self._settings.topics.pending
        beginnings = self._topics.offsets.beginnings([(topic, number) for number in floors])
        passed = {number: floor for number, floor in floors.items() if floor > beginnings[topic, number]}
        if passed:
            self._topics.offsets.delete_before(topic, passed)
        ticks = self._settings.topics.ticks
        self._state.note_position(self._topics.offsets.ends([(ticks, 0)], committed=True)[ticks, 0])
