"""Two evaluators share the streams of a prefix: one dies, the other goes on, and a stream moves over."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from gateway.top.roles import running_roles
from tests.cluster.evaluators.site import Role, Site, site
from tests.ground import goal_seconds
from tests.kafka_client import wait_until
from tests.queries import Event
from tests.stack.lab import Lab, Source

_NOW = json.dumps({"fast": "quotes"})
_BEFORE = json.dumps({"fast": "quotes, letters"})
"""The evaluator "fast" was started with this setting: it has a stream more."""
_UNDISTURBED_SECONDS = 5.0
"""Time limit for events to be evaluated while another evaluator dies; a restart would take longer."""
_EVENTS = 5_000


@pytest.fixture
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Servers with a gateway."""
    with site(tmp_path_factory.mktemp("site"), CQ_EVALUATOR_STREAMS=_NOW) as running:
        yield running


@pytest.mark.timeout(900)  # three starts of Spark
def test_streams_are_spread_over_evaluators(running: Site) -> None:
    """Each evaluator has its own streams, a stream moves from one to the other, and every match is there once."""
    fast = running.evaluator("first", CQ_EVALUATOR_NAME="fast", CQ_EVALUATOR_STREAMS=_BEFORE)
    with closing(Lab(running.bootstrap, running.ground.settings.prefix)) as lab:
        quotes, letters, numbers = sources = [
            lab.stream("n BIGINT", name=name, partitions=2) for name in ("quotes", "letters", "numbers")
        ]
        cqs = [lab.where(source, source.name, "n % 2 = 0", columns="n") for source in sources]
        for source in (quotes, letters):
            _publish(source)
            source.fence()
        began = time.monotonic()
        rest = running.evaluator("second")
        rest.wait_for("ready")
        started = time.monotonic() - began
        _publish(numbers)
        numbers.fence()

        # Both are assigned the stream: the first to come has it, and everybody can see this.
        _await_word(fast, "letters", None, "running")
        _await_word(rest, "letters", 'the evaluator "fast" has it', "waiting")
        _await_status(running, "degraded", quotes="evaluator/fast", letters="evaluator/fast", numbers="evaluator")

        for source in (quotes, letters):
            _publish(source)
        fast.kill()
        _publish(numbers)
        began = time.monotonic()
        numbers.fence()
        assert time.monotonic() - began < max(goal_seconds(_UNDISTURBED_SECONDS), started)
        letters.fence()
        _await_word(rest, "letters", None, "running")
        again = running.evaluator("first", CQ_EVALUATOR_NAME="fast")
        quotes.fence()
        again.wait_for("ready")
        _await_word(again, "quotes", None, "running")
        assert {"quotes"} == again.report()["streams"].keys()
        _await_status(running, "ready", quotes="evaluator/fast", letters="evaluator", numbers="evaluator")
        assert 0 == rest.report()["streams"]["numbers"]["failures"]
        for source, cq in zip(sources, cqs, strict=True):
            published = [event.values["n"] for _, event in source.events if event.values]
            assert published[::2] == sorted(match.row["n"] for match in lab.settled_matches(cq, source))


def _publish(source: Source) -> None:
    first = len(source.events) - len(source.fences)
    numbers = range(first, first + _EVENTS)
    source.publish((Event({"n": n}, n // 2 % 2) for n in numbers), lambda event: json.dumps(event.values).encode())


def _await_word(evaluator: Role, stream: str, reason: str | None, state: str) -> None:
    """Wait until an evaluator tells that of a stream."""

    def shown() -> bool:
        time.sleep(0.1)
        found = evaluator.report().get("streams", {}).get(stream, {})
        return (reason, state) == (found.get("reason"), found.get("state"))

    wait_until(shown, f"{stream} to be {state}", 240)


def _await_status(running: Site, state: str, **evaluators: str) -> None:
    """Wait until `cq status` shows, from the gateway's notes, the evaluator of each stream."""
    found: dict[str, Any] = {}

    def as_wanted() -> bool:
        time.sleep(0.5)
        found.update(running_roles(running.ground.settings))
        streams = found["gateway"].get("streams", {})
        shown = "degraded" if any("reason" in stream for stream in streams.values()) else found["state"]
        return (state, evaluators) == (shown, {name: stream.get("evaluator") for name, stream in streams.items()})

    wait_until(as_wanted, f"a state that is {state}", 240)
