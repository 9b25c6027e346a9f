"""Quiet streams share a Spark query; a busy, failing or deleted stream does not hold up the rest."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.ground import Ground
from tests.kafka_client import wait_until
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

COLUMNS = "symbol STRING, n INT, deadly STRING"
STREAMS = 12
"""More than two cores serve by a query for each stream."""
PATIENCE = 60.0
_PREFIX = "crowd."
_PLANTED = Path(__file__).parents[1] / "planted"


@pytest.fixture(scope="module")
def crowd(servers: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A gateway and an evaluator of this file's own: the evaluator is killed, and deadly values kill its workers."""
    path = os.pathsep.join([str(_PLANTED), *filter(None, [os.environ.get("PYTHONPATH")])])
    redis = servers.settings.redis.url.get_secret_value()
    given = ("--kafka", servers.settings.kafka.bootstrap, "--redis", redis)
    settings = {"CQ_PREFIX": _PREFIX, "PYTHONPATH": path, "CQ_EVALUATOR_MASTER": "local[2]"}
    crowd = Stack(tmp_path_factory.mktemp("crowd") / "data", *given, **settings)
    with crowd.guarded():
        try:
            crowd.up()
            yield crowd
        finally:
            if (crowd.data / "endpoints.json").exists():
                crowd.down()


@pytest.fixture
def lab(crowd: Stack) -> Iterator[Lab]:
    """A corner of that gateway."""
    with closing(Lab(crowd.bootstrap, _PREFIX)) as lab:
        yield lab


class _Streams:
    """Streams with a partition each, and a CQ for every event of each stream."""

    def __init__(self, stack: Stack, lab: Lab, count: int) -> None:
        self.stack, self.lab = stack, lab
        self.sources: list[Source] = []
        self.watched: list[Any] = []
        self.published: list[int] = []
        for _ in range(count):
            self.add()

    def add(self) -> None:
        source = self.lab.stream(COLUMNS)
        number = len(self.sources)
        self.sources.append(source)
        self.watched.append(
            self.lab.create(f"q{number}", f"SELECT n FROM {source.name} WHERE n >= 0", clauses="DO PUBLISH SHARED")
        )
        self.published.append(0)

    def flow(self, count: int = 1, only: set[int] | None = None) -> None:
        """Publish events to each stream, numbered in its own order."""
        for number, source in enumerate(self.sources):
            if only is None or number in only:
                first = self.published[number]
                source.publish_values(*[b'{"symbol": "a", "n": %d}' % n for n in range(first, first + count)])
                self.published[number] += count

    def check(self, numbers: range | None = None) -> None:
        """Check that each stream has each of its events once and in order."""
        results = self.lab.results
        for number in numbers or range(len(self.sources)):
            destination = self.watched[number]["destination"]

            def there(number: int = number, destination: Any = destination) -> bool:
                return len(_matches(results, destination)) >= self.published[number]

            results.until(there, f"events of stream {number}")
            assert list(range(self.published[number])) == _matches(results, destination), number

    def told(self) -> dict[str, dict[str, Any]]:
        time.sleep(0.1)
        return dict(json.loads((self.stack.data / "run" / "evaluator.json").read_text())["streams"])

    def in_lane(self) -> set[int]:
        told = self.told()
        return {n for n, source in enumerate(self.sources) if told.get(source.name, {}).get("lane")}

    def await_lane(self, numbers: set[int]) -> None:
        wait_until(lambda: numbers <= self.in_lane(), f"streams {numbers} in the lane", PATIENCE)


def _matches(results: Any, destination: Any) -> list[int]:
    return [one.row["n"] for one in results.of(destination) if one.kind == "cq.match"]


def _alter(lab: Lab, source: Source) -> None:
    """Add columns to a stream of the lane; a query on them gets the first event after its reply."""
    for column in ("venue STRING", "type STRING FROM HEADER 'ce_type'"):
        lab.client.result(f'ALTER STREAM "{source.name}" ADD COLUMN {column}', lab.subscriber("owner"))
    made = lab.create("altered", f"SELECT n, venue FROM {source.name} WHERE type = 'trade'")
    source.publish_values(b'{"n": 5, "venue": "x"}', headers=[("ce_type", b"trade")])
    lab.results.until(lambda: lab.results.of(made["destination"]), "the event")
    assert {"n": 5, "venue": "x"} == lab.results.of(made["destination"])[0].row
    lab.drop("altered")


