"""The lane: one query for all quiet streams of an evaluator (docs/design/041-lanes.md)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.ownership import EvaluatorFences
from grouping.store.table_store import TableStore
from grouping.store.task_notes import LaneHand
from spark_jobs.runtime.application.session import core_count
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.kafka.pin_log import MicroBatch
from spark_jobs.runtime.streams.checkpoints import Checkpoints
from spark_jobs.runtime.streams.idle_clock import IdleClock
from spark_jobs.runtime.streams.lane_log import LaneLog, LaneStart, Seat
from spark_jobs.runtime.streams.lane_query import LaneQuery
from spark_jobs.runtime.streams.progress import Committed
from spark_jobs.runtime.streams.query_use import QueryUse
from spark_jobs.runtime.streams.worker_deaths import dead_task, failure_reason
from spark_jobs.runtime.worker.lane_task import LaneStream, LaneTask
from spark_jobs.runtime.worker.worker import Evaluation

__all__ = ["Evaluate", "Lane"]

log = logging.getLogger(__name__)

_REST_SECONDS = 0.3
"""How long the query must run before it may be stopped to let streams join, or leave without `at_once`."""
_FIRST_BACKOFF_SECONDS = 0.5
"""How long the query waits after its first failure; each further failure doubles the wait."""
_LONGEST_BACKOFF_SECONDS = 30.0
_FAILURES_TOGETHER = 2
"""After each of this many failures with unknown causes, the query is only started again.

At the next failure, all streams leave the lane. A committed micro-batch sets the count back to 0.
"""
_PATIENCE_SECONDS = 3.0
"""How long a task may evaluate a stream. After this time, the stream leaves the lane, so that the others go on."""
_NAMED = re.compile(r"StreamFailed: stream ([\w.-]+):")
_UNREADABLE = re.compile(r"Record at topic (\S+) partition")

Evaluate = Callable[[Stream, bool, dict[str, int], MicroBatch | None], Evaluation]
"""Returns the function that a stream's tasks run.

