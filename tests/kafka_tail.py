# ruff: noqa: SLF001  # librdkafka's own codes begin with an underscore; they are public
"""Reading topics to where they end now, and results as docs/results.md lets a reader take them."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from gateway.sdk.doubts import Doubts

__all__ = ["BROKER_AWAY", "DeadLetter", "Result", "Results", "Tail", "dead_letters"]

_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
"""A dedicated topic goes some time after its cq.end: there is nothing more to read then."""
_PASSING = (
    KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE, KafkaError.NETWORK_EXCEPTION, KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.OFFSET_NOT_AVAILABLE, KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT,
)  # fmt: skip
"""Errors of a topic just made, and of a broker that starts. `KafkaError.retriable` is false for all of them."""
BROKER_AWAY = 280.0
"""Seconds that a broker needs at most to start anew: after a kill it reads thousands of partitions."""
_STUCK_SECONDS = 10.0
"""Time without messages after which a partition is checked: librdkafka does not report a deleted topic."""
Place = tuple[str, int]
"""A topic and its partition."""


class Tail:
    """Partitions read from an offset onwards, committed records only."""

    def __init__(self, bootstrap: str, wait_ms: int = 100) -> None:
        """Read nothing until partitions are added.

        Args:
            bootstrap: Kafka's address.
            wait_ms: How long the broker holds back a request that finds no record. A record is reported at once, and
                a partition that is added meanwhile waits so long. Each request takes CPU time of the broker, and tests
                have several idle tails.
        """
        self._options = {
            "bootstrap.servers": bootstrap,
            "group.id": "reads-without-a-group",
            "enable.auto.commit": False,
            # Retention, or a topic's new creation, may have taken the offset away: no record that is left is skipped.
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": wait_ms,
            "topic.metadata.refresh.interval.ms": 5000,
        }
        self._consumer = Consumer(self._options)
        # A broker answers the requests of a connection in turn: a question would wait behind the reader's own request.
        self._asking = Consumer(self._options)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._doubts = Doubts()
        self.next: dict[Place, int] = {}
        """The offset that each partition is read up to."""
        self._gone: set[str] = set()
        """Topics that were looked for lately, and not found."""

    def add_topic(self, topic: str) -> None:
        """Read all partitions of a topic from their present ends."""
        numbers = self._asking.list_topics(topic, timeout=30).topics[topic].partitions
        for place, end in self._ends([(topic, number) for number in numbers]).items():
            self.add(*place, end)

    def add(self, topic: str, partition: int, offset: int) -> None:
        """Read a partition from an offset, earlier than before if need be."""
        place = (topic, partition)
        self._gone.discard(topic)
        if place in self.next:
            self.remove(topic, partition)
        self.next[place] = offset
        self._consumer.incremental_assign([TopicPartition(topic, partition, offset)])

    def remove(self, topic: str, partition: int) -> None:
        """Stop reading a partition."""
        if self.next.pop((topic, partition), None) is not None:
            self._consumer.incremental_unassign([TopicPartition(topic, partition)])

    def poll(self, seconds: float) -> list[Any]:
        """Return the messages that arrive within a time, as soon as there is any."""
        messages = []
        # `consume` alone would wait for a thousand messages.
        first = self._consumer.poll(seconds or 0.001)
        for message in [] if first is None else [first, *self._consumer.consume(999, 0.0)]:
            place = (message.topic(), message.partition())
            if place not in self.next:
                continue
            error = message.error()
            if error is None:
                messages.append(message)
                self.next[place] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self.next[place] = max(self.next[place], message.offset())
            elif error.code() in _GONE:
                self._doubts.note(place, time.monotonic())
            else:
                assert error.code() in _PASSING, error
        for place in self._doubts.due(time.monotonic()):
            self._ask_again(place)
        return messages

    def _ask_again(self, place: Place) -> None:
        """Read on where a topic exists after all, unknown to a broker that had just started."""
        if place not in self.next:
            return
        try:
            there = place[0] in self._asking.list_topics(timeout=10).topics
        except KafkaException:
            self._doubts.note(place, time.monotonic())
            return
        if there:
            self.add(*place, self.next[place])
        else:
            self.remove(*place)

    def drain(self, timeout: float = 180.0) -> list[Any]:
        """Return everything up to where the partitions end at this moment."""
        deadline = time.monotonic() + timeout
        ends = self._ends(tuple(self.next))
        messages: list[Any] = []
        stuck_at = time.monotonic() + _STUCK_SECONDS
        while behind := {place: end for place, end in ends.items() if self.next.get(place, end) < end}:
            assert time.monotonic() < deadline, f"could not read up to {behind}, only to {self.next}"
            found = self.poll(0.05)
            messages += found
            if found:
                stuck_at = time.monotonic() + _STUCK_SECONDS
            elif time.monotonic() > stuck_at:
                self._renew()
                for place in behind:
                    self._ask_again(place)
                stuck_at = time.monotonic() + _STUCK_SECONDS
        return messages

    def _renew(self) -> None:
        """Read on with a new consumer: librdkafka never reads a topic again if its epoch fell at its new creation.

        The old consumer goes when its polling thread has returned.
        """
        consumer = Consumer(self._options)
        consumer.assign([TopicPartition(*place, offset) for place, offset in tuple(self.next.items())])
        self._consumer = consumer

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic, different from a deleted topic of the same name."""
        began = time.monotonic()
        while True:
            try:
                described = self._admin.describe_topics(TopicCollection([topic]))[topic].result(30)
                return str(described.topic_id)
            except KafkaException as exc:  # a starting broker does not know the topic for a moment, or is away
                if time.monotonic() > began + (30 if exc.args[0].code() in _GONE else BROKER_AWAY):
                    raise
                time.sleep(0.1)

    def close(self) -> None:
        """Give the connections back."""
        self._consumer.close()
        self._asking.close()

    def _is_gone(self, topic: str) -> bool:
        """Tell whether a topic was deleted; a starting broker does not know a topic for a moment.

        All topics are looked for together: after a fault many may be gone, and each is watched for some seconds.
        """
        missing = {topic, *(topic for topic, _ in self.next)}
        deadline = time.monotonic() + 3
        while topic not in self._gone and time.monotonic() < deadline:
            with suppress(KafkaException):
                missing -= self._asking.list_topics(timeout=10).topics.keys()
                if topic not in missing:
                    return False
            time.sleep(0.2)
        self._gone |= missing
        return True

    def _ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """Return where partitions end now; a partition without an answer is asked for by itself."""
        asked: list[TopicPartition] = []
        if places:
            with suppress(KafkaException):
                asked = self._asking.offsets_for_times([TopicPartition(*place, OFFSET_END) for place in places], 30)
        known = {(each.topic, each.partition): each.offset for each in asked if each.error is None and each.offset >= 0}
        return {place: known[place] if place in known else self._end(*place) for place in places}

    def _end(self, topic: str, partition: int) -> int:
        deadline = time.monotonic() + BROKER_AWAY
        while True:
            try:
                place = TopicPartition(topic, partition)
                return self._asking.get_watermark_offsets(place, 30, cached=False)[1]  # type: ignore[index]
            except KafkaException as exc:  # a topic just made has no leader yet
                if exc.args[0].code() in _GONE and self._is_gone(topic):
                    self.remove(topic, partition)
                    return 0
                if exc.args[0].code() not in (*_PASSING, *_GONE) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


