"""A stream of machines, CQs with edges over the stream, and the expected edges, computed event by event."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.oracle import Position
from tests.queries import Event
from tests.stack.lab import Lab

__all__ = ["Machines", "Watched"]

_DEVICES, _ROOMS, _TEMPS = 12, ("hall", "cellar", None), (None, 80, 88, 89, 90, 91, 92, 99)
_PARTITIONS = 2

Row = dict[str, Any]
Edge = tuple[Position, str]
"""The event and its edge."""


@dataclass
class Watched:
    """A CQ with edges, and the known moments of its life."""

    name: str
    created: Any
    wanted: frozenset[str]
    """The reported edges."""
    by: tuple[str, ...]
    matches: Callable[[Row], bool]
    ends: Callable[[Row], bool] | None
    """UNTIL; None if a key leaves with its first event that is no match."""
    begin: int
    """The number of events published before the reply."""
    end: int | None = None
    """The number of events published before the CQ was dropped or replaced."""
    unseen: list[range] = field(default_factory=list)
    """The numbers of events published and evaluated during a pause."""

    def edges(self, events: list[tuple[Position, Event]]) -> list[Edge]:
        """Return the edges, one event after the other, in the order of events."""
        was: dict[tuple[Any, ...], bool] = {}
        found = []
        for number, (position, event) in enumerate(events[: self.end]):
            if number < self.begin:
                continue
            row = event.values
            key = (position.partition, *(row.get(name) for name in self.by))
            before, now = was.get(key, False), self.matches(row)
            if before and self.ends is not None:
                now = not self.ends(row)
            was[key] = now
            edge = "enter" if now else "exit"
            if before != now and edge in self.wanted and not any(number in some for some in self.unseen):
                found.append((position, edge))
        return found


class Machines:
    """The stream, its events, and all CQs, live and ended."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab = lab
        self.random = random.Random(seed)
        columns = "device STRING, room STRING, temp DOUBLE, n INT, PARTITION KEY (device)"
        self.source = lab.stream(columns, partitions=_PARTITIONS)
        self.watched: list[Watched] = []

    @property
    def published(self) -> int:
        """The number of events, fences included."""
        return len(self.source.events)

    def publish(self, count: int) -> None:
        """Publish events; all events of a device are in one partition, and events without a device in the first."""
        made = []
        for n in range(self.published, self.published + count):
            device = self.random.choice([None, *range(_DEVICES)])
            row = {
                "device": None if device is None else f"m{device}",
                "room": self.random.choice(_ROOMS),
                "temp": self.random.choice(_TEMPS),
                "n": n,
            }
            made.append(Event(row, (device or 0) % _PARTITIONS))
        self.source.publish(made, lambda event: json.dumps(event.values).encode())

    def watch(
        self,
        name: str,
        edges: str,
        most: float,
        by: tuple[str, ...] = ("device",),
        clauses: str = "DO PUBLISH SHARED",
        until: float | None = None,
        value: str = "temp",
    ) -> Watched:
        """Create a CQ for edges of ``temp > most``, with ``UNTIL temp < until``; `value` is the text for ``temp``."""
        select = self._select(edges, most, by, value) + ("" if until is None else f" UNTIL {value} < {until}")
        return self._watch(name, self.lab.create(name, select, clauses=clauses), edges, most, by, until)

    def replace(self, old: Watched, edges: str, most: float) -> Watched:
        """Replace the text of a CQ; its edges begin again."""
        text = f'CREATE OR REPLACE CQ "{old.name}" AS {self._select(edges, most, old.by)} DO PUBLISH SHARED'
        old.end = self.published
        created = self.lab.client.result(text, self.lab.subscriber())
        self.lab.results.follow(created["destination"])
        return self._watch(old.name, created, edges, most, old.by)

    def _select(self, edges: str, most: float, by: tuple[str, ...], value: str = "temp") -> str:
        where = f"WHERE {value} > {most}"
        return f"SELECT device, temp, n, _edge FROM {self.source.name} {where} EMIT ON {edges} BY {', '.join(by)}"

    def _watch(
        self, name: str, created: Any, edges: str, most: float, by: tuple[str, ...], until: float | None = None
    ) -> Watched:
        def matches(row: Row) -> bool:
            return row.get("temp") is not None and row["temp"] > most

        def ends(row: Row) -> bool:
            return until is not None and row.get("temp") is not None and row["temp"] < until

        wanted, leaves = frozenset(edges.lower().split(" or ")), None if until is None else ends
        self.watched.append(Watched(name, created, wanted, by, matches, leaves, self.published))
        return self.watched[-1]

    def drop(self, watched: Watched) -> None:
        """Drop a CQ."""
        self.lab.drop(watched.name)
        watched.end = self.published

    def pause(self, watched: Watched, *, paused: bool) -> None:
        """Pause or resume a CQ once all events so far are evaluated."""
        self.source.fence()
        word = "PAUSE" if paused else "RESUME"
        self.lab.client.result(f'{word} CQ "{watched.name}"', self.lab.subscriber())
        if paused:
            watched.unseen.append(range(self.published, self.published))
        else:
            watched.unseen.append(range(watched.unseen.pop().start, self.published))

    def check(self) -> None:
        """Compare the results of all CQs so far with the expected edges: each edge once, in the order of partitions."""
        self.source.fence()
        self.lab.results.drain()
        events = self.source.events
        values = dict(events)
        for each in self.watched:
            found = self.lab.settled_matches(each.created, self.source)
            edges = [(Position(*one.source[1:]), one.headers["edge"]) for one in found]
            wanted = [edge for edge in each.edges(events) if edge[0] not in self.source.fences]
            assert sorted(wanted) == sorted(edges), f"{each.name}, {each.created['destination']['id']}"
            for one, (position, edge) in zip(found, edges, strict=True):
                row = values[position].values
                assert {"device": row["device"], "temp": row["temp"], "n": row["n"], "_edge": edge} == one.row
