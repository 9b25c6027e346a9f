"""Quiet streams share a Spark query; a busy or deleted stream does not hold up the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kafka_client import wait_until
from tests.stack.lab import Lab, Source
from tests.stack.lab_table import LabTable
from tests.stack.lanes.crowd import PATIENCE, STREAMS, Crowd, matched
from tests.stack.server import Stack
from tests.stack.tracebacks import TOPIC_GREW

_HUNDRED = 100


@pytest.fixture(scope="module")
def crowd(stack: Stack, shared_lab: Lab) -> Crowd:
    """Streams of several tests; their start and their way into the lane take seconds."""
    return Crowd(stack, shared_lab)


def _alter(lab: Lab, source: Source) -> None:
    """Add columns to a stream of the lane; a query on them gets the first event after its reply."""
    for column in ("venue STRING", "type STRING FROM HEADER 'ce_type'"):
        lab.client.result(f'ALTER STREAM "{source.name}" ADD COLUMN {column}', lab.subscriber("owner"))
    made = lab.create("altered", f"SELECT n, venue FROM {source.name} WHERE type = 'trade'")
    source.publish_values(b'{"n": 5, "venue": "x"}', headers=[("ce_type", b"trade")])
    lab.results.until(lambda: lab.results.of(made["destination"]), "the event")
    assert {"n": 5, "venue": "x"} == lab.results.of(made["destination"])[0].row
    lab.drop("altered")


def test_streams_share_a_query_and_one_that_is_busy_leaves(stack: Stack, lab: Lab) -> None:
    """Streams come, become busy and go, while events of all flow: each event is evaluated once and in order."""
    streams = Crowd(stack, lab)
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


def test_headers_in_the_lane(crowd: Crowd) -> None:
    """A query with `_headers` on a stream of the lane has them at once; the other streams go on."""
    streams, lab = crowd, crowd.lab
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
    lab.results.until(lambda: len(matched(lab.results, made["destination"])) >= len(even), "events by their headers")
    assert even == matched(lab.results, made["destination"])


@pytest.mark.timeout(900)  # an evaluator starts anew
def test_kill_amid_events(stack: Stack, crowd: Crowd) -> None:
    """A killed evaluator goes on with all streams: nothing is lost, nothing is shown twice."""
    streams = crowd
    streams.flow(2)
    streams.await_lane({STREAMS - 1, STREAMS - 2})
    streams.flow(200)
    pid = stack.kill("evaluator")
    streams.flow(3)
    stack.await_restart("evaluator", pid)
    streams.flow(2)
    streams.check()
    wait_until(streams.in_lane, "the first report of the lane", PATIENCE)


@pytest.mark.traceback(TOPIC_GREW)
def test_a_topic_grows_and_a_table_is_joined(crowd: Crowd) -> None:
    """A stream of the lane has the events of a partition that is added, and the rows of a table; it stays there."""
    streams, lab = crowd, crowd.lab
    number = 2
    streams.await_lane({number, number + 1})
    source, table = streams.sources[number], LabTable(lab, "symbol STRING PRIMARY KEY, worth INT")
    select = f"SELECT n, worth FROM {source.name} q JOIN {table.name} t ON t.symbol = q.symbol"
    made = lab.create("joined", select, clauses="DO PUBLISH SHARED")
    lab.client.grow_topic(source.topic, 2)
    for worth in (1, 2):
        table.put({"symbol": "a", "worth": worth})
        n = streams.published[number]
        source.publish_values(b'{"symbol": "a", "n": %d}' % n, partition=1)
        streams.published[number] += 1
        streams.flow(1, {number + 1})
        streams.check(range(number, number + 2))
        lab.results.until(lambda worth=worth: len(matched(lab.results, made["destination"])) >= worth, "the row")  # type: ignore[misc]
    assert [1, 2] == [one.row["worth"] for one in lab.results.of(made["destination"])]
    assert {number, number + 1} <= streams.in_lane()
    lab.drop("joined")
    table.drop()


def test_a_hundred_streams_are_taken_together(stack: Stack, crowd: Crowd) -> None:
    """A hundred subscribers create a stream at once, and drop it: each has its result, and the others go on."""
    lab = crowd.lab
    names = [f"hundred{number}_{lab.token}" for number in range(_HUNDRED)]

    def answered(text: str) -> list[Any]:
        sent = [lab.client.send(text.format(name), lab.subscriber(name)) for name in names]
        replies = [lab.client.reply(each) for each in sent]
        assert {"ok"} == {reply.code for reply in replies}
        return [reply.result for reply in replies]

    def starts() -> int:
        return (stack.data / "logs" / "evaluator.log").read_text().count("lane started")

    before = starts()
    answered("CREATE STREAM {0} (n INT) WITH (topic = '{0}', format = 'json', partitions = 1)")
    made = [each["destination"] for each in answered("CREATE CQ all AS SELECT n FROM {0} DO PUBLISH SHARED")]
    for destination in made:
        lab.results.follow(destination)
    for name in names:
        lab.client.publish_all(name, [(b'{"n": 1}', None, 0, 0)])
    crowd.flow()
    lab.results.until(lambda: all(matched(lab.results, each) == [1] for each in made), "a result of each stream")
    crowd.check()
    assert starts() - before < _HUNDRED / 2
    answered("DROP CQ all")
    answered("DROP STREAM {0}")
    crowd.flow()
    crowd.check()
    lab.client.admin.delete_topics(names)


@pytest.mark.traceback("UnknownTopicOrPartitionException")
def test_a_topic_that_goes(crowd: Crowd) -> None:
    """A deleted topic costs its stream alone."""
    streams, lab = crowd, crowd.lab
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
