"""`cq.pending` of an aggregate query, with replays and lost checkpoints, and the digests of its ticks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace as replace_fields

from gateway.evaluation.one_entry import VERSION, snapshot_of
from gateway.evaluation.records import PlacedRecord, source_batch
from gateway.model.records import Destination
from gateway.model.trigger_spec import TriggerSpec
from gateway.testing import Stream
from gateway.testing.query import CheckedQuery
from grouping.digests.answers import AggregatedMatches
from grouping.digests.cursor import Cursor, VisibilityInterval
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.rolling import StoreReaders
from grouping.model.group import canonical_constants
from grouping.settings.settings import Settings
from grouping.store.notes import TableVersion
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.evaluate import matches
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, aggregate_digests
from spark_jobs.engine.operators.aggregate.counting import AggregateCounting
from spark_jobs.engine.operators.aggregate.rolled import rolled_records
from spark_jobs.engine.stages.counting_stage import counting_step

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
        """By batch, the committed offsets after the batch."""
        self.ends: list[int] = [0]
        """By batch, the end of the log then."""
        self.rolled: list[tuple[int, int]] = []
        """The rolled record, and its offset, before which it replaces all records."""
        self.versions: dict[tuple[int, int], list[int]] = {}
        """By partition and offset: the versions that met the event, two where Redis was lost before a replay."""
        self.first: dict[tuple[int, int], int] = {}
        """For events written by a dead batch: the beginning of its range, in which all its events lie."""
        if bounds:
            self._life({0: 0, 1: 0}, {number: len(part) for number, part in self._parts.items()}, {})
            return
        half = {number: len(part) // 2 for number, part in self._parts.items()}
        reached = self._life({0: 0, 1: 0}, half, {})
        # A batch dies after some of its tasks, and is never replayed with the same bounds.
        for number in range(chance.randrange(3)):
            end = min(reached[number] + chance.randrange(8), len(self._parts[number]))
            self.bodies += self._task(self._parts[number][reached[number] : end], {})
            self.first |= {(number, offset): reached[number] for offset in range(reached[number], end)}
            reached[number] = end
        # The checkpoint is lost: the next one begins at some commit, and cuts its batches otherwise.
        begin = chance.choice(self.commits)
        begun = {number: begin.get(str(number), 0) for number in (0, 1)}
        self._life(begun, {number: len(part) for number, part in self._parts.items()}, reached)

    def roll(
        self, batch: int, readers: Sequence[tuple[tuple[VisibilityInterval, ...], Cursor]], *, before: int
    ) -> bool:
        """Have the store's records before an offset put together, once a batch is in; tell whether any were."""
        places = self.places(batch)
        if places is None or before <= (places.rolled or 0):
            return False
        store = StoreReaders.of(places, *zip(*readers, strict=True))
        wanted = ([] if places.rolled is None else [places.rolled]) + [at for at in places.positions if at < before]
        records = [(at, PendingMatches.decode(self.bodies[at])) for at in wanted]
        select, committed = self._asked.query.select, self.commits[batch]
        bodies = rolled_records(select, records, {bytes(12): store}, committed, before, least_gain=1)
        if not bodies:
            return False
        [body] = bodies
        end = self.ends[batch]
        self.bodies.insert(end, body)
        self.rolled = [(end, before)]
        self.ends = [each + (number >= batch) for number, each in enumerate(self.ends)]
        for gone in wanted:
            self.bodies[gone] = b""
        return True

    def places(self, batch: int) -> MatchPlaces | None:
        """Return where the store has something once a batch is in."""
        end = self.ends[batch]
        if not end:
            return None
        places = MatchPlaces(0)
        for offset in range(end):
            places.add(offset)
        for offset, before in self.rolled:
            places.roll(offset, before)
            places.positions.remove(offset)
        return places

    def _life(self, begin: dict[int, int], until: dict[int, int], singly_until: dict[int, int]) -> dict[int, int]:
        """Evaluate in batches, some of them replayed; return the offsets reached."""
        chance, reached = self._chance, dict(begin)
        while any(reached[number] < end for number, end in until.items()):
            cuts = {number: min(at + chance.randrange(8), until[number]) for number, at in reached.items()}
            written = [
                self._task(self._parts[number][reached[number] : cuts[number]], singly_until) for number in (0, 1)
            ]
            if chance.random() < 0.4:  # a task dies somewhere, and the batch is replayed
                number = chance.randrange(2)
                self.bodies += written[number][: chance.randrange(len(written[number]) + 1)]
                if self._bounds and chance.random() < 0.5:  # Redis is lost meanwhile: the replay has other tables
                    self.bodies += written[number]
                    written = [
                        self._task(self._parts[each][reached[each] : cuts[each]], singly_until, lost=each == number)
                        for each in (0, 1)
                    ]
            for bodies in written:
                self.bodies += bodies
            reached = cuts
            before = self.commits[-1]
            self.commits.append({str(number): max(at, before.get(str(number), 0)) for number, at in reached.items()})
            self.ends.append(len(self.bodies))
        return reached

    def _task(
        self, records: Sequence[PlacedRecord], singly_until: dict[int, int], lost: bool | None = None
    ) -> list[bytes]:
        """Evaluate records; `lost` is given once Redis was lost: whether earlier records are there."""
        if not records:
            return []
        version = VERSION
        if self._bounds:
            version = TableVersion(1, min(len(self.ends) + (lost is not None), len(self._bounds)))
            self._snapshot = replace(self._snapshot, bounds={0: self._bounds[version.version - 1]})
            for each in records:
                earlier = self.versions.get((each.partition, each.offset), []) if lost else []
                self.versions[each.partition, each.offset] = [*earlier, version.version]
        events, letters = decode(source_batch(records), STREAM.declared, Settings.model_construct())
        assert letters is None
        counting = AggregateCounting(evaluate_expression, _no_letters, self._snapshot.bounds, singly_until)
        counting.extend(records[0].partition, records[0].offset, records[-1].offset)
        for found in matches(self._snapshot, events):
            counting.take(events, found)
        if (step := counting_step(counting)) is not None:
            assert not list(step.records(None))
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
) -> AggregatedMatches:
    """Return the digest of a tick from the log as of a batch."""
    tick_ms, batch = tick
    end = log.ends[batch]

    def read(_partition: int, first: int, last: int) -> Any:
        return iter([(offset, log.bodies[offset]) for offset in range(first, min(last + 1, end))])

    question = DigestQuestion(bytes(12), log.places(batch), cursor, visibility, tick_ms, log.commits[batch])
    [found] = aggregate_digests(
        PendingLog(read),
        [AggregateRequest(home, question, asked.query.plan, asked.query.select, from_ms)],
    )
    assert isinstance(found, AggregatedMatches)
    return found
