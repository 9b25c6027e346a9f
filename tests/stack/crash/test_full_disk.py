"""A disk without room: the embedded broker ends before it damages its own log (docs/faults.md).

`make chaos` fills a small disk, which only root may mount. Here an index is made shorter than Kafka believes: the JVM
meets a missing page, as on a full disk.
"""

from __future__ import annotations

import os

import pytest

from tests.stack.crash.test_crash import COLUMNS, check, flow, watch
from tests.stack.lab import Lab
from tests.stack.server import Stack
from tests.stack.tracebacks import KAFKA_AWAY


@pytest.mark.traceback(KAFKA_AWAY)
def test_a_broker_without_a_page_for_an_index_ends_and_loses_nothing(stack: Stack, lab: Lab) -> None:
    """Kafka alone would go on, give the same offsets to other events, and empty the topic at its next start."""
    source = lab.stream(COLUMNS)
    watched = watch(lab, source)
    flow(lab, source, 0, 2000)
    indexes = list((stack.data / "kafka" / "data").glob(f"{source.topic}-*/*index"))
    assert indexes
    pids = stack.endpoints()["pids"]
    for index in indexes:
        os.truncate(index, 0)
    flow(lab, source, 2000, 2000)
    stack.await_restart("kafka", int(pids["kafka"]))
    check(lab, source, watched, 4000)
    assert pids["gateway"] == stack.endpoints()["pids"]["gateway"], "the gateway was not needed to end for it"
