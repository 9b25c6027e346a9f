"""Fixtures of the tests on real servers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.ground import Ground, open_ground
from tests.stack.lab import Lab
from tests.stack.quiet import LONG_SECONDS, QuietStream
from tests.stack.server import Stack
from tests.stack.tracebacks import LogWatch

_FEW = {"partitions": 4}
"""Settings of a gateway that a test plays: its topics are made for each test, so they have few partitions."""


@pytest.fixture(scope="session", autouse=True)
def log_watch() -> Iterator[LogWatch]:
    """The logs of all stacks of this process. When the servers are ended, no role may log a stack trace either."""
    watch = LogWatch()
    yield watch
    watch.check(Stack.folders, watch.named)


@pytest.fixture(autouse=True)
def no_tracebacks(request: pytest.FixtureRequest, log_watch: LogWatch) -> Iterator[None]:
    """Fail if a role has logged a stack trace that the test does not name by ``@pytest.mark.traceback``.

    A trace may be logged late, so each test also accepts the traces that the test before it names.
    """
    before, own = log_watch.named, [mark.args[0] for mark in request.node.iter_markers("traceback")]
    log_watch.check(Stack.folders, before)
    yield
    log_watch.named = own
    log_watch.check(Stack.folders, [*before, *own])


@pytest.fixture(scope="session")
def quiet_stream(stack: Stack) -> Iterator[QuietStream]:
    """A stream that gets no event for at least a minute, while other tests run; then its query must still work."""
    with closing(Lab(stack.bootstrap)) as lab:
        quiet = QuietStream(stack, lab)
        yield quiet
        quiet.idle(LONG_SECONDS)
        quiet.touch()


@pytest.fixture
def lab(stack: Stack) -> Iterator[Lab]:
    """Streams, topics and CQs of the test on the stack, which are removed after the test."""
    with stack.evaluating(), closing(Lab(stack.bootstrap)) as lab:
        yield lab


@pytest.fixture(scope="module")
def shared_lab(stack: Stack) -> Iterator[Lab]:
    """A lab shared by all tests of a file, for objects that none of them changes."""
    with stack.evaluating(), closing(Lab(stack.bootstrap)) as lab:
        yield lab


@pytest.fixture(scope="session")
def servers(stack: Stack) -> Iterator[Ground]:
    """Only the stack's Kafka and a Valkey, for tests that play the gateway themselves."""
    with open_ground(kafka=stack.bootstrap) as ground:
        yield ground


@pytest.fixture
def ground(servers: Ground) -> Iterator[Ground]:
    """The servers, under a unique prefix; its topics are deleted with the test, before Kafka has thousands."""
    own = {"prefix": f"t{uuid.uuid4().hex[:8]}.", "results": servers.settings.results.model_copy(update=_FEW)}
    ground = Ground(servers.settings.model_copy(update=own))
    yield ground
    ground.delete_own_topics()
