"""A client written from docs/commands.md and docs/results.md alone: commands, replies and events.

Every wait is for a condition and ends with a clear failure; one thread uses a client at a time.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from tests.codec import decode_single_object, encode_single_object, wire_schema
from tests.kafka_tail import BROKER_AWAY, Tail

__all__ = ["DEADLINE", "RawClient", "Reply", "wait_until"]

DEADLINE = 120.0
"""Seconds after which a wait has failed: far above any healthy time, enough to restart roles."""
_ANSWER_SECONDS = 5.0
"""How long a broker is given to answer, before it is asked again."""


def wait_until(condition: Callable[[], object], what: str, timeout: float = DEADLINE) -> None:
    """Return when the condition, which must itself wait a little, holds.

    Raises:
        AssertionError: The condition did not hold in time; the message names it.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"after {timeout:.0f} s still no {what}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A record of cq.replies."""

    key: str | None
    header: str | None
    """The header `command_id`."""
    encoding: str
    fields: dict[str, Any]

    @property
    def command_id(self) -> str | None:
        """The command that the reply answers, null when its id could not be decoded."""
        return self.fields["command_id"]

    @property
    def code(self) -> str:
        """``ok``, or one of the codes of docs/commands.md."""
        return self.fields["code"]

    @property
    def result(self) -> Any:
        """The result as an object, whatever the encoding."""
        result = self.fields["result"]
        return json.loads(result) if self.encoding == "avro" and result is not None else result


