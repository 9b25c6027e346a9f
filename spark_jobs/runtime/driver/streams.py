"""A Spark query per live stream: started, restarted and stopped as streams come, fail and go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.process.log_lines import Sparing
from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.store.ownership import Owner, Ownership
from grouping.store.table_store import TableStore
from spark_jobs.runtime.driver.checkpoint import Checkpoint
from spark_jobs.runtime.driver.files import files_of
from spark_jobs.runtime.driver.progress import Progress
from spark_jobs.runtime.driver.resumption import resume
from spark_jobs.runtime.driver.unreadable_records import is_unreadable, pass_over
from spark_jobs.runtime.driver.worker_deaths import WorkerDeaths, failure_reason
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.kafka.sink import Produce, checkpoint_location, write_stream
from spark_jobs.runtime.kafka.source import read_stream

__all__ = ["Streams"]

log = logging.getLogger(__name__)

_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 30.0
_COMPARE_EVERY_SECONDS = 1.0
_PROMPT_DEATHS = 10
"""How often a stream whose worker died is started again at once: each death tells more about the share at fault."""
_STEADY_SECONDS = 10.0
"""How long a query must run before its failures are forgotten, unless it commits a batch."""

Evaluate = Callable[[Stream, bool, dict[str, int]], Produce]
"""Returns the function that a stream's tasks run, given whether they must be cautious, and by source partition the
offset before which an earlier checkpoint may have evaluated events."""


@dataclass(slots=True)
class _StreamQuery:
    """A stream's query, and when it is started again."""

    stream: Stream
    progress: Progress | None = None
    query: StreamingQuery | None = None
    failures: int = 0
    batch_at_start: int = -1
    start_at: float = 0.0
    behind: int | None = None
    steady_at: float = 0.0
    committed_at: float = 0.0
    """When it was started, or was seen to have committed a batch."""
    reason: str | None = None
    """Why the query does not run, or did not a moment ago."""
    events: int = 0
    """Offsets that were evaluated since this process began."""
    ends: int = 0
    """How often a query of it has ended by itself."""
    owner: Owner | None = None
    """Another evaluator that has the stream."""

    @property
    def why_not(self) -> str | None:
        """Why the stream is not evaluated here."""
        return self.reason if self.owner is None else f"the {self.owner.title} has it"


