"""The load during faults: events are published, commands sent, and replies accounted for."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tests.chaos.companies import Companies
from tests.chaos.lives import Cq, new_cq
from tests.codec import json_event
from tests.kafka_client import Reply
from tests.oracle import Position
from tests.queries import Event, Stream
from tests.stack.lab import Lab, Source
from tests.strategies import event

__all__ = ["Commands", "Events"]

_MOST_LIVE = 40
"""CQs live at the same time: few enough for a busy machine with two cores."""
_MOST_WAITING = 30
"""Commands without a reply, while the gateway is away."""


class Events:
    """Publishes events; counts them as begun before, and as done after, the broker has them."""

    def __init__(self, source: Source, declared: Stream, companies: Companies, rng: random.Random) -> None:
        self.written: dict[Position, int] = {}
        """By event: the least number allowed in its joined row."""
        self._source = source
        self._companies = companies
        self._declared = declared
        self._rng = rng
        self._number = 0
        self._under_way = 0
        self.done_at: list[float] = []
        """When each was known to be there, monotonic seconds; the fence's own are counted with the events before them.
        """

    @property
    def begun(self) -> int:
        """Number of events published, or perhaps being published."""
        return len(self._source.events) + self._under_way

    @property
    def done(self) -> int:
        """Number of events that the broker has for certain."""
        return len(self._source.events)

    def step(self) -> None:
        """Publish a few; and some rows of the table, of which they must see the latest."""
        if self._rng.random() < 0.3:
            self._companies.step()
        batch = [self._next() for _ in range(self._rng.choice((1, 2, 5, 20)))]
        self._under_way = len(batch)
        positions = self._source.publish(batch, lambda one: json_event(one, self._rng))
        self._under_way = 0
        for position, one in zip(positions, batch, strict=True):
            if (number := self._companies.written(one)) is not None:
                self.written[position] = number

    def _next(self) -> Event:
        self._number += 1
        made = event(self._rng, self._declared, number=self._number, partitions=self._source.partitions)
        if self._rng.random() < 0.2:
            return made  # of yesterday
        ahead_ms = self._rng.choice((0, 0, 0, -500, 1500))
        return replace(made, time_ms=time.time_ns() // 1_000_000 + ahead_ms)


class Commands:
    """Sends commands and takes their replies; every sent record is due exactly one reply."""

    def __init__(self, lab: Lab, declared: Stream, table: str, events: Events, rng: random.Random) -> None:
        self.cqs: list[Cq] = []
        self.due: Counter[str] = Counter()
        """Per command id, how many records with it were sent."""
        self.evaluated = 0
        """Number of events certainly evaluated at the last quiet moment."""
        self.answered: list[tuple[float, float]] = []
        """When each command was sent, and its reply here, monotonic seconds."""
        self.accepted: Callable[[Cq, Reply], None] = lambda _cq, _reply: None
        """Is told of each CQ when its acceptance is here."""
        self._lab = lab
        self._declared = declared
        self._table = table
        self._events = events
        self._rng = rng
        self._waiting: dict[str, tuple[Cq | None, str, str, float]] = {}
        self._first: dict[str, Reply] = {}
        self._heard = 0
        """Number of the client's replies taken so far."""

    @property
    def live(self) -> list[Cq]:
        """Accepted CQs without a DROP."""
        return [cq for cq in self.cqs if cq.created is not None and cq.drop_sent is None]

    def step(self) -> None:
        """Send at most one command, and take the present replies."""
        roll = self._rng.random()
        if len(self._waiting) >= _MOST_WAITING:
            pass
        elif roll < 0.5:
            self.create() if len(self.live) < _MOST_LIVE else self.drop(self._rng.choice(self.live))
        elif roll < 0.7 and self.live:
            self.drop(self._rng.choice(self.live))
        elif roll < 0.8 and self._first:
            self._repeat(self._rng.choice(tuple(self._first)))
        elif roll < 0.9:
            self._send(None, "SHOW CQS LIMIT 5", self._subscriber())
        self.listen(0.02)

    def create(self) -> None:
        """Ask for a CQ."""
        cq = new_cq(self._rng, self._declared, self._table, self.cqs, self.evaluated, self._subscriber())
        self.cqs.append(cq)
        self._send(cq, cq.text, cq.subscriber)

    def drop(self, cq: Cq) -> None:
        """Ask for a CQ's end."""
        cq.drop_sent = self._events.done
        cq.promised_until = self.evaluated
        self._send(cq, f"DROP CQ {cq.name}", cq.subscriber)

    def finish(self) -> None:
        """Wait for all replies; then check that there is not one too many."""
        while self._waiting:
            self._lab.client.reply(next(iter(self._waiting)))
            self.listen(0.0)
        for who in ("alice", "bob"):
            self._lab.client.result("SHOW STREAMS LIMIT 1", self._lab.subscriber(who))
        for command_id, count in self.due.items():
            replies = self._lab.client.replies_to(command_id)
            while len(replies) < count:
                self._lab.client.poll(0.5)
            assert count == len(replies), f"{count} commands {command_id} have {len(replies)} replies: {replies}"
            answers = [one.fields for one in replies if one.code != "unavailable"]
            assert all(one == answers[0] for one in answers), f"{command_id} was answered in several ways: {answers}"

    def listen(self, seconds: float) -> None:
        """Take the replies that come within that time."""
        self._lab.client.poll(seconds)
        fresh = self._lab.client.replies[self._heard :]
        self._heard += len(fresh)
        for reply in fresh:
            if reply.command_id in self._waiting and reply.command_id is not None:
                self._take(reply.command_id, reply)

    def _take(self, command_id: str, reply: Reply) -> None:
        cq, text, subscriber, sent_at = self._waiting.pop(command_id)
        if reply.code == "unavailable":
            self._send(cq, text, subscriber, command_id)
            return
        assert reply.code == "ok", f"{text[:500]} was answered {reply.fields}"
        self.answered.append((sent_at, time.monotonic()))
        self._first[command_id] = reply
        if cq is None:
            return
        if cq.created is None:
            cq.created, cq.live_from = reply.result, self._events.begun
            self.accepted(cq, reply)
        else:
            cq.gone_from = self._events.begun

    def _repeat(self, command_id: str) -> None:
        """Send a command again that was answered."""
        reply = self._first[command_id]
        self.due[command_id] += 1
        self._lab.client.send("SHOW CQS", reply.fields["subscriber"], command_id=command_id)

    def _send(self, cq: Cq | None, text: str, subscriber: str, command_id: str | None = None) -> None:
        sent = self._lab.client.send(text, subscriber, command_id=command_id)
        self.due[sent] += 1
        self._waiting[sent] = (cq, text, subscriber, time.monotonic())

    def _subscriber(self) -> str:
        return self._lab.subscriber(self._rng.choice(("alice", "bob")))