The arguments: the stream; whether the tasks must be cautious; source partition → position up to which an earlier
checkpoint may have evaluated events; the micro-batch that the query of another checkpoint began, or None.
"""


class Lane:
    """The streams of a lane, and the lane's query. Only a single thread may use the lane.

    The checkpoint stays the same while streams join and leave: the query is stopped, the topics of its offset log are
    changed, and the query is started again. A stream that leaves gets a copy of its entries in the log, including its
    entries for the micro-batch under way. So a replay of this batch has the same events and the same pinned version.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        fences: EvaluatorFences,
        store: TableStore,
        broker: Broker,
        checkpoints: Checkpoints,
        evaluate: Evaluate,
        use: QueryUse,
        clock: Callable[[], float],
    ) -> None:
        """Begin without a query.

        Args:
            spark: The session.
            settings: The evaluator's settings.
            fences: The fences under which tasks write.
            store: Redis, with the pins and the name of each stream's valid checkpoint.
            broker: Kafka, with the source topics.
            checkpoints: The checkpoints of the streams and the lane.
            evaluate: Returns the function that evaluates a stream.
            use: Tells which streams have event-time queries.
            clock: Monotonic seconds.
        """
        self._spark, self._use = spark, use
        self._settings, self._fences, self._broker = settings, fences, broker
        self._evaluate = evaluate
        self._clock = clock
        self.log = LaneLog(settings, store, checkpoints)
        """The lane's checkpoint."""
        self._idle = IdleClock(settings, self.log.checkpoint.files)
        self._hand = LaneHand(settings)
        self._seats: dict[str, Seat] = {}
        """The streams that the query evaluates, by `Stream.source_id`."""
        self._joining: dict[str, Seat] = {}
        """The streams that wait for the query's next start, by `Stream.source_id`."""
        self._leaving: dict[str, bool] = {}
        """For the streams that must leave, by `Stream.source_id`: whether the stream goes on in a query of its own."""
        self._cancel_at: float | None = None
        """When to cancel the micro-batch under way of a query that must stop; None while the query need not stop."""
        self._interrupted: frozenset[str] = frozenset()
        self._query: LaneQuery | None = None
        self._seen_in_hand: dict[int, tuple[tuple[int, str], float]] = {}
        """By number of a task: the micro-batch and the stream that the task evaluates, and since when."""
        self._looked_at = 0.0
        self._failures = 0
        self._start_at = self._rests_until = 0.0
        self.seen: Committed | None = None
        """The last committed micro-batch."""
        self.reason: str | None = None
        """Why the query does not run; kept after a restart until a micro-batch is committed."""

    def open(self, live: Iterable[Stream]) -> None:
        """Go on with the checkpoint of an earlier evaluator; make a new checkpoint if that one is lost or broken.

        Args:
            live: The streams that this evaluator has.

        Raises:
            OperationalError: Redis or the checkpoint's file system does not answer.
        """
        if not self.log.name:
            self._interrupted = frozenset(source_id for _, source_id in self._hand.in_hand().values())
            self.log.open(live)

    @property
    def is_running(self) -> bool:
        """Whether the query runs."""
        return self._query is not None

    @property
    def is_alone(self) -> bool:
        """Whether a single stream is in the lane."""
        return len(self._seats) + len(self._joining) == 1

    def holds(self, source_id: str) -> bool:
        """Tell whether a stream is in the lane.

        A stream is in the lane also while it waits for the query's next start, and while it is not released yet.
        """
        return source_id in self._seats or source_id in self._joining

    def has_room_for(self, stream: Stream) -> bool:
        """Tell whether a stream may join: no other stream in the lane, and none in `LaneLog.kept`, has its topic."""
        seats = (*self._seats.values(), *self._joining.values())
        kept = (each for source_id, each in self.log.kept.items() if source_id != stream.source_id)
        return all(each.stream.topic != stream.topic for each in (*seats, *kept))

    def was_interrupted(self, source_id: str) -> bool:
        """Tell whether a task was evaluating the stream when an earlier evaluator ended, perhaps due to the stream."""
        return source_id in self._interrupted

    def join(self, stream: Stream, place: LaneStart) -> None:
        """Let a stream join at the query's next start.

        Args:
            stream: The stream. Its own checkpoint must not have a micro-batch under way.
            place: Where the lane begins to evaluate the stream.
        """
        self._joining[stream.source_id] = Seat(stream, place.position.offsets, place.earlier_ends)

    def go_on(self, stream: Stream) -> None:
        """Take a stream of `LaneLog.kept` back into the lane, with its part of the micro-batch under way.

        The query must not have started yet.

        Raises:
            OperationalError: Redis or the checkpoint's file system does not answer.
        """
        self._seats[stream.source_id] = self.log.take_back(stream)

    def redefine(self, stream: Stream) -> None:
        """Use the gateway's changes of a stream. The query uses them after its next start."""
        for seats in (self._seats, self._joining):
            if stream.source_id in seats:
                seats[stream.source_id] = seats[stream.source_id]._replace(stream=stream)
        self._idle.redefine(stream)

    def leave(self, source_id: str, *, goes_on: bool = True, at_once: bool = False) -> None:
        """Make a stream leave the lane. When the stream has left, `holds` is False.

        Args:
            source_id: The `Stream.source_id` of the stream.
            goes_on: Whether the stream must go on in a query of its own, with a checkpoint of its own.
            at_once: Whether the query is stopped at once, however recently it was started.
        """
        self._joining.pop(source_id, None)
        if source_id in self._seats:
            self._leaving[source_id] = goes_on
            if at_once:
                self._rests_until = self._cancel_at = 0.0

    def attend(self) -> dict[str, str]:
        """Keep the query running, and let streams in and out.

        Returns:
            By `Stream.source_id`, the failure of each stream that leaves the lane because of a failure.

        Raises:
            OperationalError: Redis, Kafka or the checkpoint's file system does not answer; the caller should try again.
        """
        at_fault: dict[str, str] = {}
        if self._query is not None:
            self._look(self._query)
            if self._query.is_active:
                at_fault = dict.fromkeys(self._slow(), "its evaluation takes long")
            else:
                failure, self._query = self._query.failure, None
                at_fault = {} if failure is None else self._failed(failure)
        for source_id in at_fault:
            self.leave(source_id, at_once=True)
        if self._query is None and self.log.is_broken():
            self._leaving |= dict.fromkeys(self._seats, True)
        if (self._joining or self._leaving) and self._has_stopped():
            self._change()
        if self._query is None and self._seats and self._clock() >= self._start_at:
            at_fault |= self._start()
        return at_fault

    def take_seconds(self) -> dict[str, float]:
        """Return by `Stream.source_id` the CPU seconds that tasks have used for each stream since the last call.

        Raises:
            OperationalError: Redis does not answer.
        """
        return self._hand.take_seconds() if self._seats else {}

    def _look(self, query: LaneQuery) -> None:
        seen = query.committed
        if seen is not None and (self.seen is None or seen.batch > self.seen.batch):
            self.seen = seen
            self._failures, self.reason = 0, None

    def _has_stopped(self) -> bool:
        """Stop the query, and tell whether it has ended. The micro-batch under way gets some time to end."""
        if self._query is None:
            return True
        now = self._clock()
        if now < self._rests_until:
            return False
        if self._cancel_at is None:
            self._cancel_at = now + _PATIENCE_SECONDS
        if not self._query.stop(cancel=now >= self._cancel_at):
            return False
        self._look(self._query)
        failure, self._query = self._query.failure, None
        if failure is not None:
            log.warning("lane ended", extra={"reason": failure_reason(failure)})
        return True

    def _change(self) -> None:
        """Let streams leave and join. Each step can be repeated, so nothing is lost if a later step fails."""
        for source_id, goes_on in list(self._leaving.items()):
            seat = self._seats.get(source_id)
            if seat is not None and goes_on:
                self.log.release(seat)
            self._seats.pop(source_id, None)
            del self._leaving[source_id]
        if not self._seats:  # no stream needs the log, which may be broken
            self.log.renew()
            self.seen = None
        if not self._joining:
            return
        self.log.add(self._seats.values(), self._joining.values())
        self._seats |= self._joining
        self._joining = {}

    def _topics(self) -> list[str]:
        return [seat.stream.topic for seat in self._seats.values()]

    def _start(self) -> dict[str, str]:
        """Start the query; return the failures of streams that prevent the start."""
        forms = self._broker.forms(self._topics())
        away = {each for each, seat in self._seats.items() if seat.stream.topic not in forms}
        for source_id in away:
            self.leave(source_id, at_once=True)
        if away:
            return dict.fromkeys(away, "its topic cannot be read")
        self.log.release_kept()
        self.log.begin(self._seats.values())
        self._hand.forget()
        self._seen_in_hand = {}
        evaluated = {
            seat.stream.topic: LaneStream(
                source_id, seat.stream.stream_id, self._evaluate(seat.stream, False, seat.earlier_ends, None)
            )
            for source_id, seat in self._seats.items()
        }
        try:
            task = LaneTask(self._spark, evaluated, self._settings, self._fences)
            self._idle.begin([seat.stream for seat in self._seats.values()], self._use)
            tasks = core_count(self._spark)
            self._query = LaneQuery(self._spark, self._settings, self.log.checkpoint, task, tasks, self._idle)
            self._query.start()
        except Py4JError as exc:
            self._back_off()
            raise OperationalError("the lane did not start", detail=str(exc).splitlines()[0]) from exc
        self._rests_until, self._cancel_at = self._clock() + _REST_SECONDS, None
        log.info("lane started", extra={"streams": len(evaluated)})
        return {}

    def _failed(self, failure: str) -> dict[str, str]:
        """Note the end of the query, and find the streams at fault."""
        at_fault = self._culprits(failure)
        self.reason = reason = failure_reason(failure)
        if not at_fault:
            self._back_off()
            if self._failures > _FAILURES_TOGETHER:
                self._failures = 0
                at_fault = set(self._seats)
        log.warning("lane ended, starts again", extra={"reason": reason, "without": sorted(at_fault)})
        return dict.fromkeys(at_fault, failure)

    def _back_off(self) -> None:
        self._start_at = self._clock() + min(_FIRST_BACKOFF_SECONDS * 2.0**self._failures, _LONGEST_BACKOFF_SECONDS)
        self._failures += 1

    def _culprits(self, failure: str) -> set[str]:
        if named := _NAMED.search(failure):
            return {named[1]} & self._seats.keys()
        if unreadable := _UNREADABLE.search(failure):
            return {each for each, seat in self._seats.items() if seat.stream.topic == unreadable[1]}
        task = dead_task(failure)
        if task is not None:
            hand = self._hand.in_hand()
            return {hand[task][1]} & self._seats.keys() if task in hand else set()
        forms = self._broker.forms(self._topics())
        return {each for each, seat in self._seats.items() if seat.stream.topic not in forms}

    def _slow(self) -> set[str]:
        """Return the streams that tasks have evaluated for longer than `_PATIENCE_SECONDS`; none if `is_alone`."""
        if self.is_alone:
            return set()
        now = self._clock()
        # After a long time between two calls, the times begin again: the cause that delayed the driver, such as an
        # unreachable Redis, has delayed the tasks, too.
        before = self._seen_in_hand if now - self._looked_at < _PATIENCE_SECONDS else {}
        self._looked_at = now
        self._seen_in_hand = {
            task: before[task] if task in before and before[task][0] == held else (held, now)
            for task, held in self._hand.in_hand().items()
        }
        late = {source_id for (_, source_id), since in self._seen_in_hand.values() if now - since > _PATIENCE_SECONDS}
        return late & self._seats.keys()
