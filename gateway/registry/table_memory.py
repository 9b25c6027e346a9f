"""Checks that the constant tables, and the tables that queries join, still fit into each worker.

A worker holds the constant tables of all streams of its evaluator, and reports their size. The size of rows that were
admitted after the last report is estimated from their constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.model.records import Destination
from gateway.registry.expectations import Expectations
from gateway.registry.replicas import Replicas
from gateway.state.working_copy import WorkingCopy
from grouping.access.stream_statistics import StreamStatistics
from grouping.model.errors import InputError
from grouping.model.ids import StreamId
from grouping.model.wording import counted
from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.store.notes import ExecutorsNote

__all__ = ["TableMemory", "bearable"]

_ROW_BYTES = 100
"""Estimated bytes of a row before the first report; the benchmark ``footprint`` measured 52 to 98 bytes."""
_CHARACTER_BYTES = 3
"""Bytes for each character of a row's constants: in the row, in the index and, during a replacement, in a copy."""
_WORKER_BYTES = 300e6
"""Bytes of a Python worker without tables: its code, and the events of a micro-batch (docs/sizing.md)."""
_AT_LOAD = 2
"""Factor for loading: while a table is loaded, the worker has it in memory twice for some seconds."""


@dataclass(slots=True)
class _Evaluator:
    limit: float
    """The largest number of bytes of tables in a worker: the setting, or less if executors have too little memory."""
    executors: ExecutorsNote = ExecutorsNote()
    joined: int = 0
    """Bytes of the tables that queries join."""
    constants: float = 0.0
    """Bytes of the constant tables of all streams of the evaluator."""

    @property
    def figure(self) -> float:
        """Bytes of all tables of the evaluator."""
        return self.joined + self.constants


@dataclass(slots=True)
class _StreamTables:
    evaluator: _Evaluator
    base: float
    """Bytes of the tables as the workers reported; before the first report, an estimate from the number of rows."""
    reported: tuple[int, int] = (0, 0)
    """The epoch and version of the tables that the report is about."""
    admitted: Expectations = field(default_factory=Expectations)
    counted: float = 0.0
    """The part of `_Evaluator.constants` that this stream has added, in bytes."""

    def count(self, nbytes: float) -> None:
        """Replace the stream's part of its evaluator's bytes."""
        self.evaluator.constants += nbytes - self.counted
        self.counted = nbytes


class TableMemory:
    """The memory that constant tables and joined tables take in a worker, by evaluator."""

    def __init__(self, settings: Settings, working: WorkingCopy, replicas: Replicas) -> None:
        """Begin without figures; the size of a stream's rows is estimated until workers report the size."""
        self._setting = settings.limits.table_megabytes * 1e6
        self._assignment = Assignment.of(settings)
        self._evaluators = {name: _Evaluator(self._setting) for name in ("", *self._assignment.names)}
        self._working = working
        self._replicas = replicas
        self._streams: dict[StreamId, _StreamTables] = {}

    def observe(self, found: Mapping[StreamId, StreamStatistics], now_ms: int) -> None:
        """Take over the workers' reports on streams, and on the joined tables of the evaluators of these streams."""
        for stream_id, known in found.items():
            stream = self._of(stream_id)
            if known.table_bytes is not None:
                stream.base, stream.reported = known.table_bytes, known.version
            stream.count(stream.base + stream.admitted.since(stream.reported))
        for name in set(map(self._name, found)):
            evaluator = self._evaluators[name]
            evaluator.joined = self._replicas.nbytes(name, now_ms)
            evaluator.executors = self._working.evaluator.executors(name)
            evaluator.limit = min(self._setting, bearable(evaluator.executors.worker_bytes))

    def forget(self, stream_id: StreamId) -> None:
        """Forget a dropped stream."""
        if (stream := self._streams.pop(stream_id, None)) is not None:
            stream.count(0.0)

    @property
    def fullest(self) -> tuple[float, float]:
        """The bytes of tables in each worker, and their limit, for the evaluator nearest to its limit."""
        evaluator = max(self._evaluators.values(), key=lambda each: each.figure / max(each.limit, 1.0))
        return evaluator.figure, evaluator.limit

    def _name(self, stream_id: StreamId) -> str:
        """Return the name of the evaluator that has a stream."""
        stream = self._working.inventory.streams.get(stream_id)
        return "" if stream is None else self._assignment.evaluator_of(stream.name)

    def check(self, destination: Destination, version: tuple[int, int]) -> None:
        """Check that the row of a new destination still fits, and count the row.

        Args:
            destination: The new destination.
            version: The epoch and version of the first tables that include the destination.

        Raises:
            InputError: quota-exceeded, with the figure and the limit.
        """
        own = _CHARACTER_BYTES * len(destination.constants)
        stream = self._of(destination.stream_id)
        evaluator = stream.evaluator
        figure = evaluator.figure + own
        if figure > evaluator.limit:
            reason, remedy = self._reason(evaluator)
            joined = f", including {evaluator.joined / 1e6:,.1f} MB of joined tables" if evaluator.joined else ""
            raise InputError(
                "the constant tables are too large",
                code="quota-exceeded",
                detail=f"The tables would take {figure / 1e6:,.1f} MB in each worker{joined}, "
                f"and the limit is {evaluator.limit / 1e6:,.1f} MB{reason}.",
                hint=f"Drop CQs that are not needed any more, or ask for {remedy}.",
            )
        stream.count(stream.counted + own)
        stream.admitted.add(version, own)

    def ended(self, destination: Destination) -> None:
        """Subtract an ended destination."""
        if (stream := self._streams.get(destination.stream_id)) is not None:
            stream.admitted.remove()

    def _reason(self, evaluator: _Evaluator) -> tuple[str, str]:
        """Return, for an error, the origin of the limit and the remedy."""
        available = evaluator.executors.worker_bytes
        if available is None or evaluator.limit == self._setting:
            return "", "a higher limit"
        workers = f"{available / 1e6:,.1f} MB for each of {counted(evaluator.executors.cores, 'worker')}"
        return f", as executors have {workers}", "executors with more memory"

    def _of(self, stream_id: StreamId) -> _StreamTables:
        stream = self._streams.get(stream_id)
        if stream is None:
            base = _ROW_BYTES * self._working.inventory.live_cqs[stream_id]
            stream = self._streams[stream_id] = _StreamTables(self._evaluators[self._name(stream_id)], base)
        return stream


def bearable(worker_bytes: int | None) -> float:
    """Return how many bytes of tables a worker with the given memory can hold; infinite if the memory is unknown.

    Example:
        >>> bearable(1_300_000_000), bearable(50_000_000), bearable(None)
        (500000000.0, 0.0, inf)
    """
    return math.inf if worker_bytes is None else max(worker_bytes - _WORKER_BYTES, 0.0) / _AT_LOAD
