"""CQs with FOR over joins with a table whose rows change during stays: each stay is reported once, as it began."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.queries import Event
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable

__all__ = ["JoinedStays"]

_SECONDS = 60
"""The interval of FOR; the events of `check` are later than its end."""


class JoinedStays:
    """The stream, the table, a CQ over an inner join and a CQ over a LEFT JOIN."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.source = lab.stream("device STRING, temp DOUBLE, PARTITION KEY (device)")
        self._table = LabTable(lab, "machine STRING PRIMARY KEY, room STRING, most DOUBLE")
        self._table.put(
            {"machine": "m0", "room": "hall", "most": 90.0}, {"machine": "m1", "room": "hall", "most": 90.0}
        )
        select = f"SELECT device, temp, room, most, _edge FROM {self.source.name} {{}}JOIN {self._table.name}"
        emit = f"EMIT ON ENTER OR EXIT BY device FOR '{_SECONDS} seconds'"
        where = "ON machine = device WHERE temp > coalesce(most, 50.0)"
        self._inner, self._left = (
            lab.create(name, f"{select.format(kind)} {where} {emit}", clauses="DO PUBLISH SHARED")
            for name, kind in (("inner", ""), ("left", "LEFT "))
        )
        self._began = time.time_ns() // 1_000_000

    def begin(self) -> None:
        """Publish events of keys that enter, change the table, and publish events of the changed rows."""
        self._publish(("m0", 95.0, 0), ("m1", 95.0, 1), ("m2", 60.0, 2), ("m1", 20.0, 3))
        self.source.fence()
        self._table.put(
            {"machine": "m0", "room": "attic", "most": 94.0}, {"machine": "m2", "room": "attic", "most": 1.0}
        )
        self._publish(("m0", 94.5, 4), ("m2", 2.0, 5))
        self.source.fence()

    def check(self) -> None:
        """Check that each stay is reported once, with the row that the table had when the key entered."""
        later = 2 * _SECONDS * 1000
        self._publish(("m9", 0.0, later))
        m0 = {"device": "m0", "temp": 95.0, "room": "hall", "most": 90.0, "_edge": "enter"}
        m2 = {"device": "m2", "temp": 60.0, "room": None, "most": None, "_edge": "enter"}
        self._until([m0], [m0, m2])
        self._publish(("m0", 94.0, later + 1), ("m9", 0.0, 2 * later))
        left = {"device": "m0", "temp": 94.0, "room": "attic", "most": 94.0, "_edge": "exit"}
        self._until([m0, left], [m0, m2, left])

    def _until(self, inner: list[dict[str, Any]], left: list[dict[str, Any]]) -> None:
        """Wait for the results of both CQs.

        In the inner join the key `m2` enters with its second event, since its first event has no row in the table.
        """
        m2 = {"device": "m2", "temp": 2.0, "room": "attic", "most": 1.0, "_edge": "enter"}
        self._check(self._inner, [inner[0], m2, *inner[1:]])
        self._check(self._left, left)

    def _check(self, created: dict[str, Any], wanted: list[dict[str, Any]]) -> None:
        """Wait for the results of a CQ, and check that there are no further results and no repeats."""
        results = self.lab.results
        results.until(lambda: len(results.of(created["destination"])) >= len(wanted), "stays over a join")
        self.source.fence()
        matches = self.lab.settled_matches(created, self.source)
        assert [each.row for each in matches] == wanted
        assert len({each.headers["ce_id"] for each in matches}) == len(matches)

    def _publish(self, *rows: tuple[str, float, int]) -> None:
        """Publish events of a device and a temp, each a number of milliseconds after the beginning."""
        made = [Event({"device": device, "temp": temp}, 0, time_ms=self._began + after) for device, temp, after in rows]
        self.source.publish(made, lambda event: json.dumps(event.values).encode())
