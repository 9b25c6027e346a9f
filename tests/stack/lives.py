"""CQs that come and go while events flow: which events are promised to each CQ, and whether it got their results."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests import spelling
from tests.kafka_client import Reply, wait_until
from tests.oracle import Oracle, Position, row_of
from tests.queries import Event, Query, Stream
from tests.stack.lab import Lab, Source
from tests.strategies import event, query

__all__ = ["Life", "Play"]


@dataclass(slots=True)
class Life:
    """A CQ. A time is given as the number of events that were published before that time."""

    query: Query
    text: str
    name: str
    subscriber: str
    evaluated_before: int
    """The number of events that were certainly evaluated when CREATE was sent: the CQ must not see these events."""
    live_from: int | None = None
    """When the reply to CREATE had come: the CQ must see all events that are published afterwards."""
    drop_sent: int | None = None
    gone_from: int | None = None
    """When the reply to DROP had come: the CQ must not see any event that is published afterwards."""
    created: Any = None
    pending: list[str] = field(default_factory=list)
    """The ids of the commands that have no reply yet."""

    def must(self, count: int) -> range:
        """Return the numbers of the events that the CQ must have seen, if `count` events were published."""
        return range(
            count if self.live_from is None else self.live_from, count if self.drop_sent is None else self.drop_sent
        )

    def may(self, count: int) -> range:
        """Return the numbers of the events that the CQ may have seen, if `count` events were published."""
        return range(self.evaluated_before, count if self.gone_from is None else self.gone_from)


class Play:
    """A seeded play: events are published and CQs created and dropped in any order, without waiting for replies."""

    def __init__(
        self, lab: Lab, source: Source, declared: Stream, encode: Callable[[Event], bytes], rng: random.Random
    ) -> None:
        self.lives: list[Life] = []
        self._lab = lab
        self._source = source
        self._declared = declared
        self._encode = encode
        self._rng = rng
        self._evaluated = 0
        self._waiting: dict[str, Life] = {}
        self._number = 0

    def run(self, steps: int) -> None:
        """Play a number of steps; in the middle and at the end, wait until all is answered and evaluated."""
        for step in range(steps):
            roll = self._rng.random()
            if roll < 0.45:
                self._publish()
            elif roll < 0.85:
                self._create()
            else:
                self._drop()
            if step == steps // 2:
                self.settle()
            self._listen(0.0)
        self.settle()

    def settle(self) -> None:
        """Wait for all replies and for the evaluation of everything that was published.

        Results are read meanwhile: the topic of a dropped CQ is deleted `LINGER_SECONDS` after its end.
        """
        wait_until(self._all_answered, "reply to each command")
        self._source.fence()
        self._evaluated = len(self._source.events)
        self._lab.results.drain()

    def check(self) -> int:
        """Compare the results of each destination with the oracle's rows for its CQs; return the number of results."""
        events = self._source.events
        oracle = Oracle(self._declared, events)
        sharing: dict[str, list[Life]] = defaultdict(list)
        for life in self.lives:
            sharing[life.created["destination"]["id"]].append(life)
        total = 0
        for lives in sharing.values():
            rows = oracle.rows(lives[0].query)
            # The last event is an event of a fence: its batch may still write to other destinations.
            must = {events[n][0] for life in lives for n in life.must(len(events) - 1)} & rows.keys()
            may = {events[n][0] for life in lives for n in life.may(len(events))} & rows.keys()
            destination = lives[0].created["destination"]
            came = {
                Position(*one.source[1:]): one for one in self._lab.results.of(destination) if one.kind == "cq.match"
            }
            texts = [(life.text[:400], life.live_from, life.drop_sent, life.gone_from) for life in lives]
            texts.append((destination, [(one.kind, one.offset) for one in self._lab.results.of(destination)][-2:]))
            assert not must - came.keys(), f"missing {_show(must - came.keys(), events)} of {texts}"
            assert not came.keys() - may, f"too many {_show(came.keys() - may, events)} in {texts}"
            for position, one in came.items():
                assert rows[position] == row_of(lives[0].query, one.value), f"{one} of {texts}"
                assert self._declared.name == one.source[0] == one.headers["ce_source"]
            total += len(came)
        return total

    def _publish(self) -> None:
        batch = []
        for _ in range(self._rng.choice((1, 2, 5, 20))):
            self._number += 1
            batch.append(event(self._rng, self._declared, number=self._number, partitions=self._source.partitions))
        self._source.publish(batch, self._encode)

    def _create(self) -> None:
        again = self._rng.choice(self.lives).query if self.lives and self._rng.random() < 0.3 else None
        asked = again or query(self._rng, self._declared)
        name, subscriber = f"q{len(self.lives)}", self._lab.subscriber(self._rng.choice(("alice", "bob")))
        text = f"CREATE CQ {name} AS {spelling.select(asked, self._rng)}"
        life = Life(asked, text, name, subscriber, self._evaluated)
        self.lives.append(life)
        self._send(life, text)

    def _drop(self) -> None:
        live = [life for life in self.lives if life.created is not None and life.drop_sent is None]
        if live:
            life = self._rng.choice(live)
            life.drop_sent = len(self._source.events)
            self._send(life, f"{self._rng.choice(('DROP', 'DELETE'))} CQ {life.name}")

    def _send(self, life: Life, text: str) -> None:
        self._waiting[self._lab.client.send(text, life.subscriber)] = life

    def _listen(self, seconds: float) -> None:
        self._lab.client.poll(seconds)
        for command_id in [one for one in self._waiting if self._lab.client.replies_to(one)]:
            self._answered(self._waiting.pop(command_id), self._lab.client.replies_to(command_id)[0])
        self._lab.results.poll()

    def _all_answered(self) -> bool:
        self._listen(0.05)
        return not self._waiting

    def _answered(self, life: Life, reply: Reply) -> None:
        assert reply.code == "ok", f"{life.text[:500]} was answered {reply.fields}"
        if life.created is None:
            life.created, life.live_from = reply.result, len(self._source.events)
            self._lab.results.follow(reply.result["destination"])
            self._lab.cqs[life.subscriber, life.name] = reply.result
        else:
            life.gone_from = len(self._source.events)
            del self._lab.cqs[life.subscriber, life.name]


def _show(positions: set[Position], events: list[tuple[Position, Event]]) -> str:
    some = sorted(positions)[:3]
    return f"{len(positions)}, as {[(position, one) for position, one in events if position in some]}"
