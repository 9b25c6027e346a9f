"""Streams beside the chaos stream: most idle, one at full rate, one that loses its topic, one with deadly records."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, Producer

from gateway.sdk import Match, connect
from tests.chaos.loop import Loop
from tests.chaos.probes import Probes
from tests.kafka_client import wait_until
from tests.stack.lab import Lab, Source

__all__ = ["ManyStreams"]

_COLUMNS = "n BIGINT, deadly STRING"
_BURST = 1000
"""Events that the full stream gets at once."""
_MOST_AHEAD = 30 * _BURST
"""Events of the full stream without a result, at which its producer waits."""
_STEP_SECONDS = 0.1
_PROBE_EVERY = 1.0
_PROBED_SECONDS = 6.0
"""For how long after a fault each probed stream gets an event a second."""
_SLEEPERS_PROBED = 2
"""How many of the streams that sleep are woken by a fault: each sleeps for minutes."""
_QUIET_SECONDS = 45.0
"""Results that are missing after this time without any new result are lost."""
_QUIET_MOST = 300.0


@dataclass(slots=True, eq=False)
class Member:
    """A stream, whose CQ has each event with a number divisible by `every`."""

    source: Source
    every: int = 1
    published: int = 0
    got: Counter[int] = field(default_factory=Counter)
    """By the number of an event: how often its result was handed over."""
    odd: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By the number of an event that its topic was deleted around: how often its result may come, least and most."""
    settled: int = 0
    """Number of events of which all results were there at the last quiet moment."""
    generation: int = 1
    noticed: bool = True
    """Whether the gateway has noticed the newest topic."""

    @property
    def name(self) -> str:
        """The name of the stream, and of its CQ."""
        return self.source.name

    def missing(self) -> list[int]:
        """Return the numbers whose results have not come."""
        due = range(-(-self.settled // self.every) * self.every, self.published, self.every)
        return [n for n in due if self.got[n] < self.odd.get(n, (1, 1))[0]]

    def wrong(self) -> list[int]:
        """Return the numbers whose results have come too often."""
        return [n for n, count in dict(self.got).items() if n % self.every or count > self.odd.get(n, (1, 1))[1]]


class ManyStreams:
    """The streams, a CQ for each of them, and the SDK's reader of these CQs."""

    def __init__(self, bootstrap: str, count: int, rng: random.Random) -> None:
        """Create the streams, four at least, and begin to read."""
        self._rng = rng
        self._lab = lab = Lab(bootstrap)
        self._full, self._topicless, self._deadly, *idle = self._members = [
            Member(lab.stream(_COLUMNS, partitions=1 if number else 2), every=1 if number else _BURST // 10)
            for number in range(count)
        ]
        self._lively, self._sleepers = idle[::2], idle[1::2]
        self._by_name = {member.name: member for member in self._members}
        self._by_topic = {member.source.topic: member for member in self._members}
        for member in self._members:
            lab.create(
                member.name,
                f"SELECT n FROM {member.name} WHERE n % {member.every} = 0",
                clauses="DO PUBLISH SHARED",
                follow=False,
            )
        self._client = connect(bootstrap, lab.subscriber(), timeout=120.0)
        self._subscription = self._client.subscribe(*self._by_name)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2, "compression.type": "lz4"}
        )
        self._lock = threading.Lock()
        """Held while events get their numbers and are published."""
        self._undelivered: list[str] = []
        self._probes = Probes()
        self._probed: Sequence[Member] = ()
        self._probe_at = self._probe_until = 0.0
        self._guilty = 0
        self._reader = Loop("results of many streams", self._read, 0.01)
        self._reader.__enter__()

    @contextmanager
    def flowing(self) -> Iterator[Sequence[Loop]]:
        """Publish events within the block; yield the threads to be checked."""
        with Loop("events of many streams", self._publish_some, _STEP_SECONDS) as events:
            yield (events, self._reader)

    def probe(self, culprit: Member | None = None) -> None:
        """Begin to measure how late the results of all but one stream are, some of the sleeping ones excepted."""
        woken = self._rng.sample(self._sleepers, min(_SLEEPERS_PROBED, len(self._sleepers)))
        # A stream that an earlier fault still holds up is no other stream.
        sound = [each for each in (self._topicless, self._deadly) if each.noticed and not each.missing()]
        with self._lock:
            self._probes.begin()
            self._probes.sent(self._full.name, self._full.published)  # the first event of the next burst
            self._probed = [each for each in (self._full, *sound, *self._lively, *woken) if each is not culprit]
            self._probe_at = time.monotonic()
            self._probe_until = self._probe_at + _PROBED_SECONDS

    def await_served(self, most: float) -> dict[str, float]:
        """Return by stream how late results were since `probe`, as soon as all are here or `most` seconds are over."""
        deadline = time.monotonic() + most
        while (time.monotonic() < self._probe_until or self._probes.is_waiting) and time.monotonic() < deadline:
            self._reader.check()
            time.sleep(0.05)
        return {self._title(name): seconds for name, seconds in self._probes.waits().items()}

    def remake_topic(self, rng: random.Random) -> None:
        """Delete the topic of a stream amid its events, and make it again after some seconds."""
        member = self._topicless
        self._await_notice()
        self.probe(member)
        with self._lock:
            self._publish(member, 5)
            self._producer.flush(60)
            member.noticed = False
            unread = [n for n in range(member.settled, member.published) if not member.got[n]]
            member.odd |= dict.fromkeys(unread, (0, 1))
        self._await_topic(there=False)
        time.sleep(rng.choice((0.2, 1.0, 5.0)))
        self._await_topic(there=True)
        with self._lock:
            self._publish_unnoticed()

    def kill_worker(self) -> None:
        """Publish a record at which a new CQ kills its worker."""
        self.probe(self._deadly)
        if self._guilty:
            self._lab.drop("guilty", self._lab.subscriber(f"mallory{self._guilty}"))
        self._guilty += 1
        subscriber = self._lab.subscriber(f"mallory{self._guilty}")
        text = ", ".join(["deadly"] * self._guilty)  # a group that no earlier death has quarantined
        select = f"SELECT n FROM {self._deadly.name} WHERE n >= 0 AND concat({text}) LIKE '%x%'"
        self._lab.create("guilty", select, subscriber, clauses="DO PUBLISH SHARED", follow=False)
        with self._lock:
            self._publish(self._deadly, 3, deadly=True)

    def settle(self) -> str:
        """Return when each stream has all its results, with their count in words.

        Raises:
            AssertionError: A result is lost or came twice, or an event could not be published.
        """
        self._await_notice()
        with self._lock:
            assert self._producer.flush(120) == 0, "Kafka did not take all events of the many streams"
        assert not self._undelivered, self._undelivered[:5]
        began = since = time.monotonic()
        seen = -1
        while (missing := self._missing()) and time.monotonic() < min(since + _QUIET_SECONDS, began + _QUIET_MOST):
            self._reader.check()
            time.sleep(0.2)
            if seen != (seen := sum(member.got.total() for member in self._members)):
                since = time.monotonic()
        assert not missing, f"lost: {missing}"
        wrong = {self._title(each.name): found[:5] for each in self._members if (found := each.wrong())}
        assert not wrong, f"doubled: {wrong}"
        for member in self._members:
            member.settled = member.published
        events = sum(member.published for member in self._members)
        return (
            f"{len(self._members)} streams, {events} events, {sum(each.got.total() for each in self._members)} results"
        )

    def close(self) -> None:
        """Drop the CQs and the streams."""
        self._reader.__exit__(None, None, None)
        self._subscription.close()
        self._client.close()
        self._lab.close()

    def _publish_some(self) -> None:
        """Publish what is due now: a burst, an event here and there, probes."""
        now = time.monotonic()
        with self._lock:
            probes = self._probed if self._probe_at <= now < self._probe_until else ()
            if probes:
                self._probe_at = now + _PROBE_EVERY
            full = self._full
            if full.published - full.every * len(full.got) < _MOST_AHEAD:
                self._publish(full, _BURST)
            if self._rng.random() < 0.3:
                self._publish(self._rng.choice((*self._lively, self._deadly)))
            for member in probes:
                if member is not full:
                    self._probes.sent(member.name, member.published)
                    self._publish(member)
        self._producer.poll(0)

    def _publish(self, member: Member, count: int = 1, *, deadly: bool = False) -> None:
        first, member.published = member.published, member.published + count
        for n in range(first, member.published):
            value = json.dumps({"n": n, "deadly": "x"} if deadly else {"n": n}).encode()
            self._producer.produce(
                member.source.topic, value, partition=n % member.source.partitions, on_delivery=self._delivered
            )

    def _publish_unnoticed(self) -> None:
        """Publish to a topic that is new: its first events may be seen at old offsets too, under other ids."""
        first = self._topicless.published
        self._publish(self._topicless, 3)
        self._topicless.odd |= dict.fromkeys(range(first, self._topicless.published), (1, 2))

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            return
        member, n = self._by_topic[message.topic()], json.loads(message.value())["n"]
        self._undelivered.append(f"event {n} of {self._title(member.name)}: {error}")

    def _read(self) -> None:
        self._subscription.fetch(0.02)
        while (result := self._subscription.take()) is not None:
            assert isinstance(result, Match), result
            n = result.row["n"]
            self._by_name[result.cq].got[n] += 1
            self._probes.seen(result.cq, n)

    def _missing(self) -> dict[str, list[int]]:
        return {self._title(each.name): found[:5] for each in self._members if (found := each.missing())}

    def _await_topic(self, *, there: bool) -> None:
        """Make or delete the topic of the stream that loses it, until Kafka says that this is done."""
        client, topic = self._lab.client, self._topicless.source.topic

        def done() -> bool:
            time.sleep(0.1)
            with suppress(KafkaException):  # a deletion may be under way, or Kafka away
                if (topic in client.topics()) == there:
                    return True
                if there:
                    client.make_topic(topic)
                else:
                    client.admin.delete_topics([topic])[topic].result(10)
            return False

        wait_until(done, f"topic {topic} {'made' if there else 'deleted'}")

    def _await_notice(self) -> None:
        """Return when the gateway knows the newest topic of the stream that loses it."""
        member = self._topicless
        if member.noticed:
            return
        member.generation += 1
        describe = f"DESCRIBE STREAM {member.name}"
        wait_until(
            lambda: time.sleep(0.1) or self._lab.client.result(describe)["generation"] == member.generation,
            f"generation {member.generation} of {member.name}",
        )
        member.noticed = True

    def _title(self, name: str) -> str:
        kinds = {self._full.name: "full", self._topicless.name: "topicless", self._deadly.name: "deadly"}
        sleepers = {member.name for member in self._sleepers}
        return f"{kinds.get(name, 'sleeper' if name in sleepers else 'lively')} {name}"
