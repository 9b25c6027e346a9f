"""Commands that come again by the thousand: each gets its first reply, and others don't wait (contract §2)."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Sequence

import pytest
from confluent_kafka import Producer

from gateway.kafka import CommandConsumer, LogReader
from schemas.codec import Reply, decode_reply
from tests.benchmarks.ground import Ground
from tests.benchmarks.timer_desk import Desk
from tests.stack.desk import NOW

_MANY = 5_000


class Counter:
    """Sends commands to a gateway that carries them out in the same thread, and reads their replies."""

    def __init__(self, ground: Ground) -> None:
        self.desk = Desk(ground.settings, NOW)
        self._settings = ground.settings
        self._topic = ground.settings.topic("commands")
        servers = ground.settings.kafka.bootstrap
        self._producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
        self._consumer = CommandConsumer(ground.settings, self._topic, 4)
        self._consumer.rewind()

    def serve(self, commands: Sequence[tuple[str, str]], text: str = "SHOW CQS LIMIT 1") -> float:
        """Have commands (id, subscriber) carried out, a batch at a time, and return how long that took."""
        for command_id, subscriber in commands:
            fields = {"command_id": command_id, "subscriber": subscriber, "text": text}
            self._producer.produce(self._topic, json.dumps(fields), subscriber)
        self._producer.flush()
        left, took = len(commands), 0.0
        while left:
            messages = self._consumer.read(_MANY, 10)
            began = time.monotonic()
            self.desk.carry_out(messages)
            took += time.monotonic() - began
            left -= len(messages)
        return took

    def replies(self) -> dict[str, list[Reply]]:
        """Return all replies so far by command id."""
        reader = LogReader(self._settings)
        found: dict[str, list[Reply]] = {}
        for message in reader.since(self._settings.topic("replies"), dict.fromkeys(range(4), 0)):
            reply = decode_reply(message.value() or b"")
            found.setdefault(reply.command_id or "", []).append(reply)
        reader.close()
        return found


def _commands(numbers: Iterable[int]) -> list[tuple[str, str]]:
    return [(f"c{number}", f"s{number % 3}") for number in numbers]


@pytest.mark.timeout(60)
def test_thousands_of_repeats_are_answered_at_once(ground: Ground) -> None:
    """5,000 commands again, in any order, and a new one of another: all are answered within two seconds."""
    counter = Counter(ground)
    counter.serve(_commands(range(_MANY)))
    first = counter.replies()
    counter.desk.now_ms += 60_000
    again = _commands(range(_MANY))
    random.Random(7).shuffle(again)
    took = counter.serve([*again[:2500], ("new", "bob"), *again[2500:]])
    replies = counter.replies()
    assert ["ok"] == [reply.code for reply in replies.pop("new")]
    assert {name: [*some, *some] for name, some in first.items()} == replies
    assert took < 2


@pytest.mark.timeout(60)
def test_repeats_far_apart(ground: Ground) -> None:
    """A few repeats from here and there in a long log are found without reading all of it."""
    counter = Counter(ground)
    counter.serve(_commands(range(12_000)))
    took = counter.serve(_commands(range(0, 12_000, 2_999)))
    repeated = [replies for replies in counter.replies().values() if len(replies) > 1]
    assert 5 == len(repeated)
    assert all(first == second for first, second in repeated)
    assert took < 1


def test_repeats_that_take_too_long_are_asked_for_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not looked up in time is `unavailable`, and not carried out twice; the same id then has its reply."""
    counter = Counter(ground)
    counter.serve(_commands(range(3)), "CREATE CQ a AS SELECT k FROM t WHERE k = 1")
    with monkeypatch.context() as patch:
        patch.setattr("gateway.repeats._SECONDS", 0.0)
        counter.serve(_commands(range(3)))
    counter.serve(_commands(range(3)))
    for replies in counter.replies().values():
        assert ["ok", "unavailable", "ok"] == [reply.code for reply in replies]
        assert replies[0] == replies[2]
