"""The sizes of the states of computations, from the workers' reports, and the metrics of these sizes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
import numpy as np

from gateway.metrics import COMPUTATION_BYTES, COMPUTATION_KEYS, COMPUTATION_ROWS, RESTORE_SECONDS, SPLIT_KEYS
from gateway.state.evaluator_notes import EvaluatorNotes
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.model.wording import counted
from grouping.store.notes import PartitionStates
from grouping.values.times import instant

__all__ = [
    "SPLIT_KEYS_WARNING",
    "StateFigures",
    "StateGauges",
    "TimeFigures",
    "split_keys",
    "state_figures",
    "time_figures",
]

SPLIT_KEYS_WARNING = (
    "Keys of PARTITION KEY are in several partitions of the topic; in each partition they count as separate keys. The "
    "likely cause is a producer whose partitioner differs from that of other producers (librdkafka's default is not "
    "Java's; set partitioner = murmur2_random), or a topic that got more partitions."
)
_AHEAD_MS = 60_000
"""The time by which a watermark must be ahead of the clock for a warning."""
_INSTANTS_MS = (-62_135_596_800_000, 253_402_300_799_000)
"""The first and the last instant that can be shown: the years 1 to 9999, epoch milliseconds."""
_METRICS = (COMPUTATION_KEYS, COMPUTATION_ROWS, COMPUTATION_BYTES, RESTORE_SECONDS)


class StateFigures(NamedTuple):
    """The size of a computation's state, over all source partitions."""

    keys: int = 0
    rows: int = 0
    nbytes: int = 0
    """The memory in all workers together, in bytes."""
    restore_seconds: float = 0.0
    """The longest time in which a worker restored the state of a partition."""


class TimeFigures(NamedTuple):
    """The watermarks of a stream, and its late and future events."""

    watermarks: dict[int, int]
    """By source partition, in epoch milliseconds."""
    late: int
    """The number of events behind the watermark or without an event time."""
    future: int
    """The number of events whose event time is too far ahead of the clock."""

    @property
    def lowest(self) -> str | None:
        """The lowest watermark as ISO 8601; None if no partition has a watermark."""
        return min(self._shown.values(), default=None)

    @property
    def _shown(self) -> dict[str, str]:
        first, last = _INSTANTS_MS
        return {str(each): instant(min(max(at_ms, first), last)) for each, at_ms in self.watermarks.items()}

    def described(self) -> dict[str, object]:
        """Return the figures as DESCRIBE STREAM shows them."""
        several = {"watermarks": self._shown} if self.watermarks else {}
        return {"watermark": self.lowest, **several, "late": self.late, "future": self.future}

    def warning(self, now_ms: int) -> str | None:
        """Return a warning if the watermark of a partition is far ahead of the clock; None otherwise."""
        partition, latest = max(self.watermarks.items(), key=lambda each: each[1], default=(0, now_ms))
        if latest - now_ms < _AHEAD_MS:
            return None
        minutes = counted((latest - now_ms) // _AHEAD_MS, "minute")
        return (
            f"The watermark of partition {partition} is {minutes} ahead of the clock: until the clock reaches it, "
            "events with correct times are late in this partition. The likely cause is the clock of a producer."
        )


def state_figures(notes: EvaluatorNotes, stream_ids: Sequence[StreamId]) -> dict[StreamId, dict[str, StateFigures]]:
    """Return the states of streams, by stream and computation id; Redis is asked once.

    Raises:
        StoreUnavailable: Redis does not answer.
    """
    return {each: _figures(bodies) for each, bodies in notes.states(stream_ids).items()}


def split_keys(notes: EvaluatorNotes, streams: Iterable[Stream]) -> dict[StreamId, int]:
    """Return stream with PARTITION KEY → number of its sampled keys that are in two or more partitions.

    Raises:
        StoreUnavailable: Redis does not answer.
    """
    samples = notes.key_samples([stream.stream_id for stream in streams if stream.partition_key])
    return {each: _split(found) for each, found in samples.items()}


def time_figures(
    notes: EvaluatorNotes, streams: Sequence[Stream], progress: Callable[[str], Mapping[str, object]], now_ms: int
) -> dict[StreamId, TimeFigures]:
    """Return the watermarks of streams, and the numbers of late and future events; Redis is asked once.

    Args:
        notes: Reads the evaluator's notes in Redis.
        streams: The streams.
        progress: Returns the progress of a stream by its name. If it shows that all events of the stream are evaluated,
            the stream's watermarks advance with the clock.
        now_ms: The present, epoch milliseconds.

    Raises:
        StoreUnavailable: Redis does not answer.
    """
    watermarks = notes.event_times([stream.stream_id for stream in streams])
    found = {}
    for stream in streams:
        figures, (output, known) = progress(stream.name), watermarks[stream.stream_id]
        idle = figures.get("behind") == 0 and figures.get("reason") is None
        reached = {each: mark.at(now_ms) if idle else mark.watermark for each, mark in known.items()}
        found[stream.stream_id] = TimeFigures(reached, output.late, output.future)
    return found


class StateGauges:
    """Sets the metrics of states; for use by the gateway's main thread only."""

    def __init__(self, notes: EvaluatorNotes) -> None:
        """Begin without metrics.

        Args:
            notes: Reads the evaluator's notes in Redis.
        """
        self._notes = notes
        self._shown: dict[str, set[tuple[str, str]]] = {}
        """Name of a stream → labels of its computations' metrics."""

    def show(self, streams: Sequence[Stream]) -> None:
        """Set the metrics of some streams.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        found = state_figures(self._notes, [stream.stream_id for stream in streams])
        split = split_keys(self._notes, streams)
        for stream in streams:
            states = found[stream.stream_id]
            shown = {(stream.name, computation_id) for computation_id in states}
            self._remove(self._shown.get(stream.name, set()) - shown)
            self._shown[stream.name] = shown
            for computation_id, figures in states.items():
                for metric, value in zip(_METRICS, figures, strict=True):
                    metric.labels(stream.name, computation_id).set(value)
            if stream.stream_id in split:
                SPLIT_KEYS.labels(stream.name).set(split[stream.stream_id])

    def forget(self, live: Mapping[StreamId, Stream]) -> None:
        """Remove the metrics of computations over dropped streams."""
        for name in self._shown.keys() - {stream.name for stream in live.values()}:
            self._remove(self._shown.pop(name))

    @staticmethod
    def _remove(labels: Iterable[tuple[str, str]]) -> None:
        for each in labels:
            for metric in _METRICS:
                metric.remove(*each)


def _figures(bodies: Iterable[bytes]) -> dict[str, StateFigures]:
    found: dict[str, StateFigures] = defaultdict(StateFigures)
    for body in bodies:
        with suppress(msgspec.MsgspecError):  # a note by a worker of another version, which is soon replaced
            for name, note in PartitionStates.unpack(body).states.items():
                before = found[name]
                longest = max(before.restore_seconds, note.restore_seconds)
                found[name] = StateFigures(
                    before.keys + note.keys, before.rows + note.rows, before.nbytes + note.nbytes, longest
                )
    return dict(found)


def _split(samples: Iterable[bytes]) -> int:
    """Return how many hashes of keys are in two or more samples."""
    hashes = np.concatenate([np.empty(0, "<u8"), *(np.frombuffer(each, "<u8") for each in samples)])
    _, counts = np.unique(hashes, return_counts=True)
    return int(np.count_nonzero(counts > 1))
