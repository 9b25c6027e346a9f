"""The driver's state of a stream."""

from __future__ import annotations

import pytest

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from spark_jobs.runtime.streams.checkpoint import StreamPosition
from spark_jobs.runtime.streams.evaluated_stream import EvaluatedStream
from spark_jobs.runtime.streams.progress import Progress

_STREAM = Stream(StreamId("s_1"), "quotes", (), "quotes", "json", {"0": 0}, "")


@pytest.fixture
def running() -> EvaluatedStream:
    """A stream in the lane, with ten events evaluated, whose last micro-batch was committed at 100 s."""
    progress = Progress(_STREAM, StreamPosition(4, {"0": 10}), None, None)  # type: ignore[arg-type]  # no server is asked
    return EvaluatedStream(_STREAM, progress, in_lane=True, committed_at=100.0)


def _reason(running: EvaluatedStream, now: float) -> object:
    return running.status(now, lane_runs=True)["reason"]


def test_events_that_wait_without_a_micro_batch_are_told(running: EvaluatedStream) -> None:
    """A stream that gets nothing for ten seconds is no stream that runs."""
    running.compare(200.0, {0: 0}, {0: 12})
    assert _reason(running, 209.0) is None
    assert _reason(running, 211.0) == "events wait, and no micro-batch was committed for 11 s"
    running.committed_at = 212.0
    assert _reason(running, 213.0) is None


def test_a_stream_without_new_events_stands_still(running: EvaluatedStream) -> None:
    """No micro-batch is due where no event waits, and the wait begins with the first event that waits."""
    running.compare(200.0, {0: 0}, {0: 10})
    assert _reason(running, 900.0) is None
    running.compare(900.0, {0: 0}, {0: 11})
    assert _reason(running, 905.0) is None
    running.compare(911.0, {0: 0}, {0: 10})
    assert _reason(running, 912.0) is None


def test_a_topic_of_many_partitions_counts_as_such(running: EvaluatedStream) -> None:
    """The driver learns the partitions with the ends."""
    running.compare(200.0, {0: 0, 1: 0}, {0: 10, 1: 0})
    assert running.partitions == 2