@dataclass(frozen=True)
class Result:
    """A record of a result topic."""

    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    headers: dict[str, str]

    @property
    def kind(self) -> str:
        """`cq.match`, `cq.digest`, `cq.end` or `cq.leave`."""
        return self.headers["ce_type"]

    @property
    def source(self) -> tuple[str, int, int]:
        """Stream, partition and offset of the event that made this match, out of its id."""
        stream, partition, offset, *_ = self.headers["ce_id"].split("/")
        return stream, int(partition), int(offset)

    @cached_property
    def row(self) -> dict[str, Any]:
        """The value as an object, decoded once: tests that wait look at all results again and again."""
        return json.loads(self.value)


class Results:
    """Destinations, each read from its reply's offset; repeats are dropped by (key, ce_id), as docs/results.md says.

    Reading checks properties of every result: an id never comes with two contents, and first writings of a source
    partition are in source order.
    """

    def __init__(self, bootstrap: str) -> None:
        self._tail = Tail(bootstrap)
        self._from: dict[str, tuple[Place, int, str]] = {}
        """By destination: where it begins, and the topic's id where the topic is its own."""
        self._seen: dict[tuple[str, str], bytes] = {}
        self._highest: dict[tuple[str, str, int], int] = {}
        self._placed: defaultdict[Place, set[int]] = defaultdict(set)
        """Offsets of the records that were taken."""
        self.first: dict[str, list[Result]] = {}
        """Per destination id, each result once, in order."""
        self.repeats = 0
        """Records dropped because their id had been there."""

    def follow(self, destination: dict[str, Any]) -> None:
        """Begin to read a destination, at its `offset`."""
        place = (destination["topic"], destination["partition"])
        key, offset = destination["key"], destination["offset"]
        known = self._from.get(key)
        topic_id = self._tail.topic_id(place[0]) if place[0].endswith(key) else ""
        if known is not None and known[2] != topic_id:
            self._tail.remove(*place)
            self._placed.pop(place, None)
        if known is not None and known[0] == place and known[1] <= offset and place in self._tail.next:
            return
        if known is not None:  # replies of other partitions may come first: earlier records are read after later ones
            for line in [line for line in tuple(self._highest) if line[0] == key]:  # another thread may be reading
                self._highest.pop(line, None)
        self._from[key] = (place, offset, topic_id)
        self.first.setdefault(key, [])
        if offset < self._tail.next.get(place, offset + 1):
            self._tail.add(*place, offset)

    def drain(self) -> None:
        """Read all destinations up to where they end at this moment."""
        self._take(self._tail.drain())

    def poll(self) -> None:
        """Take the records that have come already."""
        self._take(self._tail.poll(0.0))

    def of(self, destination: dict[str, Any]) -> list[Result]:
        """Return a destination's results so far."""
        return self.first[destination["key"]]

    def until(self, condition: Callable[[], object], what: str, timeout: float = 180.0) -> None:
        """Read until the condition holds."""
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, f"after {timeout:.0f} s still no {what}"
            self._take(self._tail.poll(0.05))

    def close(self) -> None:
        """Give the connection back."""
        self._tail.close()

    def _take(self, messages: list[Any]) -> None:
        for message in messages:
            place, offset = (message.topic(), message.partition()), message.offset()
            key = message.key().decode()
            if offset in self._placed[place] or key not in self._from or offset < self._from[key][1]:
                continue
            self._placed[place].add(offset)
            headers = {name: value.decode() for name, value in message.headers() or []}
            self._add(Result(*place, offset, key, message.value(), headers))

    def _add(self, result: Result) -> None:
        identity = (result.key, result.headers["ce_id"])
        if identity in self._seen:
            assert self._seen[identity] == result.value, f"{identity} has two contents"
            self.repeats += 1
            return
        self._seen[identity] = result.value
        if result.kind == "cq.match":
            stream, partition, offset = result.source
            line = (result.key, stream, partition)
            several = result.headers["ce_id"].count("/") > 2  # rows of one event, told apart by a number
            at = f"{identity}, read from {self._from[result.key]}, at {result.topic}/{result.partition}/{result.offset}"
            assert self._highest.get(line, -1) < offset + several, f"{at} comes after {self._highest[line]}"
            self._highest[line] = offset
        self.first[result.key].append(result)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of cq.deadletters."""

    key: bytes | None
    value: bytes | None
    code: str
    detail: str
    source: str


def dead_letters(tail: Tail) -> list[DeadLetter]:
    """Return the dead letters that there are up to now."""
    letters = []
    for message in tail.drain():
        headers = {name: value.decode() for name, value in message.headers() or []}
        letters.append(
            DeadLetter(message.key(), message.value(), headers["code"], headers["detail"], headers["source"])
        )
    return letters
