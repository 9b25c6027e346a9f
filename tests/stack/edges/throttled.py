"""A stream of alarms, CQs over it with AT MOST, and the expected results, computed one after the other."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.queries import Event
from tests.stack.lab import Lab

__all__ = ["Alarms", "Expected"]

_DEVICES, _PARTITIONS = 10, 2
_BEGIN_MS = 1_767_225_600_000
_MINUTE_MS = 60_000

Expected = tuple[str, int, int]
"""A result's device, the number of its event, and the number of results that were left out before it."""


@dataclass(frozen=True)
class _Watched:
    name: str
    created: Any
    matches: Callable[[int], bool]
    """Takes the temperature of an event."""
    edges: bool
    most: int
    minutes: int
    begin: int
    """The number of events published before the reply."""


class Alarms:
    """The stream, its events, and the CQs.

    All events of a device are in one partition, so the order of its results is known. The times of events go back
    sometimes.
    """

    def __init__(self, lab: Lab, seed: int = 1) -> None:
        self.lab = lab
        self._random = random.Random(seed)
        self._source = lab.stream("device STRING, temp INT, n INT, PARTITION KEY (device)", partitions=_PARTITIONS)
        self._now_ms = _BEGIN_MS
        self._watched: list[_Watched] = []

    def publish(self, count: int) -> None:
        """Publish events."""
        made = []
        for n in range(len(self._source.events), len(self._source.events) + count):
            device = self._random.randrange(_DEVICES)
            row = {"device": f"d{device}", "temp": self._random.choice((80, 91, 95, 99)), "n": n}
            self._now_ms += self._random.randrange(_MINUTE_MS)
            late_ms = self._random.choice((0, 0, 0, 90_000))
            made.append(Event(row, device % _PARTITIONS, time_ms=self._now_ms - late_ms))
        self._source.publish(made, lambda event: json.dumps(event.values).encode())

    def watch(self, name: str, least: int, most: int, minutes: int, *, emit: str = "", publish: str = "SHARED") -> Any:
        """Create a CQ with ``AT MOST most EVERY 'minutes' BY device``; return the result of the statement."""
        select = f"SELECT device, n FROM {self._source.name} WHERE temp > {least} {emit}"
        clause = f"AT MOST {most} EVERY '{minutes} minutes' BY device DO PUBLISH {publish}"
        made, begin = self.lab.create(name, select, clauses=clause), len(self._source.events)
        self._watched.append(_Watched(name, made, lambda temp: temp > least, bool(emit), most, minutes, begin))
        return made

    def check(self) -> None:
        """Wait until each CQ has exactly the expected results, those of each device in their order."""
        self._source.fence()
        for each in self._watched:
            wanted = self._expected(each)
            self.lab.results.until(
                lambda each=each, wanted=wanted: len(self._found(each)) >= len(wanted),
                f"{len(wanted)} results of {each.name}",
            )
            assert _by_device(wanted) == _by_device(self._found(each)), each.name

    def end(self) -> None:
        """Drop all CQs; after its end each must still have exactly the expected results."""
        self.check()
        for each in self._watched:
            self.lab.drop(each.name)
            found = self.lab.results.of(each.created["destination"])
            self.lab.results.until(lambda found=found: found[-1].kind == "cq.end", "cq.end")
            assert _by_device(self._expected(each)) == _by_device(self._found(each)), each.name

    def _found(self, watched: _Watched) -> list[Expected]:
        results = [one for one in self.lab.results.of(watched.created["destination"]) if one.kind == "cq.match"]
        return [(one.row["device"], one.row["n"], int(one.headers.get("suppressed", 0))) for one in results]

    def _expected(self, watched: _Watched) -> list[Expected]:
        was: dict[str, bool] = {}
        kept: dict[str, list[int]] = {}
        """Device → time of the interval's first result, number of written results, number of results left out."""
        found = []
        for _, event in self._source.events[watched.begin :]:
            device, time_ms = event.values.get("device"), event.time_ms
            if device is None:  # an event of a fence
                continue
            before, now = was.get(device, False), watched.matches(event.values["temp"])
            was[device] = now
            if not now or (watched.edges and before):
                continue
            interval = kept.get(device)
            if interval is None or abs(time_ms - interval[0]) >= watched.minutes * _MINUTE_MS:
                found.append((device, event.values["n"], interval[2] if interval else 0))
                kept[device] = [time_ms, 1, 0]
            elif interval[1] < watched.most:
                interval[1] += 1
                found.append((device, event.values["n"], 0))
            else:
                interval[2] += 1
        return found


def _by_device(results: list[Expected]) -> list[Expected]:
    """Return results device by device, those of each device in the given order."""
    return sorted(results, key=lambda result: result[0])