def test_streams_share_a_query_and_one_that_is_busy_leaves(crowd: Stack, lab: Lab) -> None:
    """Streams come, become busy and go, while events of all flow: each event is evaluated once and in order."""
    streams = _Streams(crowd, lab, STREAMS)
    streams.flow(3)
    streams.await_lane({STREAMS - 1})
    streams.check()
    streams.await_lane(set(range(STREAMS)))
    describe = f'DESCRIBE STREAM "{streams.sources[0].name}"'
    wait_until(lambda: lab.client.result(describe).get("lane"), "the gateway knows of the lane", PATIENCE)
    streams.flow(2)
    streams.check()
    _alter(lab, streams.sources[1])
    streams.published[1] += 1
    streams.add()
    for _ in range(3):
        streams.flow()
    streams.await_lane({STREAMS})
    streams.check()
    busy = STREAMS - 1
    streams.flow(30_000, {busy})
    wait_until(lambda: busy not in streams.in_lane(), "the busy stream has a query of its own", PATIENCE)
    streams.flow()
    streams.check()
    lab.drop("q0")
    lab.client.result(f'DROP STREAM "{streams.sources[0].name}"', lab.subscriber("owner"))
    lab.sources.remove(streams.sources[0])
    streams.flow(2, set(range(1, STREAMS + 1)))
    streams.check(range(1, STREAMS + 1))


def test_headers_in_the_lane(crowd: Stack, lab: Lab) -> None:
    """A query with `_headers` on a stream of the lane has them at once; the other streams go on."""
    streams = _Streams(crowd, lab, STREAMS)
    typed = STREAMS - 1
    streams.await_lane({typed, typed - 1})
    source = streams.sources[typed]
    made = lab.create("typed", f"SELECT n FROM {source.name} WHERE _headers['of'] = 'a'", clauses="DO PUBLISH SHARED")
    for n in range(60):
        source.publish_values(b'{"symbol": "a", "n": %d}' % n, headers=[("of", b"ab"[n % 2 : n % 2 + 1])])
        streams.published[typed] += 1
        streams.flow(1, {typed - 1})
    streams.check()
    even = list(range(0, 60, 2))
    lab.results.until(lambda: len(_matches(lab.results, made["destination"])) >= len(even), "events by their headers")
    assert even == _matches(lab.results, made["destination"])


def test_kill_amid_events(crowd: Stack, lab: Lab) -> None:
    """A killed evaluator goes on with all streams: nothing is lost, nothing is shown twice."""
    streams = _Streams(crowd, lab, STREAMS)
    streams.flow(2)
    streams.await_lane({STREAMS - 1, STREAMS - 2})
    for round_ in range(2):
        streams.flow(200)
        pid = crowd.kill("evaluator")
        streams.flow(3)
        crowd.await_restart("evaluator", pid)
        streams.flow(2)
        streams.check()
        assert round_ or streams.in_lane()


@pytest.mark.traceback("UnknownTopicOrPartitionException")
def test_a_topic_that_goes(crowd: Stack, lab: Lab) -> None:
    """A deleted topic costs its stream alone."""
    streams = _Streams(crowd, lab, STREAMS)
    gone = STREAMS - 1
    streams.await_lane({gone, gone - 1})
    streams.flow(2)
    streams.check()
    topic = streams.sources[gone].topic
    lab.client.admin.delete_topics([topic])[topic].result()
    others = set(range(STREAMS)) - {gone}
    wait_until(lambda: gone not in streams.in_lane(), "the stream has left", PATIENCE)
    streams.flow(2, others)
    streams.check(range(gone))


@pytest.mark.traceback(WORKER_DEATH)
def test_a_query_that_kills_workers(crowd: Stack, lab: Lab) -> None:
    """The death of a worker convicts a query of a single stream, and the stream leaves; the rest stay together."""
    streams = _Streams(crowd, lab, STREAMS)
    bad = STREAMS - 1
    streams.await_lane({bad, bad - 1})
    streams.flow()
    streams.check()
    name = streams.sources[bad].name
    lab.create("guilty", f"SELECT n FROM {name} WHERE n >= 0 AND deadly LIKE '%x%'", follow=False)
    streams.sources[bad].publish_values(b'{"symbol": "a", "n": 1, "deadly": "x"}')
    streams.published[bad] += 1
    streams.flow(2, set(range(bad)))
    streams.check()
    wait_until(lambda: bad not in streams.in_lane(), "the stream's leaving")
    assert crowd.settled_streams()[name]["failures"]
    wait_until(lambda: len(crowd.told_of_stream(name)["quarantined"]) == 1, "the quarantine of the query")
    assert bad - 1 in streams.in_lane()
    assert {0} == {told["failures"] for other, told in streams.told().items() if other != name}
