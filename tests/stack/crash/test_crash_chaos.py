"""A short chaos run: `make chaos` is the long one (tests/chaos)."""

from __future__ import annotations

import pytest

from tests.chaos.host import Host
from tests.chaos.rounds import Chaos
from tests.stack.server import Stack
from tests.stack.tracebacks import TOPIC_GREW, WORKER_DEATH


@pytest.mark.traceback(WORKER_DEATH)
@pytest.mark.traceback(TOPIC_GREW)  # the query may just start anew, after the death of its workers
@pytest.mark.timeout(900)  # on a machine with much other work; half a minute on an idle one
def test_chaos(stack: Stack) -> None:
    """Faults during work cost nobody a result, double none, and leave nothing behind."""
    chaos = Chaos(Host(stack, None, small_disk=False), seed=12, tell=print)
    chaos.round(["kill-workers", "add-partition", "kill-gateway", "set-back-redis"])
    chaos.finish()
    assert chaos.tally.results > 100
