"""A gateway that serves commands in the test's own thread, on real servers and with a clock set by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

from confluent_kafka import Producer

from gateway.kafka import LARGEST_RECORD, CommandConsumer, LogReader, Record
from grouping.settings.settings import Settings
from schemas.codec import Reply, decode_reply
from tests.kafka_client import DEADLINE
from tests.stack.digests.desk import NOW
from tests.timer_desk import Desk

__all__ = ["Counter"]

_BATCH = 5_000


class Counter:
    """Takes commands to the gateway, has them carried out, and reads their answers."""

    def __init__(self, settings: Settings, token: Callable[[str, str, str], bytes] | None = None) -> None:
        """Begin; `token` makes the token of each command from its subscriber, id and text."""
        self._token = token
        self.desk = Desk(settings, NOW)
        self._settings = settings
        self._topic = settings.topics.commands
        servers = settings.kafka.bootstrap
        self._producer = Producer(
            {"bootstrap.servers": servers, "partitioner": "murmur2_random", "message.max.bytes": LARGEST_RECORD}
        )
        self._consumer = CommandConsumer(settings, self._topic, 4)
        self._consumer.rewind()
        self._count = 0

    def serve(self, commands: Sequence[tuple[str, str, str]]) -> float:
        """Have commands (id, subscriber, text) carried out, some thousands at a time; return how long that took."""
        return self.serve_behind((), commands)

    def serve_behind(
        self,
        others: Sequence[tuple[bytes | None, bytes | None, dict[str, bytes]]],
        commands: Sequence[tuple[str, str, str]],
    ) -> float:
        """Serve records (key, value, headers), and after them commands."""
        records = list(others)
        for command_id, subscriber, text in commands:
            fields = {"command_id": command_id, "subscriber": subscriber, "text": text}
            headers = {} if self._token is None else {"cq_token": self._token(subscriber, command_id, text)}
            records.append((subscriber.encode(), json.dumps(fields).encode(), headers))
        return self._serve_records(records)

    def serve_records(self, records: Sequence[tuple[bytes | None, bytes | None]]) -> float:
        """Have records (key, value) carried out, some thousands at a time; return how long that took."""
        return self._serve_records([(key, value, {}) for key, value in records])

    def _serve_records(self, records: Sequence[tuple[bytes | None, bytes | None, dict[str, bytes]]]) -> float:
        for key, value, headers in records:
            self._producer.produce(self._topic, value, key, headers=headers or None)
        self._producer.flush()
        left, took = len(records), 0.0
        while left:
            messages: list[Record] = []
            while len(messages) < min(left, _BATCH):  # a slow broker may split records that were written together
                messages += self._consumer.read(_BATCH - len(messages), 10)
            began = time.monotonic()
            self.desk.carry_out(messages)
            took += time.monotonic() - began
            left -= len(messages)
        return took

    def in_turns(self, *commands: tuple[str, str]) -> tuple[int, list[Reply]]:
        """Have statements (subscriber, text) carried out in units that wait for nothing, 100 ms apart.

        Returns:
            How many the first unit carried out, and the reply to each.
        """
        names = [f"t{self._count + number}" for number in range(len(commands))]
        self._count += len(commands)
        for name, (subscriber, text) in zip(names, commands, strict=True):
            fields = {"command_id": name, "subscriber": subscriber, "text": text}
            self._producer.produce(self._topic, json.dumps(fields), subscriber.encode())
        self._producer.flush()
        messages: list[Record] = []
        while len(messages) < len(commands):
            messages += self._consumer.read(_BATCH, 10)
        first = done = self.desk.take_turns(messages)
        deadline = time.monotonic() + DEADLINE
        while done < len(commands):
            assert time.monotonic() < deadline, f"{done} of {len(commands)} commands were carried out"
            self.desk.now_ms += 100
            done += self.desk.take_turns(())
        replies = self.replies()
        return first, [replies[name][0] for name in names]

    def replies(self) -> dict[str, list[Reply]]:
        """Return all replies so far by command id."""
        reader = LogReader(self._settings)
        found: dict[str, list[Reply]] = {}
        for message in reader.since(self._settings.topics.replies, dict.fromkeys(range(4), 0)):
            value = message.value
            assert isinstance(value, bytes)
            reply = decode_reply(value)
            found.setdefault(reply.command_id or "", []).append(reply)
        reader.close()
        return found

    def answers(self, *texts: str, subscriber: str = "alice") -> list[Reply]:
        """Have statements carried out in one batch, and return the reply to each."""
        names = [f"a{self._count + number}" for number in range(len(texts))]
        self._count += len(texts)
        self.serve([(name, subscriber, text) for name, text in zip(names, texts, strict=True)])
        replies = self.replies()
        return [replies[name][0] for name in names]
