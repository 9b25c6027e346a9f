"""Statistics of a stream: samples of its columns and the loads of its groups, every few seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from grouping.access.stream_statistics import ColumnSample, PartitionStatistics, Rounded, rounded
from grouping.model.catalog import Stream
from grouping.store.notes import TableVersion
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.rows.events import Events

__all__ = ["StreamSampler"]

_EVERY_SECONDS = 2.0
_APART_SECONDS = 0.25
"""The shortest time between the statistics of two source partitions: each takes milliseconds, and many may be due."""
_AT_ONCE = 256
"""The largest number of a batch's events that are added to a sample."""
_KEPT = 512
"""The largest number of events in a sample; the latest events are kept."""


class StreamSampler:
    """Samples a stream in a worker, each source partition separately; a task has the events of a single partition."""

    def __init__(self, stream: Stream, clock: Callable[[], float]) -> None:
        """Begin without samples.

        Args:
            stream: The stream to sample.
            clock: Seconds since the epoch.
        """
        self._names = [column.name for column in stream.columns if column.type.is_ordered]
        self._clock = clock
        self._due: dict[int, float] = {}
        self._next = 0.0
        self._kept: dict[int, dict[str, deque[Rounded | None]]] = {}
        self.loads = Loads()
        """The loads of the groups, over all partitions."""

    def take(self, events: Events, version: TableVersion, snapshot: Snapshot) -> tuple[int, PartitionStatistics] | None:
        """Return the partition of the events with its statistics; None if the last statistics are recent."""
        partition, now = int(events.partitions[0]), self._clock()
        if now < max(self._next, self._due.get(partition, 0.0)):
            return None
        self._due[partition], self._next = now + _EVERY_SECONDS, now + _APART_SECONDS
        chosen = np.unique(np.linspace(0, events.count - 1, min(events.count, _AT_ONCE)).astype(np.int64)).tolist()
        kept = self._kept.setdefault(partition, {name: deque(maxlen=_KEPT) for name in self._names})
        for name in self._names:
            values = events.values(name)
            kept[name].extend(rounded(values[row]) for row in chosen)
        columns = {name: _sample(values) for name, values in kept.items()}
        return partition, PartitionStatistics(
            round(now * 1000), version.epoch, version.version, columns, self.loads.take(), snapshot.nbytes
        )


def _sample(values: deque[Rounded | None]) -> ColumnSample:
    known = [value for value in values if value is not None]
    return ColumnSample(len(values) - len(known), sorted(known))
