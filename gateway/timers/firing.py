"""Firing of ticks: gathers destinations' matches, writes the cut and the digests, and arms the destinations again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from gateway.kafka import OutgoingRecord
from gateway.metrics import REPEATED_MATCHES, TICK_SECONDS
from gateway.model.end_notice import EndNotice
from gateway.model.membership import Membership
from gateway.model.records import Destination, incarnation_of
from gateway.state.timer_state import TimerState
from gateway.timers.cuts import Cut, Named
from gateway.timers.deliver import Delivery, DueDigest
from gateway.timers.gathering import DigestGathering, DueDestination
from gateway.timers.intake import Intake
from gateway.timers.open_cuts import OpenCuts
from gateway.timers.pending_index import store_key
from gateway.timers.probes import ProgressProbes
from gateway.timers.retention import Retention
from gateway.timers.schedule import (
    digest_from,
    following_tick,
    has_gap,
    is_tick,
    last_tick,
    may_fire,
    missed_by,
    run_of,
    tick_to_fire,
)
from gateway.timers.window_ticks import WindowTicks
from grouping.digests.answers import AggregatedMatches, DigestAnswer, DigestMatches, DigestRefused
from grouping.digests.cursor import Cursor, MovedCursors, visibility_since
from grouping.digests.digest import Digest
from grouping.digests.gather import DigestQuestion
from grouping.digests.rows import RowsUnavailable
from grouping.model.ids import DestinationId, StreamId
from grouping.plan.group import SelectList

__all__ = ["CHUNK", "LastDigest", "TickRun"]

log = logging.getLogger(__name__)

CHUNK = 2500
"""The largest number of destinations that are served together."""
_BYTES = 64 << 20
"""Once the rows of a chunk's digests have more than this number of bytes, no further digest is added to the chunk."""
_EVERYTHING = 1 << 62
_AGAIN_MS = 10_000
LastDigest = DueDigest | OutgoingRecord | None
"""The last digest of a destination, or a dead letter if the digest is refused; None if there is no last digest."""
_SAME_CUT_MS = 1_000
"""The longest time, in milliseconds, for which successive chunks of destinations use the same cut offsets."""


