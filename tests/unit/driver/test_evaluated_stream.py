"""The driver's state of a stream."""

from __future__ import annotations

import pytest

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from spark_jobs.runtime.driver.metrics import StreamMetrics
from spark_jobs.runtime.streams.checkpoint import StreamPosition
from spark_jobs.runtime.streams.evaluated_stream import EvaluatedStream
from spark_jobs.runtime.streams.lane_log import LaneStart
from spark_jobs.runtime.streams.progress import Committed, Progress
from spark_jobs.runtime.streams.resumption import is_far

_STREAM = Stream(StreamId("s_1"), "quotes", (), "quotes", "json", {"0": 0}, "")


class _Store:
    """Where a stream's position is told."""

    def committed(self, _stream_id: str, _batch: int, _positions: dict[str, int]) -> None:
        """Nobody reads the position."""


@pytest.fixture
def running() -> EvaluatedStream:
    """A stream in the lane, with ten events evaluated, whose last micro-batch was committed at 100 s."""
    progress = Progress(_STREAM, StreamPosition(4, {"0": 10}), _Store(), None)  # type: ignore[arg-type]
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


def test_a_stream_of_the_lane_that_gets_nothing_is_told(running: EvaluatedStream) -> None:
    """Micro-batches of the lane that have events of other streams alone are no progress of this stream."""
    running.compare(200.0, {0: 0}, {0: 12})
    for second in range(200, 212):
        running.look_at_lane(Committed(second, {"orders": {"0": second}}, 1, {}), None, 0.0, float(second))
    assert _reason(running, 211.0) == "events wait, and no micro-batch was committed for 11 s"


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


def test_metrics_name_the_lane_and_the_waiting_events(running: EvaluatedStream) -> None:
    """Each stream has a series that says whether its query is shared, and a series of the events that wait."""
    running.compare(200.0, {0: 0}, {0: 12})
    metrics = StreamMetrics(lambda: {"quotes": running.status(201.0, lane_runs=True)})
    values = {sample.name: sample.value for metric in metrics.collect() for sample in metric.samples}
    assert (1.0, 2.0) == (values["cq_stream_in_lane"], values["cq_evaluator_events_behind"])
    running.in_lane = False
    values = {sample.name: sample.value for metric in metrics.collect() for sample in metric.samples}
    assert 0.0 == values["cq_stream_in_lane"]


@pytest.mark.parametrize(("end", "far"), [(5_010, False), (5_011, True)])
def test_a_large_topic_from_its_beginning_does_not_begin_in_the_lane(end: int, far: bool) -> None:
    """Very many waiting events would hold up the other streams; partitions count together."""
    place = LaneStart(StreamPosition(-1, {"0": 10}), {})
    assert far == is_far(place, {0: end}) == is_far(place, {0: 110, 1: end - 110})
