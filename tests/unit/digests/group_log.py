"""`cq.pending` of a query over groups, with replays and lost checkpoints, and what a tick makes of it."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace as replace_fields

from gateway.evaluation.one_entry import VERSION, snapshot_of
from gateway.evaluation.records import PlacedRecord, source_batch
from gateway.model.records import Destination, TriggerSpec
from gateway.testing import Stream
from gateway.testing.query import CheckedQuery
from gateway.timers.group_digests import GroupRequest, group_digests
from grouping.digests.cursor import Cursor, VisibilityInterval
from grouping.digests.gather import DigestMatches, DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.model.group import canonical_constants
from grouping.settings import Settings
from grouping.store.notes import TableVersion
from spark_jobs.decode.decode import decode
from spark_jobs.groups.counting import GroupCounting
from spark_jobs.match.evaluate import matches
from spark_jobs.match.residual import evaluate_expression

__all__ = ["AT", "START_MS", "STREAM", "GroupLog", "destination_of", "digest_at", "random_events"]

AT = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = round(AT.timestamp() * 1000)
STREAM = Stream("t (k STRING, f BOOLEAN, i INT, n BIGINT, d DOUBLE, a DECIMAL(10,2))")
_STORE = "p_" + "0" * 24


def random_events(chance: random.Random, count: int) -> list[dict[str, Any]]:
    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    return [
        {
            "k": maybe(chance.choice("abB")),
            "f": maybe(chance.random() < 0.5),
            "i": maybe(chance.randrange(10)),
            "n": maybe(chance.randrange(-5, 40)),
            "d": maybe(round(chance.uniform(-2, 5), 3)),
            "a": maybe(f"{chance.uniform(-9, 9):.2f}"),
        }
        for _ in range(count)
    ]


def _no_letters(*_: object) -> Any:
    raise AssertionError("no match is too large")


class GroupLog:
    """`cq.pending`, as batches and their replays write it: by partition the offsets after each batch."""

    def __init__(
        self,
        chance: random.Random,
        asked: CheckedQuery,
        records: Sequence[PlacedRecord],
        bounds: Sequence[bytes] = (),
    ) -> None:
        """Evaluate all records; with the bounds of the tables' versions each batch has another version, from 1 on."""
        self._asked = asked
        self._bounds = bounds
        self._snapshot = snapshot_of(asked, _STORE, "pending")
        self._chance = chance
        self._parts = {number: [one for one in records if one.partition == number] for number in (0, 1)}
        self.bodies: list[bytes] = []
        self.commits: list[dict[str, int]] = [{}]
        """By batch, what is committed after it."""
        self.ends: list[int] = [0]
        """By batch, the end of the log then."""
        self.versions: dict[tuple[int, int], int] = {}
        """By partition and offset: the version that met the event."""
        self.first: dict[tuple[int, int], int] = {}
        """Of events that a dead batch has written: where its range begins, with which all of them are in."""
        if bounds:
            self._life({0: 0, 1: 0}, {number: len(part) for number, part in self._parts.items()}, {})
            return
        half = {number: len(part) // 2 for number, part in self._parts.items()}
        reached = self._life({0: 0, 1: 0}, half, {})
        # A batch dies after some of its tasks, and nobody replays it as it was.
        for number in range(chance.randrange(3)):
            end = min(reached[number] + chance.randrange(8), len(self._parts[number]))
            self.bodies += self._task(self._parts[number][reached[number] : end], {})
            self.first |= {(number, offset): reached[number] for offset in range(reached[number], end)}
            reached[number] = end
        # The checkpoint is lost: the next one begins at some commit, and cuts its batches otherwise.
        begin = chance.choice(self.commits)
        begun = {number: begin.get(str(number), 0) for number in (0, 1)}
        self._life(begun, {number: len(part) for number, part in self._parts.items()}, reached)

    def _life(self, begin: dict[int, int], until: dict[int, int], singly_until: dict[int, int]) -> dict[int, int]:
        """Evaluate in batches, of which some are replayed; return what was read."""
        chance, reached = self._chance, dict(begin)
        while any(reached[number] < end for number, end in until.items()):
            cuts = {number: min(at + chance.randrange(8), until[number]) for number, at in reached.items()}
            written = [
                self._task(self._parts[number][reached[number] : cuts[number]], singly_until) for number in (0, 1)
            ]
            if chance.random() < 0.4:  # a task dies somewhere, and the batch is replayed
                died = written[chance.randrange(2)]
                self.bodies += died[: chance.randrange(len(died) + 1)]
            for bodies in written:
                self.bodies += bodies
            reached = cuts
            before = self.commits[-1]
            self.commits.append({str(number): max(at, before.get(str(number), 0)) for number, at in reached.items()})
            self.ends.append(len(self.bodies))
        return reached

    def _task(self, records: Sequence[PlacedRecord], singly_until: dict[int, int]) -> list[bytes]:
        if not records:
            return []
        version = VERSION
        if self._bounds:
            version = TableVersion(1, min(len(self.ends), len(self._bounds)))
            self._snapshot = replace(self._snapshot, bounds={0: self._bounds[version.version - 1]})
            self.versions.update({(each.partition, each.offset): version.version for each in records})
        events, letters = decode(source_batch(records), STREAM.declared, Settings.model_construct())
        assert letters is None
        counting = GroupCounting(evaluate_expression, _no_letters, self._snapshot.bounds, singly_until)
        counting.extend(records[0].partition, records[0].offset, records[-1].offset)
        for found in matches(self._snapshot, events):
            counting.take(events, found)
        assert not list(counting.count(lambda *_: iter(())))
        return [body for _, body in counting.records(STREAM.declared.stream_id, version)]


def destination_of(asked: CheckedQuery, over_ms: int, trigger: TriggerSpec | None = None) -> Destination:
    """Return a destination of the query, with its own trigger unless another is given."""
    plan, trigger = asked.query.plan, trigger or asked.trigger
    assert plan.kept is not None
    return Destination(
        "d_" + "0" * 24,
        plan.stream_id,
        plan.group_id,
        asked.query.select.select_id,
        canonical_constants(asked.query.row),
        "shared",
        0,
        replace_fields(trigger, over_ms=over_ms),
        slots=plan.kept.slots,
    )


_ALWAYS: tuple[VisibilityInterval, ...] = ((*VERSION, [(None, None)]),)


def digest_at(
    asked: CheckedQuery,
    log: GroupLog,
    home: Destination,
    cursor: Cursor,
    tick: tuple[int | None, int],
    visibility: tuple[VisibilityInterval, ...] = _ALWAYS,
    from_ms: int = 0,
) -> DigestMatches:
    """Return what a tick makes of the log as it is after some batch."""
    tick_ms, batch = tick
    end = log.ends[batch]

    def read(_partition: int, first: int, last: int) -> Any:
        return iter([(offset, log.bodies[offset]) for offset in range(first, min(last + 1, end))])

    places = MatchPlaces(0, array("q", range(end))) if end else None
    question = DigestQuestion(bytes(12), places, cursor, visibility, tick_ms, log.commits[batch])
    [found] = group_digests(
        PendingLog(read), [GroupRequest(home, question, asked.query.plan, asked.query.select, from_ms)]
    )
    return found
