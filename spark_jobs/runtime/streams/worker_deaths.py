"""Finds the work unit at fault by the deaths of workers, in the driver (docs/design/039-quarantine.md)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence

from grouping.model.ids import StreamId
from grouping.process.schema_registry import SchemaAway
from grouping.store.quarantine import CulpritSearch, Quarantine, QuarantineStore, culprits
from spark_jobs.runtime.kafka.table_log import TableAway

__all__ = ["WorkerDeaths", "dead_task", "failure_reason"]

log = logging.getLogger(__name__)

_TASK = re.compile(r"Task (\d+) in stage")
_CONNECTOR = re.compile(r"org\.apache\.(?:spark\.sql\.kafka010|kafka)\.")
_EXITED = "Python worker exited"
_RAISED = "Traceback (most recent call last)"
_AWAY = re.compile(rf"(?:{SchemaAway.__name__}|{TableAway.__name__}): (.*)")
_LAST_LINE = re.compile(r"^[A-Za-z_][\w.]*(?:: .+)?$", re.MULTILINE)
"""Matches a line with an exception, its module and text. In a traceback, the causes of the exception come earlier."""


def dead_task(failure: str) -> int | None:
    """Return the number of the task whose worker died; None if the query ended for another reason.

    Args:
        failure: Spark's message about the end of a query. Spark names the task that failed first, never a task that was
            killed as a consequence. The message has a stack trace: of the worker if the worker raised an error, else of
            the JVM. A stack trace from the Kafka connector means an unreadable source, not a dead worker.

    Example:
        >>> dead_task("Task 3 in stage 7.0 failed 1 times, ... Python worker exited unexpectedly (crashed)")
        3
    """
    found = _TASK.search(failure)
    alive = _RAISED in failure or (_EXITED not in failure and _CONNECTOR.search(failure))
    return int(found[1]) if found and not alive else None


def failure_reason(failure: str) -> str:
    r"""Return why a query ended, in one line: the worker's exception, or else the first line of Spark's message.

    Example:
        >>> failure_reason("Job aborted: PythonException: ... runtime.kafka.table_log.TableAway: topic is away")
        'topic is away'
        >>> failure_reason(f"Job aborted: {_RAISED}:\n  File …\nerrors.OperationalError: away\n\n\tat java")
        'OperationalError: away'
    """
    if found := _AWAY.search(failure):
        return found[1]
    _, _, trace = failure.partition(f"{_RAISED}:")
    raised = _LAST_LINE.findall(trace.partition("\n\tat ")[0])
    if not raised:
        return failure.strip().splitlines()[0]
    name, colon, text = raised[-1].partition(":")
    return f"{name.rpartition('.')[2]}{colon}{text}"


class WorkerDeaths:
    """Counts deaths of workers and quarantines the work units at fault. Only a single thread may use this."""

    def __init__(self, store: QuarantineStore, clock_ms: Callable[[], int]) -> None:
        """Begin with the quarantines and searches in the store.

        Args:
            store: Redis, where workers look quarantines up.
            clock_ms: Epoch milliseconds.
        """
        self._store = store
        self._clock_ms = clock_ms
        self._begun: set[str] = set()
        self._searched: set[str] = set()
        """The streams with a batch during which a worker has died."""
        self._presumed: set[str] = set()
        """The streams with a batch during which an evaluator ended, perhaps after the death of a worker."""

    def begin(self, stream_id: StreamId, *, shared: bool = False) -> bool:
        """Return whether the tasks of a query that starts now must ask Redis for quarantines and suspects.

        Args:
            stream_id: The stream.
            shared: Whether the stream was in the lane and no task was evaluating the stream when an earlier evaluator
                ended.

        Raises:
            OperationalError: The store does not answer.
        """
        store = self._store
        if stream_id not in self._begun and not shared and store.batch_under_way(stream_id):
            # An evaluator ended during this batch, perhaps because the batch used up the memory of all processes.
            marks = store.marked(stream_id).values()
            self._died(stream_id, list(dict.fromkeys(unit for units in marks for unit in units)))
            self._presumed.add(stream_id)
        self._begun.add(stream_id)
        search = store.search(stream_id)
        if search.careful:
            self._searched.add(stream_id)
        return search.careful or any(state.times for state in store.quarantined(stream_id).values())

    def resumed(self, stream_id: StreamId, *, committed: bool) -> None:
        """Note that a query has begun, after the place where it begins was written to the store.

        An earlier evaluator may have ended after a micro-batch was committed, but before the commit was reported to the
        store. Then the store shows by now that no micro-batch is under way, and no work unit is at fault.

        Args:
            stream_id: The stream.
            committed: Whether the micro-batch that was under way when the previous query ended is committed.

        Raises:
            OperationalError: The store does not answer.
        """
        presumed = stream_id in self._presumed and not self._store.batch_under_way(stream_id)
        if committed or presumed:
            self.committed(stream_id)
        self._presumed.discard(stream_id)

    def failed(self, stream_id: StreamId, failure: str) -> int:
        """Note that a query ended.

        Returns:
            The number of workers that have died during the query's batch; 0 if the query did not end by a death.

        Args:
            stream_id: The stream of the query.
            failure: The reason that Spark gives.

        Raises:
            OperationalError: The store does not answer.
        """
        task = dead_task(failure)
        if task is None:
            return 0
        return self._died(stream_id, self._store.marked(stream_id).get(task, [])).deaths

    def committed(self, stream_id: StreamId) -> None:
        """Note that a batch was committed.

        Raises:
            OperationalError: The store does not answer.
        """
        if stream_id in self._searched:
            self._store.end_search(stream_id)
            self._searched.discard(stream_id)

    def _died(self, stream_id: StreamId, marked: Sequence[str]) -> CulpritSearch:
        search, known = self._store.search(stream_id), self._store.quarantined(stream_id)
        units = culprits(search, marked, known)
        if units:
            now_ms, user = self._clock_ms(), self._store.sole_user_of(stream_id, units)
            states = {unit: Quarantine.begun(now_ms, known.get(unit), user=user) for unit in units}
            self._store.put(stream_id, states)
            for unit, state in states.items():
                seconds = (state.until_ms - now_ms) / 1000
                log.error(
                    "quarantined a work unit that killed workers",
                    extra={"stream": stream_id, "unit": unit, "for": seconds},
                )
        # If a culprit was found, further units of the batch may be at fault too.
        search = search.after_death(() if units else marked)
        self._store.set_search(stream_id, search)
        self._searched.add(stream_id)
        return search
