"""A hostile client of a running gateway: each of its records is answered, and its neighbour does not notice."""

from __future__ import annotations

import json
import random
import statistics
import time
import uuid

from tests.fuzz.corpus import COLUMNS, RECORDS
from tests.fuzz.mutations import broken_bytes
from tests.fuzz.surfaces import assert_safe, hostile_statement
from tests.kafka_client import RawClient, Reply
from tests.kafka_tail import dead_letters
from tests.stack.lab import Lab, Source

__all__ = ["Neighbour", "hostile_commands", "hostile_records"]


def hostile_commands(
    lab: Lab, source: Source, rng: random.Random, count: int, neighbour: Neighbour | None = None
) -> int:
    """Send broken commands at once, as a new subscriber, and return how many were accepted.

    Each record has exactly one reply, a safe reply.

    Args:
        lab: Where; the CQs that come to be are dropped.
        source: The stream that statements are about.
        rng: The source of randomness.
        count: How many.
        neighbour: Asks one thing after another as the records arrive.
    """
    name = f"hostile-{uuid.uuid4().hex[:8]}"
    values = [_record(rng, name, source) for _ in range(count)]
    lab.client.publish_all("cq.commands", ((value, name, None, 0) for value in values))
    if neighbour is not None:
        neighbour.ask()
    replies = lab.client.await_replies(count, lambda reply: reply.key == name)
    assert count == len(replies)
    for reply in replies:
        fields = reply.fields
        assert_safe([fields["message"], fields["detail"], fields["hint"]], b"".join(values).decode("latin-1"))
    _drop_all(lab.client, name)
    return sum(reply.code == "ok" for reply in replies)


def _record(rng: random.Random, subscriber: str, source: Source) -> bytes:
    text = hostile_statement(rng).replace("quotes", source.name)
    if "STREAM" in text.upper():
        text = f"DESCRIBE STREAM {source.name}"  # a broken CREATE STREAM might make topics that nobody removes
    value = json.dumps({"command_id": uuid.uuid4().hex, "subscriber": subscriber, "text": text}).encode()
    return broken_bytes(rng, value) if rng.random() < 0.2 else value


def _drop_all(client: RawClient, subscriber: str) -> None:
    names = [item["cq"] for item in client.result("SHOW CQS LIMIT 1000", subscriber)["cqs"]]
    sent = [client.send('DROP CQ "' + name.replace('"', '""') + '"', subscriber) for name in names]
    for command_id in sent:
        reply: Reply = client.reply(command_id)
        assert reply.code == "ok", reply.fields


def hostile_records(lab: Lab, rng: random.Random, count: int) -> int:
    """Publish broken source records and return how many are dead letters; each is a match or exactly one of these."""
    source = lab.stream(", ".join(f"{name} {kind}" for name, kind in COLUMNS))
    letters = lab.dead_letter_tail()
    watching = lab.create(f"all of {source.name}", f"SELECT _offset FROM {source.name}", clauses="DO PUBLISH SHARED")
    positions = source.publish_values(*(broken_bytes(rng, rng.choice(RECORDS)) for _ in range(count)))
    matched = [one.source[2] for one in lab.matches(watching, source)]
    found = [letter for letter in dead_letters(letters) if letter.source.startswith(f"{source.topic}/")]
    assert_safe(letter.detail for letter in found)
    lettered = [int(letter.source.rsplit("/", 1)[1]) for letter in found]
    assert [at.offset for at in positions] == sorted([*matched, *lettered])
    return len(lettered)


class Neighbour:
    """An ordinary subscriber, who asks one thing after another and notes how long each answer took."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        self._name = f"neighbour-{uuid.uuid4().hex[:8]}"
        self.seconds: list[float] = []
        """From each command to its reply."""

    def ask(self, times: int = 200) -> None:
        """Ask so often."""
        for _ in range(times):
            began = time.monotonic()
            self._client.result("SHOW CQS LIMIT 1", self._name)
            self.seconds.append(time.monotonic() - began)

    def p99(self) -> float:
        """Return the seconds within which 99 of 100 answers came."""
        return statistics.quantiles(self.seconds, n=100)[98]
