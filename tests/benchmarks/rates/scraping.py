"""A reader of the evaluator's metrics over HTTP: once a second, fifteen times as often as usual for Prometheus."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import REGISTRY

from grouping.process.metrics_server import MetricsServer, RoleState
from spark_jobs.runtime.driver.metrics import StreamMetrics

__all__ = ["scraped"]

_SECONDS = 1.0
_STATUS = {
    "state": "running", "behind": 0, "events": 1, "events_deleted": 0, "failures": 0, "batch_events": 1,
    "quiet_seconds": 0.1, "phases": {"addBatch": 1.0, "walCommit": 0.1, "latestOffset": 0.1},
}  # fmt: skip
"""The status of a stream, as in `Streams.status`."""


@contextmanager
def scraped(stream: str) -> Iterator[None]:
    """Serve the metrics of an evaluator of one stream while the block lasts, and read them."""
    REGISTRY.register(metrics := StreamMetrics(lambda: {stream: _STATUS}))
    server, stop = MetricsServer("127.0.0.1", 0, RoleState()), threading.Event()

    def scrape() -> None:
        while not stop.wait(_SECONDS):
            with urllib.request.urlopen(server.url) as answer:  # noqa: S310 - our own
                assert b"cq_stream_running" in answer.read()

    reader = threading.Thread(target=scrape)
    reader.start()
    try:
        yield
    finally:
        stop.set()
        reader.join()
        server.close()
        REGISTRY.unregister(metrics)
