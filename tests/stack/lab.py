"""The streams, topics and CQs of a test, which are removed at its end, and a fence that waits for the evaluation."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from tests.kafka_client import RawClient, Reply
from tests.kafka_tail import Result, Results, Tail
from tests.oracle import Position
from tests.queries import Event

__all__ = ["Lab", "Source"]

_FENCE = "the fence"
"""The subscriber whose CQs only show how far a stream is evaluated."""


class Source:
    """A stream, its topic, and its published events."""

    def __init__(self, lab: Lab, name: str, topic: str, partitions: int, blank: bytes) -> None:
        self.name = name
        self.topic = topic
        self.partitions = partitions
        self.events: list[tuple[Position, Event]] = []
        """All events in the order of publishing, including the events of fences (all columns NULL)."""
        self.fences: set[Position] = set()
        self._lab = lab
        self._blank = blank
        self.watched: dict[str, Any] | None = None
        """The destination of the fence's CQ."""

    def publish(self, events: Iterable[Event], encode: Callable[[Event], bytes]) -> list[Position]:
        """Publish events and return their positions once the broker has them."""
        made = list(events)
        places = self._lab.client.publish_all(
            self.topic, [(encode(one), one.key, one.partition, one.time_ms) for one in made]
        )
        positions = [Position(place.partition, place.offset) for place in places]
        self.events += zip(positions, made, strict=True)
        return positions

    def publish_values(
        self,
        *values: bytes | None,
        key: str | bytes | None = None,
        partition: int = 0,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> list[Position]:
        """Publish records as they are, outside of `events`."""
        places = self._lab.client.publish_all(self.topic, [(value, key, partition, 0) for value in values], headers)
        return [Position(place.partition, place.offset) for place in places]

    def fence(self) -> None:
        """Return when everything published so far is evaluated and its results are on their topics.

        A batch with the first fence events has all earlier events; the second event, published after their results were
        seen, is in a later batch, which begins only when the earlier batch is committed.
        """
        if self.watched is None:
            text = f'CREATE CQ "{self.name}" AS SELECT _partition, _offset FROM "{self.name}" DO PUBLISH SHARED'
            self.watched = self._lab.client.result(text, _FENCE)["destination"]
            self._lab.results.follow(self.watched)
        self._pass(range(self.partitions))
        self._pass([0])

    def unwatch(self) -> None:
        """Drop the fence's CQ."""
        if self.watched is not None:
            self._lab.client.result(f'DROP CQ "{self.name}"', _FENCE)
            self.watched = None

    def _pass(self, partitions: Iterable[int]) -> None:
        watched = self.watched
        assert watched is not None
        results = self._lab.results.of(watched)
        read = len(results)
        awaited = self.publish([Event({}, partition) for partition in partitions], lambda _: self._blank)
        self.fences.update(awaited)
        left = {tuple(position) for position in awaited}

        def seen() -> bool:
            nonlocal read
            fresh, read = results[read:], len(results)
            left.difference_update(one.source[1:] for one in fresh if one.kind == "cq.match")
            return not left

        self._lab.results.until(seen, f"evaluation of {self.name} up to {awaited}")


class Lab:
    """Makes streams and CQs under unique names, and removes them."""

    def __init__(self, bootstrap: str, prefix: str = "cq.") -> None:
        self.client = RawClient(bootstrap, prefix)
        self.results = Results(bootstrap)
        self.token = uuid.uuid4().hex[:8]
        self.cqs: dict[tuple[str, str], Any] = {}
        """The live CQs: (subscriber, name) → the result of CREATE CQ."""
        self.sources: list[Source] = []
        self._bootstrap = bootstrap
        self._numbers = itertools.count()
        self._tails: list[Tail] = []

    def subscriber(self, name: str = "alice") -> str:
        """Return the name of a subscriber that no other test uses."""
        return f"{name}-{self.token}"

    def stream(
        self, columns: str = "symbol STRING, price DOUBLE, qty INT", *, name: str | None = None, partitions: int = 1,
        options: str = "format = 'json'", blank: bytes = b"{}",
    ) -> Source:  # fmt: skip
        """Create a stream of these columns on a topic of its own."""
        named = name or f"s{next(self._numbers)}_{self.token}"
        topic = f"t{next(self._numbers)}-{self.token}"
        ddl = f"CREATE STREAM \"{named}\" ({columns}) WITH (topic = '{topic}', {options}, partitions = {partitions})"
        self.client.result(ddl, self.subscriber("owner"))
        return self.adopt(Source(self, named, topic, partitions, blank))

    def adopt(self, source: Source) -> Source:
        """Make the lab drop a stream at its end that the lab has not created."""
        self.sources.append(source)
        return source

    def create(
        self, name: str, select: str, subscriber: str | None = None, *, clauses: str = "", follow: bool = True
    ) -> Any:
        """Create a CQ that must be accepted, begin to read its destination, and return the result of the statement."""
        owner = subscriber or self.subscriber()
        made = self.client.result(f'CREATE CQ "{name}" AS {select} {clauses}', owner)
        self.cqs[owner, name] = made
        if follow:
            self.results.follow(made["destination"])
        return made

    def where(
        self,
        source: Source,
        name: str,
        predicate: str,
        *,
        columns: str = "symbol",
        clauses: str = "",
        who: str = "alice",
    ) -> Any:
        """Create a CQ on a stream; if the predicate is empty, the CQ has no WHERE."""
        text = f"SELECT {columns} FROM {source.name}" + (f" WHERE {predicate}" if predicate else "")
        return self.create(name, text, self.subscriber(who), clauses=clauses)

    def drop(self, name: str, subscriber: str | None = None) -> Reply:
        """Drop a CQ; the DROP must be accepted."""
        owner = subscriber or self.subscriber()
        reply = self.client.execute(f'DROP CQ "{name}"', owner)
        assert reply.code == "ok", reply.fields
        self.cqs.pop((owner, name), None)
        return reply

    def drop_stream(self, source: Source) -> None:
        """Drop a stream without CQs, unless the test has dropped it already."""
        source.unwatch()
        self.client.execute(f'DROP STREAM "{source.name}"', self.subscriber("owner"))
        self.sources.remove(source)

    def matches(self, created: Any, source: Source) -> list[Result]:
        """Wait for the evaluation of all published events; return the matches of a CQ, without those of fences."""
        source.fence()
        return self.settled_matches(created, source)

    def settled_matches(self, created: Any, source: Source) -> list[Result]:
        """Return the same as `matches`, without a fence; nothing may have been published since the last fence."""
        self.results.drain()
        found = [one for one in self.results.of(created["destination"]) if one.kind == "cq.match"]
        return [one for one in found if Position(*one.source[1:]) not in source.fences]

    def dead_letter_tail(self) -> Tail:
        """Return a reader of cq.deadletters that begins at the present end."""
        tail = Tail(self._bootstrap)
        tail.add_topic(self.client.prefix + "deadletters")
        self._tails.append(tail)
        return tail

    def close(self) -> None:
        """Drop the remaining CQs, then the streams."""
        pending = [self.client.send(f'DROP CQ "{name}"', owner) for owner, name in self.cqs]
        for command_id in pending:
            self.client.reply(command_id)
        for source in [*self.sources]:
            self.drop_stream(source)
        for tail in self._tails:
            tail.close()
        self.results.close()
        self.client.close()
