"""The gateway corrects the settings of its own topics, and handles clusters that make topics on their own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from gateway.kafka import Topics
from gateway.local import kafka
from gateway.topics.own_topics import ensure_own_topics
from grouping.model.errors import OperationalError
from spark_jobs.runtime.kafka.admin import open_admin
from spark_jobs.runtime.kafka.positioned_consumer import PartitionUnreadable
from spark_jobs.runtime.kafka.range_reader import RangeReader, SourceRange
from spark_jobs.runtime.kafka.topic_offsets import TopicOffsets
from tests.ground import Ground, open_ground
from tests.kafka_client import wait_until


@pytest.fixture(scope="module")
def cluster() -> Iterator[Ground]:
    """A broker with Kafka's defaults: it makes topics that are asked for, and its records are small; and with ACLs."""
    habits = {
        "auto.create.topics.enable": "true",
        "message.max.bytes": "100000",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in habits.items():
            patch.setitem(kafka.PROPERTIES, name, value)
        with open_ground() as ground:
            yield ground


def test_topics_are_brought_into_form(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    """A catalog that would age, and a log of too few partitions, are mended at the start; others stay as they are."""
    settings, names, topics = ground.settings, ground.settings.topics, Topics(ground.settings)
    ground.make_topic(settings.topics.catalog, 1, cleanup_policy="delete", retention_ms="1000")
    ground.make_topic(settings.topics.pending, 2)
    ground.make_topic(settings.topics.results, 3, retention_ms="5000")
    with caplog.at_level(logging.WARNING):
        partitions = ensure_own_topics(settings, topics)
    assert (16, 3, 1) == tuple(partitions[name] for name in (names.pending, names.results, names.catalog))

    def in_form() -> bool:  # brokers learn of it a moment later
        found = topics.configs([settings.topics.catalog, settings.topics.results])
        catalog, results = found[settings.topics.catalog], found[settings.topics.results]
        configs = (catalog["cleanup.policy"], catalog["retention.ms"], results["message.timestamp.type"])
        grown = topics.partitions(names.pending) == 16
        return grown and configs == ("compact", "-1", "LogAppendTime") and results["retention.ms"] == "5000"

    wait_until(in_form, "the topics' form")
    assert 3 == len(caplog.records) - sum("partitions added" in record.message for record in caplog.records)
    caplog.clear()
    assert partitions == ensure_own_topics(settings, topics)
    assert not caplog.records


def test_a_form_that_cannot_be_mended_is_refused(ground: Ground) -> None:
    """Partitions cannot be taken away: the gateway says so in one line."""
    ground.make_topic(ground.settings.topics.ticks, 3)
    with pytest.raises(OperationalError, match='ticks" has 3 partitions, and the gateway needs 1'):
        ensure_own_topics(ground.settings, Topics(ground.settings))


def test_asking_for_a_topic_makes_none(cluster: Ground) -> None:
    """A broker that makes topics on its own makes none for a look at it, and the gateway's get the form they need."""
    topics = Topics(cluster.settings)
    assert topics.partitions("nobody-made-this") is None
    assert {} == topics.offsets.known_ends([("nobody-made-this", 0)])
    assert "nobody-made-this" not in topics.names()
    partitions = ensure_own_topics(cluster.settings, topics)
    found = topics.configs(partitions)
    assert 16 == partitions[cluster.settings.topics.pending]
    assert all(int(config["max.message.bytes"]) >= 2 << 20 for config in found.values())


def test_ends_of_partitions_that_were_just_added(ground: Ground) -> None:
    """The driver has looked leaders up before the topic grew, and the gateway would take Kafka for being away."""
    topics, name = Topics(ground.settings), f"{ground.settings.prefix}grows"
    topics.create({name: 1})
    assert topics.offsets.ends([(name, 0)]) == {(name, 0): 0}
    topics.grow(name, 3)
    assert topics.offsets.ends([(name, 0), (name, 2)]) == {(name, 0): 0, (name, 2): 0}


def test_a_topic_that_lost_partitions_holds_up_nothing(ground: Ground) -> None:
    """Gateway and evaluator ask for partitions that a topic made anew has no more, and get the ends of all others."""
    shrinks, stays = f"{ground.settings.prefix}shrinks", f"{ground.settings.prefix}stays"
    ground.make_topic(shrinks, 3)
    ground.make_topic(stays, 1)
    places = [(shrinks, 0), (shrinks, 1), (shrinks, 2), (stays, 0)]
    topics = Topics(ground.settings)
    # A broker tells the ends of topics that were just made a moment later.
    wait_until(lambda: topics.offsets.known_ends(places) == dict.fromkeys(places, 0), "the topics' ends")
    ground.delete_topic(shrinks)
    wait_until(lambda: shrinks not in topics.forms([shrinks]), "the end of the topic")
    assert {(stays, 0): 0} == topics.offsets.known_ends(places)
    ground.make_topic(shrinks, 1)
    left = {(shrinks, 0): 0, (stays, 0): 0}
    for client in (topics, Topics(ground.settings)):  # a client that knew the old topic, and a fresh client
        wait_until(lambda client=client: client.offsets.known_ends(places) == left, "the ends that are left")
        assert not client.offsets.silent(places)
    offsets = TopicOffsets(open_admin(ground.settings))
    assert {stays: {0: 0}} == offsets.ends([*places, ("nobody-made-this", 0)])
    assert {shrinks: {0: 0}, stays: {0: 0}} == offsets.ends(offsets.places([shrinks, stays]))


def _forbid(cluster: Ground, topic: str) -> None:
    """Let a single user read a topic, and return when the broker refuses it to others."""
    admin, topics = AdminClient({"bootstrap.servers": cluster.settings.kafka.bootstrap}), Topics(cluster.settings)
    theirs = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:somebody", "*",
        AclOperation.ALL, AclPermissionType.ALLOW,
    )  # fmt: skip
    for made in admin.create_acls([theirs]).values():
        made.result()
    while topic in topics.forms([topic]):
        pass  # the broker learns of the rule a moment later


def test_a_forbidden_topic_holds_up_nothing(cluster: Ground) -> None:
    """The ends of other topics are returned; the forbidden topic keeps its last known end."""
    topics, places = Topics(cluster.settings), [("secret", 0), ("open", 0)]
    for topic in ("secret", "open"):
        cluster.make_topic(topic, 1)
    # A broker tells the ends of topics that were just made a moment later.
    wait_until(lambda: topics.offsets.known_ends(places) == dict.fromkeys(places, 0), "the topics' ends")
    _forbid(cluster, "secret")
    assert dict.fromkeys(places, 0) == topics.offsets.known_ends(places)
    assert {("open", 0): 0} == Topics(cluster.settings).offsets.known_ends(places)


def test_the_lane_finds_a_forbidden_topic(cluster: Ground) -> None:
    """The lane's reader names the forbidden topic, whose stream leaves the lane, and then reads all other topics."""
    ranges = [SourceRange(topic, 0, 0, 1) for topic in ("guarded", "shown")]
    producer = Producer({"bootstrap.servers": cluster.settings.kafka.bootstrap})
    for each in ranges:
        cluster.make_topic(each.topic, 1)
        producer.produce(each.topic, b"{}", partition=0)
    producer.flush()
    _forbid(cluster, "guarded")
    assert [("shown", 0)] == TopicOffsets(open_admin(cluster.settings)).places(["guarded", "shown"])
    with closing(RangeReader(cluster.settings)) as reader:
        with pytest.raises(PartitionUnreadable) as refused:
            for _, batches in reader.read(ranges):
                assert [1] == [batch.num_rows for batch in batches]
        assert "guarded" == refused.value.topic
        assert [ranges[1]] == [found for found, _ in reader.read(ranges[1:])]
