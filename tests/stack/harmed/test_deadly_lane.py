"""A query that kills workers, of a stream that shares a Spark query with many."""

from __future__ import annotations

import pytest

from tests.kafka_client import wait_until
from tests.stack.lab import Lab
from tests.stack.lanes.crowd import STREAMS, Crowd
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH


@pytest.mark.traceback(WORKER_DEATH)
def test_a_query_that_kills_workers(harmed: Stack, lab: Lab) -> None:
    """The death of a worker convicts a query of a single stream, and the stream leaves; the rest stay together."""
    streams = Crowd(harmed, lab)
    bad = STREAMS - 1
    streams.await_lane({bad, bad - 1})
    streams.flow()
    streams.check()
    name = streams.sources[bad].name
    together = {streams.sources[number].name for number in streams.in_lane() - {bad}}

    def failures() -> dict[str, int]:
        return {other: report["failures"] for other, report in streams.report().items() if other in together}

    before = failures()  # a topic that is slow to appear may have failed a stream
    lab.create("guilty", f"SELECT n FROM {name} WHERE n >= 0 AND deadly LIKE '%x%'", follow=False)
    streams.sources[bad].publish_values(b'{"symbol": "a", "n": 1, "deadly": "x"}')
    streams.published[bad] += 1
    streams.flow(2, set(range(bad)))
    streams.check()
    wait_until(lambda: bad not in streams.in_lane(), "the stream's leaving")
    wait_until(lambda: harmed.settled_streams().get(name, {}).get("failures"), "the stream's failures")
    wait_until(lambda: len(harmed.stream_report(name).get("quarantined", {})) == 1, "the quarantine of the query")
    assert bad - 1 in streams.in_lane()
    assert before == failures()
