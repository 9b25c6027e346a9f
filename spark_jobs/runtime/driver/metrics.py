"""The evaluator's Prometheus metrics for each stream, computed from the streams' status at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

__all__ = ["StreamMetrics"]

_COUNTERS = {
    "events": ("cq_events_evaluated", "events evaluated since the evaluator started, by stream"),
    "events_deleted": ("cq_events_deleted", "events that Kafka deleted before they were evaluated, by stream"),
    "failures": ("cq_stream_failures", "unexpected ends of a stream's query, by stream"),
}
_GAUGES = {
    "behind": ("cq_evaluator_events_behind", "events published and not yet evaluated, by stream"),
    "batch_events": ("cq_batch_events", "events of the last micro-batch, by stream"),
    "quiet_seconds": (
        "cq_seconds_since_batch",
        "seconds since the last micro-batch with events of the stream was committed",
    ),
}
_IN_LANE = (
    "cq_stream_in_lane",
    "1 where a stream shares the query of quiet streams, 0 where its query is its own",
)
_PHASES = ("cq_batch_seconds", "seconds of the last micro-batch, by stream and phase")


class StreamMetrics(Collector):
    """Metrics of the streams, computed for each scrape."""

    def __init__(self, status: Callable[[], Mapping[str, Mapping[str, Any]]]) -> None:
        """Keep the source of the status.

        Args:
            status: Returns the status of streams by name (`Streams.status`).
        """
        self._status = status

    def collect(self) -> Iterable[Metric]:
        """Return the present values of the metrics."""
        streams = self._status()
        running = GaugeMetricFamily("cq_stream_running", "1 where a stream is evaluated, else 0", labels=["stream"])
        lane = GaugeMetricFamily(*_IN_LANE, labels=["stream"])
        phases = GaugeMetricFamily(*_PHASES, labels=["stream", "phase"])
        for name, figures in streams.items():
            running.add_metric([name], float(figures["state"] == "running"))
            lane.add_metric([name], float(figures["lane"]))
            for phase, seconds in figures["phases"].items():
                phases.add_metric([name, phase], seconds)
        yield running
        yield lane
        yield phases
        for field, (metric, documentation) in _COUNTERS.items():
            counter = CounterMetricFamily(metric, documentation, labels=["stream"])
            for name, figures in streams.items():
                counter.add_metric([name], figures[field])
            yield counter
        for field, (metric, documentation) in _GAUGES.items():
            gauge = GaugeMetricFamily(metric, documentation, labels=["stream"])
            for name, figures in streams.items():
                if figures[field] is not None:
                    gauge.add_metric([name], figures[field])
            yield gauge
