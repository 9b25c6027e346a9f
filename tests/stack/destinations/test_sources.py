"""Changes of a source topic under its stream, and the topics readable to a stream (docs/statements.md)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import KafkaException

from gateway.kafka import LARGEST_RECORD
from gateway.sdk import Match, connect
from tests.kafka_client import wait_until
from tests.kafka_tail import dead_letters
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack
from tests.stack.tracebacks import TOPIC_GREW

_N = "n INT"


def _remade(lab: Lab, source: Source, partitions: int | None = None) -> None:
    """Delete a stream's topic and make it again, with as many partitions if not told otherwise."""
    lab.client.admin.delete_topics([source.topic])[source.topic].result()
    wait_until(lambda: source.topic not in lab.client.topics(), f"end of topic {source.topic}")

    def made() -> bool:
        try:
            lab.client.make_topic(source.topic, partitions or source.partitions)
        except KafkaException:
            return False  # the deletion is under way
        return True

    wait_until(made, f"topic {source.topic} made again")


def _described(lab: Lab, source: Source) -> dict[str, int]:
    found: dict[str, int] = lab.client.result(f"DESCRIBE STREAM {source.name}")
    return found


def test_streams_are_dropped_while_events_come(lab: Lab) -> None:
    """Tasks under way end without a stack trace, and another stream goes on."""
    other = lab.stream(_N)
    for _ in range(4):
        source = lab.stream(_N)
        lab.create("all", f"SELECT n FROM {source.name}")
        stop = threading.Event()

        def publish(to: Source = source, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                to.publish_values(*(b'{"n": %d}' % n for n in range(20)))

        with ThreadPoolExecutor(1) as pool:
            published = pool.submit(publish)
            try:
                source.fence()
                lab.drop("all")
                lab.drop_stream(source)
                other.fence()
            finally:
                stop.set()
            published.result()


def test_a_topic_made_again_goes_on_under_new_ids(lab: Lab) -> None:
    """Events of the new topic have fresh ids; the loss is reported, and the CQ goes on."""
    source, letters = lab.stream(_N), lab.dead_letter_tail()
    everything = lab.create("all", f"SELECT n, _offset AS o FROM {source.name}", clauses="DO PUBLISH SHARED")
    digest = lab.create("digest", f"SELECT n FROM {source.name} WHERE n >= 0", clauses="EVERY '1 second'")
    source.publish_values(*(b'{"n": %d}' % n for n in range(5)))
    assert [0, 1, 2, 3, 4] == [one.row["n"] for one in lab.matches(everything, source) if one.row["n"] is not None]
    _remade(lab, source)
    source.publish_values(*(b'{"n": %d}' % n for n in range(10, 13)))
    wait_until(lambda: _described(lab, source)["generation"] == 2, "the new topic noticed")

    def rows() -> list[dict[str, int]]:
        lab.results.drain()
        found = (one.row for one in lab.results.of(everything["destination"]) if one.kind == "cq.match")
        return [row for row in found if row["n"] is not None]

    lab.results.until(lambda: len(rows()) >= 8, "matches of both topics")
    assert [*range(5), 10, 11, 12] == [row["n"] for row in rows()]
    assert [0, 1, 2] == [row["o"] for row in rows()[5:]]
    kept = lab.results.of(everything["destination"])
    assert len(kept) == len({one.source for one in kept})

    def pending() -> list[int]:
        lab.results.drain()
        found = (one.row for one in lab.results.of(digest["destination"]) if one.kind == "cq.digest")
        return [row["n"] for each in found for row in each["rows"]]

    lab.results.until(lambda: len(pending()) >= 8, "digests of both topics")
    assert [*range(5), 10, 11, 12] == sorted(pending())
    noted: list[str] = []

    def letter() -> bool:
        found = [each for each in dead_letters(letters) if each.source.startswith(f"{source.topic}/")]
        noted.extend(each.code for each in found)
        return bool(noted)

    wait_until(letter, "the dead letter")
    assert {"events-deleted"} == set(noted)


def test_a_topic_made_again_with_fewer_partitions_stops_nobody(lab: Lab, stack: Stack) -> None:
    """Its stream goes on, also its digest; commands are answered and digests of another stream come meanwhile."""
    source, other = lab.stream(_N, partitions=3), lab.stream(_N)
    digests = {
        each.name: lab.create(
            f"digest_{each.name}", f"SELECT n FROM {each.name} WHERE n >= 0", clauses="EVERY '1 second'"
        )
        for each in (source, other)
    }
    gateway = stack.endpoints()["pids"]["gateway"]

    def pending(of: Source) -> list[int]:
        lab.results.drain()
        found = (one.row for one in lab.results.of(digests[of.name]["destination"]) if one.kind == "cq.digest")
        return sorted(row["n"] for each in found for row in each["rows"])

    for partition in range(3):
        source.publish_values(b'{"n": %d}' % partition, partition=partition)
    lab.results.until(lambda: pending(source) == [0, 1, 2], "the digest before")
    _remade(lab, source, partitions=1)
    source.publish_values(b'{"n": 10}')
    other.publish_values(b'{"n": 20}')
    lab.results.until(lambda: pending(other) == [20], "the digest of another stream")
    lab.results.until(lambda: pending(source) == [0, 1, 2, 10], "the digest of the new topic")
    assert gateway == stack.endpoints()["pids"]["gateway"]
    assert 2 == _described(lab, source)["generation"]


@pytest.mark.traceback(TOPIC_GREW)
def test_partitions_are_added_under_virtual_cqs(lab: Lab) -> None:
    """The group's topic gets the partitions of its source, its readers read them, and the stream goes on."""
    source = lab.stream(_N)
    text = f"CREATE CQ v AS SELECT n FROM {source.name} WHERE n > 0 DO PUBLISH VIRTUAL"
    made = lab.client.result(text, lab.subscriber())
    lab.cqs[lab.subscriber(), "v"] = made
    source.publish_values(b'{"n": 1}')
    lab.client.grow_topic(source.topic, 3)
    source.publish_values(b'{"n": 2}', partition=2)
    topic = made["destination"]["topic"]

    def grown() -> bool:
        return len(lab.client.admin.list_topics(topic, timeout=30).topics[topic].partitions) == 3

    wait_until(grown, "partitions of the group's topic")
    with connect(lab.client.bootstrap, lab.subscriber()) as client, client.subscribe("v") as results:
        found = [results.next(timeout=180) for _ in range(2)]
    assert {(1, 0), (2, 2)} == {(one.row["n"], one.partition) for one in found if isinstance(one, Match)}


@pytest.mark.parametrize("name", ["__consumer_offsets", "{other}commands", "{other}results.d_1", "cq.commands"])
def test_topics_of_kafka_and_of_gateways_are_not_read(lab: Lab, name: str) -> None:
    """Commands and results of another gateway's subscribers are theirs alone."""
    other = f"other-{lab.token}."
    large, ever = {"max_message_bytes": str(LARGEST_RECORD)}, {"retention_ms": "-1"}
    options = {"replies": large, "catalog": {"cleanup_policy": "compact"} | large, "pending": ever}
    theirs = [
        lab.client.make_topic(other + own, **options.get(own, {}))
        for own in ("commands", "replies", "catalog", "pending", "results.d_1")
    ]
    wait_until(lambda: lab.client.topics() >= {*theirs}, "the other gateway's topics")
    ddl = f"CREATE STREAM s_{lab.token} (n INT) WITH (topic = '{name.format(other=other)}', format = 'json')"
    reply = lab.client.execute(ddl, lab.subscriber("owner"))
    lab.client.admin.delete_topics(theirs)
    assert "not-allowed" == reply.code, reply.fields


def test_a_topic_deleted_for_good_ends_with_its_stream(stack: Stack, lab: Lab) -> None:
    """A CQ is dropped that events of the topic have not met yet: its `cq.end` comes once the stream is dropped too."""
    source = lab.stream(_N)
    made = lab.create("all", f"SELECT n FROM {source.name}", clauses="DO PUBLISH SHARED")
    source.publish_values(b'{"n": 1}')
    lab.matches(made, source)
    stack.kill("evaluator")
    source.publish_values(b'{"n": 2}')
    lab.drop("all")
    lab.client.admin.delete_topics([source.topic])[source.topic].result()
    source.unwatch()
    # The evaluator starts anew.
    wait_until(lambda: "UNKNOWN_TOPIC" in str(stack.stream_report(source.name).get("reason")), "why it stands", 300)
    assert not _ended(lab, made)
    lab.client.result(f"DROP STREAM {source.name}", lab.subscriber("owner"))
    wait_until(lambda: _ended(lab, made), "cq.end")


def _ended(lab: Lab, made: dict[str, Any]) -> bool:
    lab.results.drain()
    return any(one.kind == "cq.end" for one in lab.results.of(made["destination"]))