class TickRun:
    """Fires the ticks of destinations, some thousands at a time."""

    def __init__(
        self,
        gathering: DigestGathering,
        state: TimerState,
        intake: Intake,
        probes: ProgressProbes,
        delivery: Delivery,
        retention: Retention,
        cuts: OpenCuts,
        clock: Callable[[], int],
    ) -> None:
        self._state = state
        self._intake = intake
        self._probes = probes
        self._delivery = delivery
        self._retention = retention
        self._cuts = cuts
        self._clock = clock
        self._gathering = gathering
        self.windows = WindowTicks()
        self._last_cut: tuple[str, int, int, dict[str, int]] = ("", 0, 0, {})
        """The last cut: its stream, the instant up to which ticks fired, the time of the cut, and its offsets."""
        self._patience: dict[str, int] = {}
        """Destination whose last digest failed because the disk was full → when the gateway tries again."""
        self.fired: list[int] = []
        """The ticks of the digests that were written in this step of `Timers`. Each step first clears the list."""
        self.shortened: dict[DestinationId, tuple[int, int]] = {}
        """Destination → the lowest epoch and version for which its visibility is still needed."""

    def fire(self, stream_id: StreamId, due_ms: int) -> bool:
        """Serve due destinations; return whether some were due, apart from windows (OVER LAST) that have to wait."""
        found = self._state.due(stream_id, due_ms, CHUNK + self.windows.waiting(stream_id))
        others, windows = self.windows.divide(stream_id, found)
        if others:
            served, idle = self.choose(stream_id, others)
            wide = {each.name for each in served if each.membership.destination.trigger.over_ms and each.tick}
            self.windows.defer(stream_id, wide)
            self.serve(stream_id, [each for each in served if each.name not in wide], idle, due_ms)
        elif windows:
            with self.windows.lot():
                self.serve(stream_id, *self.choose(stream_id, windows), due_ms)
        return bool(others or windows)

    def serve(
        self,
        stream_id: StreamId,
        served: Sequence[DueDestination],
        idle: list[DestinationId],
        due_ms: int | None = None,
    ) -> None:
        """Write the digests of some destinations, and arm the destinations for their next ticks.

        Args:
            stream_id: The destinations' stream.
            served: The destinations to serve.
            idle: Destinations to disarm. The method adds the served destinations that have no next tick.
            due_ms: The instant up to which ticks fire. With None, the cut does not use the offsets of the last cut.
        """
        progress = self._probes.progress(stream_id)
        covered, runs = self._covered(stream_id, due_ms), progress.runs
        ready: list[DueDigest] = []
        left: list[Named] = []
        cursors: dict[str, Cursor] = {}
        ticks: dict[DestinationId, int] = {}
        done: list[tuple[DestinationId, Membership]] = []
        quiet, letters, size = dict[str, Cursor](), list[OutgoingRecord](), 0
        moves = MovedCursors(covered)
        for each, answer in self._gathering.answers([each.after_gap(covered) for each in served], covered):
            membership, tick, cursor = each.membership, each.tick, each.cursor
            if tick is not None and isinstance(answer, DigestRefused):
                letters.append(self._delivery.refusal(membership.destination, tick, answer))
                cursor = quiet[each.incarnation] = self._moved(moves, each, tick, answer)
            elif tick is not None and (answer.written or membership.destination.clause.even_if_empty):
                digest = self._digest(membership.destination, answer, each.from_ms)
                if digest is None:
                    left.append((each.name, tick, each.from_ms))
                    idle.append(each.name)
                    continue
                cursor = self._moved(moves, each, tick, answer)
                ready.append(self._due(each, tick, answer, digest, cursor))
            elif tick is not None and ((isinstance(answer, AggregatedMatches) and answer.counted) or each.gap):
                cursor = quiet[each.incarnation] = self._moved(moves, each, tick, answer)
            else:
                cursor = self._moved(moves, each, None, answer)
            if cursor != each.cursor:
                cursors[each.incarnation] = cursor
            after_ms = max(progress.fired_ms, last_tick(membership, each.cursor, runs))
            left_ms = 0 if self._came_since(each, answer) else answer.left_ms
            following = following_tick(membership, tick, left_ms, after_ms, runs)
            if following is None:
                idle.append(each.name)
            else:
                ticks[each.name] = following
            self.shorten(each.name, membership, answer.oldest)
            done.append((each.name, membership))
            REPEATED_MATCHES.inc(answer.repeats)
            size += answer.rows.size if isinstance(answer, DigestMatches) else 0
            if size > _BYTES:
                break  # the destinations that are left out are still due
        if ready or left:
            named = [*(one.named for one in ready), *left]
            gaps = (each.name for each in served if each.gap)
            key, cut = self._delivery.cut(stream_id, covered, named, self._clock(), gaps, self._intake.reached)
            self._deliver(key, cut, ready, left, quiet, letters)
        else:
            self._delivery.move(quiet, letters)
        if ready:
            self.fired += [one.tick_ms for one in ready]
            TICK_SECONDS.observe((self._clock() - min(self.fired)) / 1000)
        self._state.settle(stream_id, ticks, idle, cursors)
        self._retention.release(done, cursors)

    def _covered(self, stream_id: StreamId, due_ms: int | None) -> dict[str, int]:
        """Return the offsets for a new cut.

        If the last cut is recent, and was for the same stream and instant, its offsets are used again: they cover all
        ticks up to this instant. With equal offsets, destinations that read the same store share the gathered matches.
        """
        now_ms, known = self._clock(), self._last_cut
        if due_ms is None or known[:2] != (stream_id, due_ms) or not 0 <= now_ms - known[2] < _SAME_CUT_MS:
            self._last_cut = known = (stream_id, due_ms or 0, now_ms, dict(self._probes.progress(stream_id).covered))
        return dict(known[3])

    def _digest(
        self, destination: Destination, answer: DigestAnswer, since_ms: int, select: SelectList | None = None
    ) -> Digest | None:
        """Return a destination's digest; None if the disk has no space for its rows."""
        try:
            if not isinstance(answer, DigestMatches):
                raise RowsUnavailable("the rows of a digest cannot be kept", detail=answer.reason)
            digest = self._delivery.digest(destination, answer.rows, since_ms, select)
            if isinstance(answer, AggregatedMatches):
                digest = digest._replace(matches=answer.counted, late=answer.late)
            return digest._replace(late=0) if answer.positions else digest
        except RowsUnavailable as error:
            fields = {"destination": destination.destination_id, "reason": error.detail}
            log.error("the disk has no space for a digest, it is tried again", extra=fields)
            return None

    def _due(self, each: DueDestination, tick: int, answer: DigestAnswer, digest: Digest, cursor: Cursor) -> DueDigest:
        """Return a digest to write, with a dead letter for rows that do not fit."""
        destination, letter = each.membership.destination, None
        if isinstance(answer, AggregatedMatches) and answer.left_out:
            letter = self._delivery.shortened(destination, tick, answer.left_out)
        return DueDigest(destination, digest, tick, each.from_ms, each.incarnation, cursor, letter)

    def _deliver(
        self,
        key: str,
        cut: Cut,
        ready: Sequence[DueDigest],
        left: Sequence[Named],
        quiet: Mapping[str, Cursor],
        letters: Sequence[OutgoingRecord],
    ) -> None:
        """Write the ready digests of a cut and the `quiet` cursors; the cut stays open for the other digests."""
        rest = msgspec.structs.replace(cut, digests=tuple(left)) if left else None
        self._delivery.deliver(key, cut, ready, rest, quiet, letters)
        self._cuts.keep(key, rest, self._clock())

    def choose(
        self, stream_id: StreamId, due: Sequence[tuple[DestinationId, int]], due_ms: int | None = None
    ) -> tuple[list[DueDestination], list[DestinationId]]:
        """Return the destinations to serve now, and the destinations to disarm; `missed_by` explains `due_ms`."""
        missed, runs = self._probes.missed(stream_id), self._probes.runs(stream_id)
        idle: list[DestinationId] = []
        armed: list[tuple[DestinationId, Membership, int]] = []
        for (name, armed_ms), membership in zip(due, self._state.memberships([name for name, _ in due]), strict=True):
            waits = name in self._retention.last_digests or name in self._cuts.waiting
            if membership is None or waits or not may_fire(membership, armed_ms):
                # The destination has ended, or is paused, or waits for an earlier digest; after that digest it gets a
                # look.
                idle.append(name)
            else:
                armed.append((name, membership, armed_ms))
        incarnations = [incarnation_of(name, membership.timed) for name, membership, _ in armed]
        served = []
        for (name, membership, armed_ms), incarnation, cursor in zip(
            armed, incarnations, self._state.cursors(incarnations), strict=True
        ):
            last_ms, gone = last_tick(membership, cursor, runs), missed_by(membership, armed_ms, missed, due_ms)
            tick = None if not armed_ms else tick_to_fire(membership, armed_ms, gone, runs)
            fired = tick is not None and (tick == cursor.tick_ms or tick <= last_ms)
            if tick is not None and (fired or run_of(membership, tick, runs) or not is_tick(membership, tick, runs)):
                tick = None  # served before a crash, or no longer a tick: a look finds the next tick
            from_ms = 0 if tick is None else digest_from(membership, tick, gone, last_ms)
            gap = tick is not None and has_gap(membership, tick, gone, last_ms)
            served.append(DueDestination(name, membership, incarnation, cursor, tick, from_ms, gap))
        return served, idle

    def _moved(self, moves: MovedCursors, each: DueDestination, tick: int | None, answer: DigestAnswer) -> Cursor:
        """Return a destination's cursor after a tick or, if the tick is None, after a look, which writes no digest."""
        timed, over_ms = each.membership.timed, each.membership.destination.trigger.over_ms
        reached = self._intake.reached[timed.partition] if answer.reached is None else answer.reached
        return moves.of(each.cursor, tick, reached, answer.held, over_ms, answer.positions)

    def _came_since(self, each: DueDestination, answer: DigestAnswer) -> bool:
        """Tell whether aggregates came in after an answer was gathered; the next tick depends on their times."""
        stored = self._intake.index.get(store_key(each.membership.timed.store))
        return stored is not None and answer.reached is not None and stored.reaches(answer.reached)

    def shorten(self, name: DestinationId, membership: Membership, oldest: tuple[int, int] | None) -> None:
        """Note the lowest epoch and version for which a destination's visibility is still needed by later matches.

        Args:
            name: The destination's id.
            membership: The destination with its members.
            oldest: The lowest epoch and version among the matches that wait for later ticks; None if no match waits.
        """
        visibility, floor = membership.timed.visibility, self._probes.floor(membership.destination.stream_id)
        if len(visibility) > 1 and floor is not None:
            table = floor if oldest is None else min(floor, oldest)
            if visibility_since(visibility, table) != visibility:
                self.shortened[name] = table

    def finish(self, key: str, cut: Cut) -> None:
        """Write the digests of an open cut. Only the cut decides what they contain, so each try makes equal digests."""
        memberships = self._state.memberships([name for name, _, _ in cut.digests])
        known = [
            DueDestination(name, membership, incarnation_of(name, membership.timed), Cursor(), tick, since_ms)
            for (name, tick, since_ms), membership in zip(cut.digests, memberships, strict=True)
            if membership is not None and membership.timed.born_ms < tick
        ]
        cursors = self._state.cursors([each.incarnation for each in known])
        left = [
            each._replace(cursor=cursor, gap=each.name in cut.gaps).after_gap(cut.covered)
            for each, cursor in zip(known, cursors, strict=True)
            # A cursor at the tick shows that the digest is written: while the cut is open, no later digest moves it.
            if cursor.tick_ms != each.tick
        ]
        ready, again = list[DueDigest](), list[Named]()
        quiet, letters = dict[str, Cursor](), list[OutgoingRecord]()
        moves = MovedCursors(cut.covered)
        for each, answer in self._gathering.answers(left, cut.covered, cut.below):
            destination, tick = each.membership.destination, each.tick or 0
            if isinstance(answer, DigestRefused):
                letters.append(self._delivery.refusal(destination, tick, answer))
                quiet[each.incarnation] = self._moved(moves, each, tick, answer)
                continue
            digest = self._digest(destination, answer, each.from_ms)
            if digest is None:
                again.append((each.name, tick, each.from_ms))
            else:
                ready.append(self._due(each, tick, answer, digest, self._moved(moves, each, tick, answer)))
        log.info("finishing digests of a cut", extra={"digests": len(ready), "left": len(again)})
        self._deliver(key, cut, ready, again, quiet, letters)
        # Each destination gets a look: matches may wait for later ticks, and `choose` has disarmed new incarnations.
        waiting = {name for name, _, _ in again}
        named = zip(cut.digests, memberships, strict=True)
        looks = {name: 0 for (name, _, _), membership in named if membership is not None and name not in waiting}
        self._state.settle(cut.stream_id, looks, (), quiet | {one.incarnation: one.cursor for one in ready})

    def last_digests(self, notices: Iterable[EndNotice]) -> Iterator[tuple[EndNotice, LastDigest]]:
        """Yield the notice of each ended destination with the destination's last digest.

        The notice gives the versions of the constant tables that the destination saw, so a last digest does not depend
        on the time at which it is made. If the disk has no space for a digest, nothing is yielded for its destination
        now, nor in the next ten seconds.
        """
        now_ms, index = self._clock(), self._intake.index
        self._patience = {name: at_ms for name, at_ms in self._patience.items() if 0 < at_ms - now_ms <= _AGAIN_MS}
        asked = [notice for notice in notices if notice.destination.destination_id not in self._patience]
        incarnations = [incarnation_of(notice.destination.destination_id, notice.timed) for notice in asked]
        cursors = self._state.cursors(incarnations)
        stores = [store_key(notice.timed.store) for notice in asked]
        questions = [
            DigestQuestion(store, index.get(store), cursor, notice.timed.visibility, _EVERYTHING, None)
            for notice, store, cursor in zip(asked, stores, cursors, strict=True)
        ]
        for place, answer in self._gathering.last_answers(asked, questions):
            notice, incarnation, cursor = asked[place], incarnations[place], cursors[place]
            destination = notice.destination
            membership = Membership(destination, 0, timed=notice.timed)
            last_ms = last_tick(membership, cursor, self._probes.runs(destination.stream_id))
            if isinstance(answer, DigestRefused):
                yield notice, self._delivery.refusal(destination, notice.ended_ms, answer)
                continue
            empty_too = destination.clause.even_if_empty and notice.reason == "expired"
            if destination.of_rows or last_ms >= notice.ended_ms or not (answer.written or empty_too):
                yield notice, None
                continue
            since_ms = digest_from(membership, notice.ended_ms, None, last_ms)
            digest = self._digest(destination, answer, since_ms, notice.select)
            if digest is None:
                self._patience[destination.destination_id] = now_ms + _AGAIN_MS
            else:
                due = DueDestination(destination.destination_id, membership, incarnation, cursor, None, since_ms)
                yield notice, self._due(due, notice.ended_ms, answer, digest, Cursor(notice.ended_ms))