class RawClient:
    """Sends commands and events, and collects every reply that there is."""

    def __init__(self, bootstrap: str, prefix: str = "cq.") -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.sent: list[str] = []
        """The command ids in the order of sending."""
        self.replies: list[Reply] = []
        """Every reply since the client was made, of whatever subscriber."""
        self._by_id: dict[str, list[Reply]] = {}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "message.max.bytes": 1_048_000,
                "linger.ms": 1,
            }
        )
        self._tail = Tail(bootstrap, wait_ms=500)
        self._tail.add_topic(prefix + "replies")

    def close(self) -> None:
        """Give the connections back."""
        self._producer.flush(10)
        self._tail.close()

    def send(
        self,
        text: str,
        subscriber: str = "alice",
        *,
        command_id: str | None = None,
        encoding: str = "json",
        key: str | None = None,
    ) -> str:
        """Send a statement and return its command id; the answer is waited for elsewhere."""
        chosen = command_id or uuid.uuid4().hex
        fields = {"command_id": chosen, "subscriber": subscriber, "text": text}
        value = (
            json.dumps(fields).encode() if encoding == "json" else encode_single_object(wire_schema("command"), fields)
        )
        self.send_record(subscriber if key is None else key, value)
        self.sent.append(chosen)
        return chosen

    def send_record(self, key: str | bytes | None, value: bytes | None) -> TopicPartition:
        """Send any record whatever to cq.commands and return where it is."""
        return self.publish(self.prefix + "commands", value, key=key, partition=None)

    def execute(self, text: str, subscriber: str = "alice", **options: Any) -> Reply:
        """Send a statement and return its reply."""
        return self.reply(self.send(text, subscriber, **options))

    def result(self, text: str, subscriber: str = "alice", **options: Any) -> Any:
        """Send a statement that must be accepted and return its result."""
        reply = self.execute(text, subscriber, **options)
        assert reply.code == "ok", f"{text[:300]} was answered {reply.fields}"
        return reply.result

    def poll(self, seconds: float = 0.0) -> list[Reply]:
        """Collect the replies that are there and return the new ones."""
        new = []
        for message in self._tail.poll(seconds):
            reply = _reply(message)
            new.append(reply)
            if reply.command_id is not None:
                self._by_id.setdefault(reply.command_id, []).append(reply)
        self.replies += new
        return new

    def reply(self, command_id: str, timeout: float = DEADLINE) -> Reply:
        """Return the first reply to a command, waiting for it."""
        wait_until(lambda: command_id in self._by_id or self._after_poll(command_id), f"reply to {command_id}", timeout)
        return self._by_id[command_id][0]

    def replies_to(self, command_id: str) -> list[Reply]:
        """Return all replies to a command so far."""
        return self._by_id.get(command_id, [])

    def await_replies(self, count: int, wanted: Callable[[Reply], bool], timeout: float = DEADLINE) -> list[Reply]:
        """Return the wanted replies once there are `count` of them."""
        found: list[Reply] = []

        def enough() -> bool:
            self.poll(0.05)
            found[:] = [reply for reply in self.replies if wanted(reply)]
            return len(found) >= count

        wait_until(enough, f"{count} such replies", timeout)
        return found

    def publish(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: str | bytes | None = None,
        partition: int | None = 0,
        at_ms: int = 0,
    ) -> TopicPartition:
        """Publish a record and return its place once the broker has it."""
        return self.publish_all(topic, [(value, key, partition, at_ms)])[0]

    def publish_all(
        self,
        topic: str,
        records: Iterable[tuple[bytes | None, str | bytes | None, int | None, int]],
        headers: list[tuple[str, bytes]] | None = None,
    ) -> list[TopicPartition]:
        """Publish (value, key, partition, epoch ms) records, all with the same headers, and return their places.

        Records are sent once a broker answers: the driver may lose a record that it sends to a broker which was killed
        a moment ago, and report it as written (librdkafka issue 4134). A broker that is killed while it takes records
        may not know their offsets afterwards. If no other client writes to the topic, the places are right
        nevertheless.
        """
        wait_until(lambda: self._is_answered(topic), "an answer of a broker", BROKER_AWAY)
        written: dict[int, Message] = {}
        errors: list[KafkaError] = []
        count = 0

        def delivered(number: int) -> Callable[[KafkaError | None, Message], None]:
            def note(error: KafkaError | None, message: Message) -> None:
                written[number] = message
                if error is not None:  # an exception here would be lost in the driver
                    errors.append(error)

            return note

        for value, key, partition, at_ms in records:
            extra = {} if partition is None else {"partition": partition}
            noted = delivered(count)
            self._producer.produce(topic, value, key, on_delivery=noted, timestamp=at_ms, headers=headers, **extra)  # type: ignore[arg-type]
            count += 1
        assert self._producer.flush(BROKER_AWAY) == 0, f"{topic} did not take all records"
        assert not errors, errors[0]
        return self._places([written[number] for number in range(count)])

    def _is_answered(self, topic: str) -> bool:
        try:
            self._producer.list_topics(topic, _ANSWER_SECONDS)
        except KafkaException:
            return False
        return True

    def _places(self, messages: list[Message]) -> list[TopicPartition]:
        """Return the places of records; unknown offsets are counted back from the ends of the partitions."""
        counts = Counter((str(each.topic()), each.partition() or 0) for each in messages)
        ends: dict[tuple[str, int], int] = {}
        if any(each.offset() is None for each in messages):
            asked = {TopicPartition(*place): OffsetSpec.latest() for place in counts}
            for place, future in self.admin.list_offsets(asked).items():
                ends[place.topic, place.partition] = future.result(DEADLINE).offset
        places = []
        for each in messages:
            place = str(each.topic()), each.partition() or 0
            offset = each.offset()
            places.append(TopicPartition(*place, ends[place] - counts[place] if offset is None else offset))
            counts[place] -= 1
        return places

    def make_topic(self, name: str, partitions: int = 1, **config: str) -> str:
        """Create a topic, with underscores for the points in names of its configuration, and return its name.

        The broker knows the topic then, a moment after its creation.
        """
        options = {option.replace("_", "."): value for option, value in config.items()}
        for created in self.admin.create_topics([NewTopic(name, partitions, 1, config=options)]).values():
            created.result(DEADLINE)
        wait_until(lambda: self.partitions(name, DEADLINE) == partitions, f"partitions of {name}")
        return name

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions, and return when events can be published to each."""
        for grown in self.admin.create_partitions([NewPartitions(name, partitions)]).values():
            grown.result(DEADLINE)
        wait_until(lambda: self.partitions(name, DEADLINE) == partitions, "partitions")

    def partitions(self, name: str, seconds: float) -> int:
        """Return how many partitions of a topic have a leader, so that events can be published to them."""
        partitions = self._producer.list_topics(name, seconds).topics[name].partitions
        return sum(part.leader >= 0 for part in partitions.values())

    def topics(self) -> set[str]:
        """Return the names of the topics that there are."""
        return set(self.admin.list_topics(timeout=DEADLINE).topics)

    def _after_poll(self, command_id: str) -> bool:
        self.poll(0.05)
        return command_id in self._by_id


def _reply(message: Any) -> Reply:
    headers = {name: value.decode() for name, value in message.headers() or []}
    value = message.value()
    encoding = "avro" if value[:2] == b"\xc3\x01" else "json"
    fields = json.loads(value) if encoding == "json" else decode_single_object(wire_schema("reply"), value)
    key = message.key()
    return Reply(None if key is None else key.decode(errors="replace"), headers.get("command_id"), encoding, fields)
