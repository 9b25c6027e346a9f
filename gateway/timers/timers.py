"""Timers: stored matches are taken in, ticks that are settled fire, and what nobody reads any more goes.

One step does a bounded amount of work, so that commands are never kept waiting; `busy` tells that there is more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from gateway.commit import Commits
from gateway.kafka import LogReader, TailReader, Topics
from gateway.metrics import TICK_SECONDS
from gateway.records import PENDING_PARTITIONS, EndNotice, Holder
from gateway.timers.cursor import Cursor, Cut
from gateway.timers.deliver import Delivery, Ready
from gateway.timers.gather import Gathered, Wanted, gather
from gateway.timers.pending_index import PendingIndex, Stored, store_key
from gateway.timers.pending_log import PendingLog
from gateway.timers.probes import Probes
from gateway.timers.schedule import digest_from, is_tick, tick_after, tick_to_fire
from gateway.timers.state import Settled, TimerState
from gateway.working_copy import WorkingCopy
from grouping.pending_matches import PendingMatches
from grouping.settings import Settings

__all__ = ["Timers"]

log = logging.getLogger(__name__)

_CHUNK = 5000
"""Destinations served at once."""
_TAKEN = 500
"""Records of the log taken in at once."""
_NOTE_MS = 60_000
_TRIM_MS = 30_000
_EVERYTHING = 1 << 62
_HELD = 64
"""Positions that a cursor names; from the first of more it reads the log again."""


class Timers:
    """The gateway's timers, used by its one thread."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: Topics,
        commits: Commits,
        clock: Callable[[], int],
    ) -> None:
        """Begin with nothing; `recover` comes first.

        Args:
            settings: Of the gateway.
            working: Its working copy.
            topics: The broker's offsets.
            commits: They write all that the gateway writes.
            clock: The present, epoch milliseconds.
        """
        self._settings = settings
        self._working = working
        self._topics = topics
        self._clock = clock
        self._state = TimerState(working)
        self._delivery = Delivery(settings, working, commits)
        self._log = PendingLog(settings)
        self._index = PendingIndex()
        self._tail: TailReader | None = None
        self._cuts: dict[str, Cut] = {}
        self._probes = Probes(settings, working, topics, self._state)
        self._ending: set[bytes] = set()
        self._noted_ms = self._trimmed_ms = 0
        self.busy = False
        """Whether the next step has work already."""
        self.fired: list[int] = []
        """The ticks of the digests of the last step."""

    # -- beginning -----------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Take up what Kafka has: cursors and open cuts at once, stored matches as the log is read."""
        self._read_ticks()
        if self._tail is not None:
            self._tail.close()
        topic = self._settings.topic("pending")
        places = [(topic, number) for number in range(PENDING_PARTITIONS)]
        beginnings = self._topics.beginnings(places)
        self._tail = TailReader(
            self._settings, topic, {number: beginnings[topic, number] for number in range(PENDING_PARTITIONS)}
        )
        self._index = PendingIndex()
        self._ending.clear()
        self._working.joined.clear()
        self._probes.reset()
        self.busy = True

    def _read_ticks(self) -> None:
        """Bring cursors up to `cq.ticks`, and find the cuts whose digests are not all out."""
        topic, reader = self._settings.topic("ticks"), LogReader(self._settings)
        since = self._state.read_position()
        cursors: dict[str, Cursor | None] = {}
        settled: dict[str, Settled | None] = {}
        self._cuts, end = {}, since
        try:
            for message in reader.since(topic, {0: 0}):
                kind, _, rest = _text(message.key()).partition("/")
                value = message.value()
                body = value.encode() if isinstance(value, str) else value or None
                offset = message.offset() or 0
                end = max(end, offset + 1)
                match kind:
                    case "cut" if body is None:
                        self._cuts.pop(rest, None)
                    case "cut" if body is not None:
                        self._cuts[rest] = msgspec.msgpack.decode(body, type=Cut)
                    case "cursor" if offset >= since:
                        cursors[rest] = None if body is None else msgspec.msgpack.decode(body, type=Cursor)
                    case "settled" if offset >= since:
                        settled[rest] = None if body is None else msgspec.msgpack.decode(body, type=Settled)
        finally:
            reader.close()
        self._state.restore(cursors, settled, end)

    # -- one step ------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Do a bounded amount of what is to be done now."""
        now_ms = self._clock()
        self.fired = []
        self._join()
        taken = self._take_in()
        assert self._tail is not None, "recovered before"
        self._probes.step(now_ms, self._tail.reached)
        self.busy = taken == _TAKEN
        if self._probes.completed:
            if self._cuts:
                self._finish_cut()
                self.busy = True
                return
            for stream_id in list(self._working.streams):
                self._advance(stream_id, now_ms)
        if now_ms >= self._noted_ms + _NOTE_MS:
            self._noted_ms = now_ms
            self._delivery.note_settled({name: self._probes.note(name) for name in self._working.streams})
        if now_ms >= self._trimmed_ms + _TRIM_MS:
            self._trimmed_ms = now_ms
            self._trim()

    def evaluated_ms(self, stream_id: str) -> int:
        """Return up to when everything published to a stream is evaluated and taken in here."""
        return self._probes.frontier(stream_id).evaluated_ms

    def _join(self) -> None:
        """Take up destinations that have begun to read a store in which something is pending already."""
        joined, self._working.joined = self._working.joined, []
        cursors = {}
        assert self._tail is not None, "recovered before"
        for store, name in joined:
            stored = self._index.get(store_key(store))
            if stored is not None:
                stored.idle.add(name)
                stored.readers += 1
                cursors[name] = Cursor(next=self._tail.reached[stored.partition])
        if cursors:
            self._state.begin_cursors(cursors)

    def _take_in(self) -> int:
        """Take in what the evaluator has written, and arm who is to get it."""
        assert self._tail is not None, "recovered before"
        messages = self._tail.read(_TAKEN)
        armed: dict[str, dict[bytes, tuple[Stored, int]]] = {}
        for message in messages:
            partition, offset, body = message.partition(), message.offset(), message.value()
            if partition is None or offset is None or not isinstance(body, bytes):
                continue
            record = PendingMatches.decode(body)
            if record.stream_id not in self._working.streams:
                continue
            self._log.keep((partition, offset), record, len(body))
            stores = armed.setdefault(record.stream_id, {})
            for store, stored, earliest_ms in self._index.take_in(record, partition, offset):
                before = stores.get(store)
                stores[store] = (stored, earliest_ms if before is None else min(earliest_ms, before[1]))
        for stream_id, stores in armed.items():
            self._arm(stream_id, stores)
        return len(messages)

    def _arm(self, stream_id: str, stores: dict[bytes, tuple[Stored, int]]) -> None:
        """Arm the readers of stores that have got matches: all of them, or those that had nothing to wait for."""
        everyone = [
            store
            for store, (stored, earliest_ms) in stores.items()
            if stored.earliest_ms is None or earliest_ms < stored.earliest_ms
        ]
        wanted: dict[str, int] = {}
        for store, readers in zip(everyone, self._state.readers(everyone), strict=True):
            stored, earliest_ms = stores[store]
            stored.earliest_ms = earliest_ms
            stored.readers = len(readers)
            stored.idle.clear()
            if not readers and store not in self._ending:
                self._index.drop(store)
            for name in readers:
                wanted[name] = min(earliest_ms, wanted.get(name, earliest_ms))
        for stored, earliest_ms in stores.values():
            for name in stored.idle:
                wanted[name] = min(earliest_ms, wanted.get(name, earliest_ms))
            stored.idle.clear()
        settled_ms = self._probes.frontier(stream_id).settled_ms
        names = list(wanted)
        ticks = {}
        for name, holder in zip(names, self._state.holders(names), strict=True):
            if holder is not None and (tick := tick_after(holder, max(wanted[name], settled_ms))) is not None:
                ticks[name] = tick
        self._state.arm(stream_id, ticks)

    # -- firing --------------------------------------------------------------------------------------------------------

    def _advance(self, stream_id: str, now_ms: int) -> None:
        """Fire what a stream's settled time allows; it moves on when nothing is left to fire."""
        frontier = self._probes.frontier(stream_id)
        due_ms = self._probes.due(stream_id, now_ms)
        if due_ms <= frontier.settled_ms:
            return
        due = self._state.due(stream_id, due_ms, _CHUNK)
        if due:
            self._fire(stream_id, due, due_ms)
            self.busy = True
            return
        self._probes.settle(stream_id, due_ms)

    def _fire(self, stream_id: str, due: list[tuple[str, int]], due_ms: int) -> None:
        """Serve some destinations whose ticks are settled, or that are to be looked at."""
        frontier, missed = self._probes.frontier(stream_id), self._probes.missed(stream_id)
        names = [name for name, _ in due]
        holders = self._state.holders(names)
        served: list[tuple[str, Holder, Cursor, int | None]] = []
        idle: list[str] = []
        for (name, armed_ms), holder, cursor in zip(due, holders, self._state.cursors(names), strict=True):
            if holder is None or not (holder.windows or 0 < armed_ms <= holder.timed.changed_ms):
                idle.append(name)  # gone, or paused before its tick: RESUME has it looked at again
                continue
            tick = None if not armed_ms else tick_to_fire(holder, armed_ms, missed)
            if tick is not None and (tick <= cursor.tick_ms or not is_tick(holder, tick)):
                tick = None  # served before a crash, or no tick any more: look when the next one is
            served.append((name, holder, cursor, tick))
        covered = dict(frontier.covered)
        found = gather(self._log, [self._question(*each, covered) for each in served])
        ready: list[Ready] = []
        cursors: dict[str, Cursor] = {}
        ticks: dict[str, int] = {}
        for (name, holder, cursor, tick), answer in zip(served, found, strict=True):
            wanted = tick is not None and bool(answer.rows or holder.destination.clause.even_if_empty)
            moved = self._moved(holder, cursor, tick if wanted else None, covered, answer)
            if wanted and tick is not None:
                since_ms = digest_from(holder, tick, missed, cursor.tick_ms)
                ready.append(Ready(holder.destination, answer.rows, tick, since_ms, moved))
            elif moved != cursor:
                cursors[name] = moved
            following = self._following(holder, tick, answer, max(frontier.settled_ms, cursor.tick_ms))
            if following is None:
                idle.append(name)
            else:
                ticks[name] = following
        if ready:
            self._write(stream_id, covered, ready)
            cursors |= {each.destination.destination_id: each.cursor for each in ready}
            self.fired += [each.tick_ms for each in ready]
            TICK_SECONDS.observe((self._clock() - min(self.fired)) / 1000)
        self._state.settle(stream_id, ticks, idle, cursors)
        self._release([(name, holder) for name, holder, _, _ in served], cursors)

    def _question(self, _: str, holder: Holder, cursor: Cursor, tick: int | None, covered: dict[str, int]) -> Wanted:
        store = store_key(holder.timed.store)
        return Wanted(store, self._index.get(store), cursor, holder.timed.history, tick, covered)

    def _moved(
        self, holder: Holder, cursor: Cursor, tick: int | None, covered: dict[str, int], answer: Gathered
    ) -> Cursor:
        """Return a destination's cursor after a tick (or after a look that found nothing to send)."""
        assert self._tail is not None, "recovered before"
        reached, held = self._tail.reached[holder.timed.partition], answer.held
        if len(held) > _HELD:
            reached, held = held[0], ()
        if tick is None:
            return msgspec.structs.replace(cursor, next=max(cursor.next, reached), held=held) if held else cursor
        return Cursor(tick, covered, reached, held)

    @staticmethod
    def _following(holder: Holder, tick: int | None, answer: Gathered, served_ms: int) -> int | None:
        """Return the tick for which a destination is armed next: the first that has something, if any has."""
        after_ms = max(served_ms, tick or 0)
        if tick is None and holder.timed.history[1:]:
            after_ms = max(after_ms, holder.timed.changed_ms)  # RESUME: what waited comes at the first tick after it
        if holder.destination.clause.even_if_empty:
            return tick_after(holder, max(after_ms, holder.timed.born_ms))
        return None if answer.left_ms is None else tick_after(holder, max(after_ms, answer.left_ms))

    def _write(self, stream_id: str, covered: dict[str, int], ready: list[Ready]) -> None:
        key, cut = self._delivery.cut(stream_id, covered, ready, self._clock())
        self._delivery.deliver(key, cut, ready)

    def _finish_cut(self) -> None:
        """Write the digests of a cut that a crash left unfinished: the same ones, for the cut is the same."""
        key, cut = next(iter(self._cuts.items()))
        names = [name for name, _, _ in cut.digests]
        questions, open_ones = [], []
        for (_, tick, since_ms), holder, cursor in zip(
            cut.digests, self._state.holders(names), self._state.cursors(names), strict=True
        ):
            if holder is not None and cursor.tick_ms < tick and holder.timed.born_ms < tick:
                questions.append(self._question("", holder, cursor, tick, dict(cut.covered)))
                open_ones.append((holder, cursor, tick, since_ms))
        ready = [
            Ready(
                holder.destination,
                answer.rows,
                tick,
                since_ms,
                self._moved(holder, cursor, tick, dict(cut.covered), answer),
            )
            for (holder, cursor, tick, since_ms), answer in zip(open_ones, gather(self._log, questions), strict=True)
        ]
        log.info("finishing digests of a cut", extra={"digests": len(ready)})
        self._delivery.deliver(f"cut/{key}", cut, ready)
        cursors = {each.destination.destination_id: each.cursor for each in ready}
        # Looked at once more: what is left for later ticks arms them.
        self._state.settle(cut.stream_id, dict.fromkeys(cursors, 0), (), cursors)
        del self._cuts[key]

    # -- the end of a destination --------------------------------------------------------------------------------------

    def last_digest(self, notice: EndNotice) -> Ready | None:
        """Return the last digest of a destination that has ended, None when nothing is pending.

        It is the same whenever it is asked for: the notice tells which versions of the tables the destination saw.
        """
        destination = notice.destination
        name, store = destination.destination_id, store_key(notice.timed.store)
        even_if_empty = destination.clause.even_if_empty and notice.reason == "expired"
        if self._index.get(store) is None and not even_if_empty:
            return None
        cursor = self._state.cursors([name])[0]
        if cursor.tick_ms >= notice.ended_ms:
            return None
        wanted = Wanted(store, self._index.get(store), cursor, notice.timed.history, _EVERYTHING, None)
        answer = gather(self._log, [wanted])[0]
        if not answer.rows and not even_if_empty:
            return None
        since_ms = digest_from(Holder(destination, 0, timed=notice.timed), notice.ended_ms, None, cursor.tick_ms)
        return Ready(destination, answer.rows, notice.ended_ms, since_ms, Cursor(notice.ended_ms))

    @property
    def taken_in(self) -> int:
        """How often all that was committed has been taken in: twice more than at a moment, and all up to then is."""
        return 0 if self._cuts else self._probes.completed

    def hold(self, store: bytes) -> None:
        """Keep the stored matches of a destination that has a last digest to come."""
        self._ending.add(store)

    def let_go(self, store: bytes) -> None:
        """Forget matches that were held, if nobody else reads them."""
        self._ending.discard(store)
        if self._index.get(store) is not None and not self._state.reader_counts([store])[0]:
            self._index.drop(store)

    # -- what nobody needs any more ------------------------------------------------------------------------------------

    def _release(self, served: list[tuple[str, Holder]], cursors: dict[str, Cursor]) -> None:
        """Forget positions that all readers of a store have passed; once in a while for a store that has many."""
        for name, holder in served:
            store = store_key(holder.timed.store)
            stored = self._index.get(store)
            if stored is None:
                continue
            stored.idle.add(name)
            stored.fired += 1
            if store in self._ending or stored.fired < stored.readers:
                continue
            stored.fired = 0
            if stored.readers == 1 and name in cursors:
                passed = [cursors[name]]
            else:
                readers = self._state.readers([store])[0]
                passed = self._state.cursors(readers)
            stored.readers = len(passed)
            if passed:
                low = min(cursor.next for cursor in passed)
                stored.forget_before(low, {offset for cursor in passed for offset in cursor.held})
            if stored.first is None:
                self._index.drop(store)

    def _trim(self) -> None:
        """Delete the records of the log that no store needs any more, and note how far `cq.ticks` is known."""
        if not self.taken_in or self._tail is None:
            return
        floors = dict(self._tail.reached) | self._index.floors()
        topic = self._settings.topic("pending")
        beginnings = self._topics.beginnings([(topic, number) for number in floors])
        passed = {number: floor for number, floor in floors.items() if floor > beginnings[topic, number]}
        if passed:
            self._topics.delete_before(topic, passed)
        ticks = self._settings.topic("ticks")
        self._state.note_position(self._topics.ends([(ticks, 0)], committed=True)[ticks, 0])


def _text(key: bytes | str | None) -> str:
    return key.decode() if isinstance(key, bytes) else key or ""
