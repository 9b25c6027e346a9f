"""A worker's reports on the states of streams: their sizes, and samples of their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.plan.computation import Computation
from grouping.store.notes import PartitionStates, StateNote
from spark_jobs.engine.operators.framed_states import FramedState
from spark_jobs.engine.operators.frames.frame_rows import FrameRows
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.row_before.key_sample import KeySample, merged_samples
from spark_jobs.engine.operators.row_before.last_rows import LastRows

__all__ = ["StateNotes", "StateReport"]

_EVERY_SECONDS = 2.0
_SAMPLE_SECONDS = 60.0
"""A sample that has not changed is written again after this time, since Redis may have been emptied."""


class StateReport(NamedTuple):
    """The content of a report on one source partition."""

    states: PartitionStates
    sample: bytes | None
    """The packed hashes of a sample of keys (uint64, little-endian); None if there is nothing new to write."""


class _ReportedPartition:
    """The reports on one source partition."""

    def __init__(self) -> None:
        self.due = 0.0
        self.sample_due = 0.0
        self.written = b""
        self.samples: dict[str, KeySample] = {}
        """The samples by computation id, only for computations whose keys contain all columns of the PARTITION KEY."""


class StateNotes:
    """Makes a process's reports, at most every two seconds for each source partition. For a single thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without reports.

        Args:
            clock: Seconds since the epoch.
        """
        self._clock = clock
        self._partitions: dict[StreamId, dict[int, _ReportedPartition]] = {}

    def report(
        self, stream: Stream, computations: Iterable[Computation], partition: int, states: Mapping[str, LogState]
    ) -> StateReport | None:
        """Return a report; None if the last report is recent.

        Args:
            stream: The stream.
            computations: The computations of the stream's queries.
            partition: A source partition.
            states: By computation id, the states in the partition.
        """
        now = self._clock()
        known = self._partitions.setdefault(stream.stream_id, {}).setdefault(partition, _ReportedPartition())
        if now < known.due:
            return None
        known.due = now + _EVERY_SECONDS
        notes = {
            name: StateNote(state.count, state.rows, state.nbytes, round(state.restore_seconds, 3))
            for name, state in states.items()
        }
        sample = _sampled(known, stream.partition_key, computations, states)
        if sample == known.written and now < known.sample_due:
            sample = None
        elif sample is not None:
            known.written, known.sample_due = sample, now + _SAMPLE_SECONDS
        return StateReport(PartitionStates(round(now * 1000), notes), sample)

    def forget(self, stream_id: StreamId) -> None:
        """Forget a stream."""
        self._partitions.pop(stream_id, None)


def _sampled(
    known: _ReportedPartition, key: tuple[str, ...], computations: Iterable[Computation], states: Mapping[str, LogState]
) -> bytes | None:
    """Return the sample of the keys of a partition; None if no state's keys have all columns of the PARTITION KEY."""
    kept, found = {}, []
    for each in computations:
        name = each.computation_id
        keyed = each.before or each.timed or each.frames
        by = [] if keyed is None else [column.stored for column in keyed.by]
        if (
            key
            and set(by).issuperset(key)
            and isinstance(state := states.get(name), LastRows | FrameRows | FramedState)
        ):
            places = [by.index(column) for column in key]
            kept[name] = known.samples.get(name) or KeySample(places, len(by))
            found.append(kept[name].of(state.keys))
    known.samples = kept
    return merged_samples(found).astype("<u8").tobytes() if found else None