class Streams:
    """Brings the running queries in line with the live streams that this evaluator has. For one thread."""

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
            store: Tells which streams there are, and is told how far they are.
            broker: Where the source topics are.
            evaluate: Gives the function that a stream's tasks run.
            worker_deaths: Learns from the deaths of workers.
            clock: Monotonic seconds.
        """
        self._spark = spark
        self._settings = settings
        self._ownership = ownership
        self._assignment = Assignment.of(settings)
        self._store = store
        self._broker = broker
        self._evaluate = evaluate
        self._worker_deaths = worker_deaths
        self._clock = clock
        self._files = files_of(checkpoint_location("", settings), spark)
        self._running: dict[StreamId, _StreamQuery] = {}
        self._epoch: int | None = None
        self._compare_at = 0.0
        self._sparing = Sparing(clock)

    def reconcile(self) -> Iterator[str]:
        """Start, restart and stop the queries that need it, and tell how far each stream is.

        Yields:
            The id of each stream that was seen to: with many of them it takes long.

        Raises:
            OperationalError: The store does not answer, or holds no confirmed tables; the queries go on (their tasks
                wait by themselves), and nothing is started or stopped.
        """
        for stream_id in self._ownership.lost(each for each, running in self._running.items() if running.query):
            self._stop(self._running[stream_id])
        epoch = self._store.epoch()
        if epoch is None:
            raise OperationalError("no tables are confirmed")
        live = {stream.stream_id: stream for stream in self._store.streams()}
        if epoch != self._store.epoch():
            raise OperationalError("the tables are being rebuilt")
        if epoch != self._epoch:
            if self._epoch is None:
                self._sweep(stream.source_id for stream in live.values())
            self._epoch = epoch
            for running in self._running.values():
                if running.progress is not None:
                    running.progress.forget()
        mine = self._settings.evaluator.name
        live = {each: stream for each, stream in live.items() if self._assignment.evaluator_of(stream.name) == mine}
        for stream_id in [stream_id for stream_id in self._running if stream_id not in live]:
            self._drop(self._running.pop(stream_id))
            yield stream_id
        for stream_id, stream in live.items():
            running = self._running.setdefault(stream_id, _StreamQuery(stream))
            if stream != running.stream:
                running = self._running[stream_id] = self._changed(running, stream)
            try:
                self._attend(running)
            except OperationalError as error:
                self._failed(running, error.detail or error.message)
            yield stream_id
        self._compare()

    def _changed(self, running: _StreamQuery, stream: Stream) -> _StreamQuery:
        """Take over the gateway's changes of a stream's topic: with another topic the query begins anew."""
        if stream.generation == running.stream.generation:
            running.stream = stream
            if running.progress is not None:
                running.progress.stream = stream
            return running
        self._drop(running)
        return _StreamQuery(stream)

    def status(self) -> dict[str, dict[str, object]]:
        """Return the progress of streams by name, and the reason if a stream doesn't run."""
        return {
            running.stream.name: {
                "stream_id": running.stream.stream_id,
                "state": "running" if running.query is not None else "waiting",
                "behind": running.behind,
                "batch": running.progress.batch if running.progress else -1,
                "events_deleted": running.progress.events_deleted if running.progress else 0,
                "reason": running.why_not,
                "events": running.events,
                "failures": running.ends,
                "batch_events": running.progress.batch_events if running.progress else 0,
                "phases": running.progress.phases if running.progress else {},
                "quiet_seconds": round(self._clock() - running.committed_at, 3) if running.query else None,
            }
            for running in self._running.values()
        }

    def _attend(self, running: _StreamQuery) -> None:
        if running.query is None:
            if self._clock() >= running.start_at:
                self._start(running)
            return
        assert running.progress is not None
        if not running.query.isActive:
            self._ended(running, str(running.query.exception() or "It stopped."))
            return
        batch, reached = running.progress.batch, running.progress.reached
        running.progress.look(running.query)
        running.events += max(running.progress.reached - reached, 0)
        if running.progress.batch > batch:
            running.committed_at = self._clock()
        if running.progress.batch > running.batch_at_start:
            running.failures, running.reason = 0, None
            self._worker_deaths.committed(running.stream.stream_id)
        elif self._clock() >= running.steady_at:
            running.reason = None

    def _ended(self, running: _StreamQuery, failure: str) -> None:
        """Note the end of a query, and when it is started again."""
        running.query = None
        running.ends += 1
        if is_unreadable(failure):
            checkpoint = self._checkpoint(running.stream.source_id)
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
        """Compare the positions of the streams with the broker's: once a second, for all streams at once."""
        if self._clock() < self._compare_at:
            return
        self._compare_at = self._clock() + _COMPARE_EVERY_SECONDS
        try:
            bounds = self._broker.bounds(running.stream.topic for running in self._running.values() if running.query)
            for running in self._running.values():
                if running.progress is not None and running.stream.topic in bounds:
                    earliest, ends = bounds[running.stream.topic]
                    running.progress.report_deleted(earliest)
                    running.behind = running.progress.behind(ends)
        except OperationalError as error:
            # Each query is itself the judge of whether its topic can be read.
            if self._sparing.due("offsets"):
                log.warning("offsets not compared", extra={"reason": error.message})

    def _start(self, running: _StreamQuery) -> None:
        stream = running.stream
        before, running.owner = running.owner, self._ownership.claim(stream.stream_id)
        if running.owner is not None:
            if before is None:
                log.warning("stream waits", extra={"stream": stream.name, "reason": running.why_not})
            # Whether it is free is looked for again in a moment.
            running.start_at = self._clock() + _FIRST_BACKOFF_SECONDS
            running.progress = running.behind = None
            return
        form = self._broker.form(stream.topic)
        if stream.topic_id not in ("", form.topic_id):
            raise OperationalError("the topic was made anew", detail="The gateway has not noticed it yet.")
        checkpoint = self._checkpoint(stream.source_id)
        position = resume(stream, checkpoint, self._store, self._broker)
        progress = Progress(stream, position, self._store, self._broker)
        progress.tell()
        # Before the first batch: it would silently begin after records deleted meanwhile.
        progress.report_deleted(self._broker.earliest(stream.topic))
        if running.progress is not None and progress.batch > running.progress.batch:
            self._worker_deaths.committed(stream.stream_id)
        cautious = self._worker_deaths.begin(stream.stream_id)
        try:
            going_on = msgspec.structs.replace(stream, start_offsets=stream.positions(position.offsets))
            evaluate = self._evaluate(stream, cautious, checkpoint.begun_anew())
            fence = self._ownership.fences.stream(stream.stream_id)
            source = read_stream(self._spark, going_on, form.partitions, self._settings)
            running.query = write_stream(source, evaluate, stream.source_id, self._settings, fence)
        except Exception as exc:  # pyspark's and py4j's have no common base
            raise OperationalError("a query did not start", detail=str(exc).splitlines()[0]) from exc
        running.progress, running.batch_at_start = progress, progress.batch
        running.committed_at = self._clock()
        running.steady_at = running.committed_at + _STEADY_SECONDS
        log.info(
            "stream started", extra={"stream": stream.name, "stream_id": stream.stream_id, "batch": progress.batch}
        )

    def _failed(self, running: _StreamQuery, reason: str, *, prompt: bool = False) -> None:
        backoff = 0.0
        if not prompt:
            backoff = min(_FIRST_BACKOFF_SECONDS * 2.0**running.failures, _LONGEST_BACKOFF_SECONDS)
            running.failures += 1
        running.start_at = self._clock() + backoff
        running.reason = reason
        if self._sparing.due(f"{running.stream.stream_id} {reason}"):
            log.warning(
                "stream does not run, will be tried again",
                extra={"stream": running.stream.name, "reason": reason, "seconds": backoff},
            )

    def _sweep(self, live: Iterable[str]) -> None:
        """Remove the checkpoints of streams that were dropped, and of topics that went, while no evaluator ran."""
        for source_id in set(self._files.names(checkpoint_location("", self._settings))).difference(live):
            self._forget(source_id)

    def _stop(self, running: _StreamQuery) -> None:
        if running.query is not None:
            running.query.stop()
            running.query = None

    def _drop(self, running: _StreamQuery) -> None:
        self._stop(running)
        self._forget(running.stream.source_id)
        with suppress(OperationalError):
            self._ownership.give_up(running.stream.stream_id)
        log.info("stream stopped", extra={"stream": running.stream.name, "stream_id": running.stream.stream_id})

    def _forget(self, source_id: str) -> None:
        """Remove data kept for replays; the checkpoint last, by which the next evaluator finds the rest."""
        self._broker.write(self._settings.topics.pins, source_id.encode())
        try:
            self._checkpoint(source_id).remove()
        except OperationalError as error:
            log.warning("checkpoint not removed, the next start will", extra={"reason": error.line})

    def _checkpoint(self, source_id: str) -> Checkpoint:
        return Checkpoint(checkpoint_location(source_id, self._settings), self._files)
