"""The live streams: each has a Spark query of its own; if there are many streams, quiet streams share the lane."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress

from pyspark.sql import SparkSession

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.process.log_lines import LineLimit
from grouping.process.pacing import look_seconds
from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.store.ownership import Ownership
from grouping.store.table_store import TableStore
from spark_jobs.runtime.application.session import core_count
from spark_jobs.runtime.kafka.broker import Broker, SourceForm
from spark_jobs.runtime.kafka.sink import checkpoint_location
from spark_jobs.runtime.kafka.topic_offsets import PartitionOffsets
from spark_jobs.runtime.streams.checkpoint import Checkpoint, StreamPosition
from spark_jobs.runtime.streams.checkpoints import Checkpoints
from spark_jobs.runtime.streams.evaluated_stream import EvaluatedStream
from spark_jobs.runtime.streams.files import files_of
from spark_jobs.runtime.streams.lane import Evaluate, Lane
from spark_jobs.runtime.streams.lane_log import LaneStart
from spark_jobs.runtime.streams.progress import Progress
from spark_jobs.runtime.streams.query_use import QueryUse
from spark_jobs.runtime.streams.resumption import find_place, is_far
from spark_jobs.runtime.streams.stream_queries import StreamQueries
from spark_jobs.runtime.streams.unreadable_records import is_unreadable, pass_over
from spark_jobs.runtime.streams.worker_deaths import WorkerDeaths, failure_reason

__all__ = ["Streams"]

log = logging.getLogger(__name__)

_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 30.0
_PROMPT_DEATHS = 10
"""Up to this number of workers' deaths during a batch, the stream's query is started again at once, since each death
narrows the search for the work unit at fault."""
_OWN_PER_CORE = 4
"""Quiet streams share the lane if there are more than this many source partitions for each core. With fewer partitions,
streams are served faster by queries of their own."""
_AGAIN_SECONDS = 15.0
"""How long a stream stays out of the lane after it was busy, or after a micro-batch under way kept it from joining."""


class Streams:
    """Brings the running queries in line with this evaluator's live streams. Only a single thread may use this."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        ownership: Ownership,
        store: TableStore,
        broker: Broker,
        evaluate: Evaluate,
        worker_deaths: WorkerDeaths,
        clock: Callable[[], float],
    ) -> None:
        """Begin with no query.

        Args:
            spark: The session.
            settings: The evaluator's settings.
            ownership: Ensures that no other evaluator has the same streams.
            store: Redis, with the streams and their progress.
            broker: Kafka, with the source topics.
            evaluate: Returns the function that a stream's tasks run.
            worker_deaths: Finds the work units that kill workers.
            clock: Monotonic seconds.
        """
        self._spark = spark
        self._settings = settings
        self._ownership = ownership
        self._assignment = Assignment.of(settings)
        self._store, self._broker, self._worker_deaths = store, broker, worker_deaths
        self._clock = clock
        self._checkpoints = Checkpoints(settings, files_of(checkpoint_location("", settings), spark), broker)
        self._use = use = QueryUse(settings)
        self._lane = Lane(spark, settings, ownership.fences, store, broker, self._checkpoints, evaluate, use, clock)
        self._queries = StreamQueries(spark, settings, ownership.fences, store, broker, evaluate, use)
        self._running: dict[StreamId, EvaluatedStream] = {}
        self._cores = self._partitions = 0
        self._seconds: dict[str, float] = {}
        """By `Stream.source_id`, the CPU seconds of the stream in the lane's tasks since the last `reconcile`."""
        self._forms: dict[str, SourceForm] = {}
        """For topics whose streams are new in this call of `reconcile`: the topic's partitions, offsets and id."""
        self._epoch: int | None = None
        self._compare_at = 0.0
        self._line_limit = LineLimit(clock)

    def reconcile(self) -> Iterator[str]:
        """Start, restart and stop queries as needed, and report the progress of each stream.

        Yields:
            The id of each stream when it is done, so that the caller can report after each one that it is alive.

        Raises:
            OperationalError: Redis does not answer, or no gateway has confirmed yet that Redis has all tables. Then no
                stream is started, and only streams that another evaluator has taken over are stopped. The other queries
                go on, and their tasks wait.
        """
        for stream_id in self._ownership.lost(each for each, running in self._running.items() if running.is_evaluated):
            self._stop(self._running[stream_id])
        epoch = self._store.epoch()
        if epoch is None:
            raise OperationalError("no tables are confirmed")
        live = {stream.stream_id: stream for stream in self._store.streams()}
        if epoch != self._store.epoch():
            raise OperationalError("the tables are being rebuilt")
        if epoch != self._epoch:
            if self._epoch is None:
                self._checkpoints.sweep(stream.source_id for stream in live.values())
            self._epoch = epoch
            for running in self._running.values():
                if running.progress is not None:
                    running.progress.forget()
        mine = self._settings.evaluator.name
        live = {each: stream for each, stream in live.items() if self._assignment.evaluator_of(stream.name) == mine}
        self._use.refresh(live)
        self._lane.open(live.values())
        self._cores = core_count(self._spark)
        for stream_id in [stream_id for stream_id in self._running if stream_id not in live]:
            if self._has_left(self._running[stream_id]):
                self._drop(self._running.pop(stream_id))
            yield stream_id
        self._partitions = sum(self._running[each].partitions if each in self._running else 1 for each in live)
        self._seconds = self._lane.take_seconds()
        new = [stream.topic for stream_id, stream in live.items() if stream_id not in self._running]
        with suppress(OperationalError):  # if this fails, each stream asks for itself
            self._forms = self._broker.forms(new) if len(new) > 1 else {}
        for stream_id, stream in live.items():
            running = self._running.setdefault(stream_id, EvaluatedStream(stream))
            if stream != running.stream and (stream.generation == running.stream.generation or self._has_left(running)):
                running = self._running[stream_id] = self._changed(running, stream)
            try:
                self._attend(running)
            except OperationalError as error:
                self._failed(running, error.detail or error.message)
            yield stream_id
        self._attend_lane()
        self._compare()

    def _changed(self, running: EvaluatedStream, stream: Stream) -> EvaluatedStream:
        """Go on with a changed declaration. A stream whose topic was created again is evaluated from its start."""
        if stream.generation == running.stream.generation:
            running.stream = stream
            self._lane.redefine(stream)
            if running.progress is not None:
                running.progress.stream = stream
            return running
        self._drop(running)
        return EvaluatedStream(stream)

    def status(self) -> dict[str, dict[str, object]]:
        """Return the progress of streams by name, with a reason for each stream that is not evaluated."""
        now, lane_runs = self._clock(), self._lane.is_running
        return {running.stream.name: running.status(now, lane_runs=lane_runs) for running in self._running.values()}

    def _attend_lane(self) -> None:
        """Keep the lane running; streams at fault go on in queries of their own."""
        try:
            at_fault = self._lane.attend()
        except OperationalError as error:
            if self._line_limit.due("lane"):
                log.warning("the lane is not attended to", extra={"reason": error.line})
            return
        for running in self._running.values():
            failure = at_fault.get(running.stream.source_id)
            if running.in_lane and failure is not None:
                running.part(self._clock(), failure_reason(failure))
                self._worker_deaths.failed(running.stream.stream_id, failure)

    def _has_left(self, running: EvaluatedStream) -> bool:
        """Make a stream that is dropped, or has a new topic, leave the lane; return whether the stream has left."""
        source_id = running.stream.source_id
        self._lane.leave(source_id, goes_on=False, at_once=True)
        self._lane.log.forget(source_id)
        return not self._lane.holds(source_id)

    def _attend_member(self, running: EvaluatedStream) -> None:
        """Update a stream's progress in the lane; if the stream is busy, make it leave the lane."""
        source_id = running.stream.source_id
        running.look_at_lane(self._lane.seen, self._lane.reason, self._seconds.pop(source_id, 0.0), self._clock())
        if not self._lane.holds(source_id):
            running.in_lane = False
            self._start(running)
        elif self._use.has_clock(running.stream):
            pass  # the stream stays, since only the lane's query moves the watermarks of idle partitions
        elif running.load.is_busy(running.behind or 0, alone=self._lane.is_alone):
            self._lane.leave(source_id)
            running.alone_until = self._clock() + _AGAIN_SECONDS
            log.info("stream is busy", extra={"stream": running.stream.name, "load": str(running.load)})

    def _attend(self, running: EvaluatedStream) -> None:
        if running.in_lane:
            self._attend_member(running)
            return
        if running.query is None:
            if self._clock() >= running.start_at:
                self._start(running)
            return
        if not running.query.isActive:
            self._ended(running, str(running.query.exception() or "The query stopped."))
            return
        if running.look(self._clock()):
            self._worker_deaths.committed(running.stream.stream_id)
        if self._queries.is_outdated(running, self._cores):
            self._stop(running)
            self._start(running)
        elif self._may_join(running):
            self._stop(running)
            self._start(running)
            if not running.in_lane:
                running.alone_until = self._clock() + _AGAIN_SECONDS

    def _may_join(self, running: EvaluatedStream) -> bool:
        """Tell whether a stream that now has a query of its own should share the lane."""
        timed = self._use.has_clock(running.stream)
        return (
            (timed or self._partitions > _OWN_PER_CORE * self._cores)
            and (running.is_caught_up(self._clock()) if timed else running.is_quiet(self._clock()))
            and self._lane.has_room_for(running.stream)
            and not self._worker_deaths.begin(running.stream.stream_id)
            and not (running.query is not None and running.query.status["isTriggerActive"])
        )

    def _ended(self, running: EvaluatedStream, failure: str) -> None:
        """Note the end of a query, and decide when the query is started again."""
        running.query = None
        running.ends += 1
        if is_unreadable(failure):
            checkpoint = self._checkpoints.of(running.stream.source_id)
            passed = pass_over(running.stream, checkpoint, self._settings, self._broker)
            self._failed(running, "a record's timestamp is too large for Spark", prompt=passed)
            return
        deaths = self._worker_deaths.failed(running.stream.stream_id, failure)
        if deaths:
            times = f"{deaths} times at one batch" if deaths > 1 else "once"
            self._failed(running, f"a worker died, {times}", prompt=deaths <= _PROMPT_DEATHS)
        else:
            self._failed(running, failure_reason(failure))

    def _compare(self) -> None:
        """Compare the positions of all streams with the broker's offsets, unless the last comparison is recent."""
        if self._clock() < self._compare_at:
            return
        self._compare_at = self._clock() + look_seconds(len(self._running))
        try:
            forms = self._broker.forms(
                running.stream.topic for running in self._running.values() if running.is_evaluated
            )
            for running in self._running.values():
                if (form := forms.get(running.stream.topic)) is not None:
                    running.compare(self._clock(), form.earliest, form.ends)
        except OperationalError as error:
            # No query is stopped here: if its topic cannot be read, a query fails by itself.
            if self._line_limit.due("offsets"):
                log.warning("offsets not compared", extra={"reason": error.message})

    def _start(self, running: EvaluatedStream) -> None:
        stream = running.stream
        if self._lane.holds(stream.source_id):
            return  # another evaluator had taken the stream, and the lane still has to release the stream
        before, running.owner = running.owner, self._ownership.claim(stream.stream_id)
        if running.owner is not None:
            if before is None:
                log.warning("stream waits", extra={"stream": stream.name, "reason": running.why_not})
            # The claim is tried again in a moment.
            running.start_at = self._clock() + _FIRST_BACKOFF_SECONDS
            running.progress = running.behind = None
            return
        form = self._forms.pop(stream.topic, None) or self._broker.form(stream.topic)
        if stream.topic_id not in ("", form.topic_id):
            raise OperationalError("the topic was created again", detail="The gateway does not know the new topic.")
        self._partitions += len(form.partitions) - running.partitions
        running.partitions = len(form.partitions)
        checkpoint = self._checkpoints.of(stream.source_id)
        was_in_lane = self._lane.log.counts_for(stream)
        shared = was_in_lane and not self._lane.was_interrupted(stream.source_id)
        cautious = self._worker_deaths.begin(stream.stream_id, shared=shared)
        if not cautious and self._clock() >= running.alone_until:
            place = self._place(stream, checkpoint, was_in_lane=was_in_lane)
            if place is not None and not is_far(place, form.ends):
                self._join(running, place, form.earliest, goes_on=was_in_lane)
                return
        if was_in_lane:
            self._lane.log.release(self._lane.log.kept[stream.source_id])
        batch = running.progress.batch if running.progress is not None else None
        self._queries.start(running, checkpoint, form, self._clock(), cautious=cautious)
        self._worker_deaths.resumed(stream.stream_id, committed=batch is not None and running.batch_at_start > batch)

    def _place(self, stream: Stream, checkpoint: Checkpoint, *, was_in_lane: bool) -> LaneStart | None:
        """Return the place where the lane may begin with a stream; None if the stream must get a query of its own."""
        if was_in_lane:
            return self._lane.log.place(stream.source_id)
        crowded = self._partitions > _OWN_PER_CORE * self._cores
        if not (crowded or self._use.has_clock(stream)) or not self._lane.has_room_for(stream):
            return None
        return find_place(stream, checkpoint, self._store, self._broker)

    def _join(self, running: EvaluatedStream, place: LaneStart, earliest: PartitionOffsets, *, goes_on: bool) -> None:
        """Let the lane evaluate a stream from now on."""
        stream = running.stream
        progress = Progress(stream, place.position, self._store, self._broker)
        progress.tell()
        progress.report_deleted(earliest)
        if goes_on:
            self._lane.go_on(stream)
        else:
            self._lane.join(stream, place)
            # The lane numbers its micro-batches itself, so the last batch number of the stream's own query is dropped.
            progress = Progress(stream, StreamPosition(-1, place.position.offsets), self._store, self._broker)
        running.enter(progress, self._clock())
        log.info("stream joins the lane", extra={"stream": stream.name, "stream_id": stream.stream_id})

    def _failed(self, running: EvaluatedStream, reason: str, *, prompt: bool = False) -> None:
        backoff = 0.0
        if not prompt:
            backoff = min(_FIRST_BACKOFF_SECONDS * 2.0**running.failures, _LONGEST_BACKOFF_SECONDS)
            running.failures += 1
        running.start_at = self._clock() + backoff
        running.reason = reason
        if self._line_limit.due(f"{running.stream.stream_id} {reason}"):
            log.warning(
                "stream does not run, will be tried again",
                extra={"stream": running.stream.name, "reason": reason, "seconds": backoff},
            )

    def _stop(self, running: EvaluatedStream) -> None:
        if running.in_lane:
            self._lane.leave(running.stream.source_id, goes_on=False, at_once=True)
            running.in_lane = False
        if running.query is not None:
            running.query.stop()
            running.query = None

    def _drop(self, running: EvaluatedStream) -> None:
        self._stop(running)
        self._checkpoints.forget(running.stream.source_id)
        with suppress(OperationalError):
            self._ownership.give_up(running.stream.stream_id)
        log.info("stream stopped", extra={"stream": running.stream.name, "stream_id": running.stream.stream_id})
