"""A stream of readings, CQs with window functions over it, and the expected results, computed event by event."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from tests.oracle import Position
from tests.queries import BASE_MS, Event
from tests.stack.lab import Lab

__all__ = ["UNTIL_EVENT", "UNTIL_VALUE", "Readings"]

_DEVICES, _PARTITIONS, _EVENTS = 6, 2, 250
_RANGE_MS = 1_000
_LEAVES, _COLD = 240, 80
UNTIL_VALUE, UNTIL_EVENT = f"edges UNTIL v < {_LEAVES}", f"edges UNTIL temp = {_COLD}"
"""Kinds of CQs with edges and UNTIL: over a window function, and over a column of the events."""


class _Framed(NamedTuple):
    """A CQ over frames, and where its frames begin: the number of events published before the first such CQ."""

    created: Any
    kind: str
    over: float
    begin: int
    created_at: int
    """The number of events published before this CQ."""


class Readings:
    """A stream of readings, some of them late, and the CQs over it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.random = random.Random(11)
        self.source = lab.stream("device STRING, temp INT, n INT, PARTITION KEY (device)", partitions=_PARTITIONS)
        self.framed: list[_Framed] = []

    def publish(self) -> None:
        """Publish events; all events of a device are in one partition, and some are late by a tenth of the frame."""
        first = len(self.source.events)
        made = []
        for n in range(first, first + _EVENTS):
            device = self.random.randrange(_DEVICES)
            row = {"device": f"m{device}", "temp": self.random.choice([None, 70, 80, 90]), "n": n}
            time_ms = BASE_MS + n * 20 - self.random.choice([0, 0, 0, _RANGE_MS // 10])
            made.append(Event(row, device % _PARTITIONS, time_ms=time_ms))
        self.source.publish(made, lambda event: json.dumps(event.values).encode())

    def watch(self, name: str, kind: str, over: float) -> None:
        """Create a CQ. The frames of a kind begin with the first CQ of this kind, because that CQ is not dropped."""
        select = {
            "lag": "SELECT n, lag(temp) OVER (PARTITION BY device ORDER BY _offset) AS v {} QUALIFY temp - v > {}",
            "rows": "SELECT n, sum(temp) OVER w AS v {} QUALIFY v > {} "
            "WINDOW w AS (PARTITION BY device ORDER BY _offset ROWS 3 PRECEDING)",
            "range": "SELECT n, count(*) OVER w AS v {} WHERE temp > 70 QUALIFY v > {} "
            f"WINDOW w AS (PARTITION BY device ORDER BY _time RANGE INTERVAL {_RANGE_MS // 1000} SECOND PRECEDING)",
            "edges": "SELECT n, sum(temp) OVER w AS v, _edge {} WHERE n % 9 > 0 QUALIFY v > {} "
            "WINDOW w AS (PARTITION BY device ORDER BY _offset ROWS 3 PRECEDING) EMIT ON ENTER OR EXIT BY device",
        }[kind.partition(" ")[0]]
        begin = next((each.begin for each in self.framed if each.kind == kind), len(self.source.events))
        text = f"{select.format(f'FROM {self.source.name}', over)} {kind.partition(' ')[2]}"
        created = self.lab.create(name, text, clauses="DO PUBLISH SHARED")
        self.framed.append(_Framed(created, kind, over, begin, len(self.source.events)))

    def check(self) -> None:
        """Compare the results of all CQs so far with the expected results."""
        self.source.fence()
        self.lab.results.drain()
        for each in self.framed:
            found = self.lab.settled_matches(each.created, self.source)
            reported = {Position(*one.source[1:]): one.row for one in found}
            assert len(reported) == len(found), each.kind
            folded = self._folded(each)
            # Events published before the reply may be evaluated with the CQ or without it.
            wanted = {place: row for number, place, row in folded if number >= each.created_at or place in reported}
            wanted = {place: row for place, row in wanted.items() if place not in self.source.fences}
            assert wanted, each.kind
            assert wanted == reported, each.kind

    def _folded(self, framed: _Framed) -> list[tuple[int, Position, dict[str, Any]]]:
        """Return the matches of all events, or the edges, each with its number and place."""
        kept: dict[object, list[tuple[int, int, Any]]] = {}
        inside: dict[object, bool] = {}
        found = []
        for number, (place, event) in enumerate(self.source.events):
            temp, n, device = (event.values.get(name) for name in ("temp", "n", "device"))
            if framed.kind == "range" and not (isinstance(temp, int) and temp > 70):
                continue
            rows = kept.setdefault(device, [])
            if number < framed.begin:
                continue
            if framed.kind.startswith("edges"):
                value = None
                if isinstance(n, int) and n % 9:
                    rows.append((number, event.time_ms, temp))
                    value = _value("rows", rows)
                now, was = value is not None and value > framed.over, inside.get(device, False)
                if framed.kind == UNTIL_VALUE and was:
                    now = not (value is not None and value < _LEAVES)
                elif framed.kind == UNTIL_EVENT:
                    now = (was or now) and temp != _COLD
                if number >= framed.created_at:
                    if now != was:
                        found.append((number, place, {"n": n, "v": value, "_edge": "enter" if now else "exit"}))
                    inside[device] = now
                continue
            rows.append((number, event.time_ms, temp))
            value = compared = _value(framed.kind, rows)
            if framed.kind == "lag":
                compared = None if value is None or not isinstance(temp, int) else temp - value
            if compared is not None and compared > framed.over:
                found.append((number, place, {"n": n, "v": value}))
        return found


def _value(kind: str, rows: list[tuple[int, int, Any]]) -> Any:
    """Return the value of the last row."""
    if kind == "lag":
        return rows[-2][2] if len(rows) > 1 else None
    if kind == "rows":
        known = [temp for _, _, temp in rows[-4:] if temp is not None]
        return sum(known) if known else None
    own = rows[-1][1]
    return sum(own - _RANGE_MS <= time_ms <= own for _, time_ms, _ in rows)
