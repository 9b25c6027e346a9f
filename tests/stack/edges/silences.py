"""A stream of signs of life, and CQs for silences: each silence is reported once, and is in one digest."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tests.queries import Event
from tests.stack.digests.ticks import digests
from tests.stack.lab import Lab

__all__ = ["Silences"]

_DEVICES, _PARTITIONS = 6, 2
_SECONDS = 4


class _Silence(NamedTuple):
    """The id of the last event before a silence, and the instant from which the key counts as silent."""

    cause: str
    at: datetime


class Silences:
    """The stream, a CQ for all devices, a CQ for a single device, and a CQ with digests for all devices."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.source = lab.stream("device STRING, n INT, PARTITION KEY (device)", partitions=_PARTITIONS)
        select = f"SELECT device, n FROM {self.source.name} {{}} EMIT ON SILENCE '{_SECONDS} seconds' BY device"
        self._every = lab.create("every", select.format(""), clauses="DO PUBLISH SHARED")
        assert self._every["trigger"] == {"kind": "change", "emit": "silence", "by": ["device"]}
        where = "WHERE device = 'm1' AND n > 0"
        self._some = lab.create("some", select.format(where), clauses="DO PUBLISH SHARED")
        self._digested = lab.create("digested", select.format(""), clauses="EVERY '1 second' DO PUBLISH SHARED")
        framed = (
            f"SELECT device, n, count(*) OVER w AS seen FROM {self.source.name} WHERE n < 9 QUALIFY seen > 1 "
            "WINDOW w AS (PARTITION BY device ORDER BY _offset ROWS 5 PRECEDING) "
            f"EMIT ON SILENCE '{_SECONDS} seconds' BY device"
        )
        self._framed = lab.create("framed", framed, clauses="DO PUBLISH SHARED")
        self._wanted: dict[str, _Silence] = {}

    def begin(self) -> None:
        """Publish two events of each device, and return when they are evaluated, before the silences are due."""
        self._publish(range(_DEVICES), 1)
        self._wanted = self._publish(range(_DEVICES), 2)
        self.source.fence()

    def check(self) -> None:
        """Check that each device was silent once; a device with a new match is silent again."""
        wanted, results = self._wanted, self.lab.results
        destination = self._every["destination"]
        results.until(lambda: len(results.of(destination)) >= _DEVICES, "silences of all devices")
        again = self._publish(range(1, 2), 3)
        results.until(lambda: len(results.of(destination)) > _DEVICES, "a second silence")
        matches = self.lab.settled_matches(self._every, self.source)
        assert len({each.headers["ce_id"] for each in matches}) == len(matches) == _DEVICES + 1
        causes = {each.row["device"]: each.headers["cause"] for each in matches[:_DEVICES]}
        assert causes == {device: silence.cause for device, silence in wanted.items()}
        ends = {silence.cause: silence.at for some in (wanted, again) for silence in some.values()}
        for each in matches:
            late = datetime.fromisoformat(each.headers["ce_time"]) - ends[each.headers["cause"]]
            assert abs(late.total_seconds()) < 0.01
            assert each.headers["ce_source"].startswith("j_")
        assert matches[-1].row == {"device": "m1", "n": 3}
        results.until(lambda: len(results.of(self._framed["destination"])) > _DEVICES, "silences over frames")
        own = self.lab.settled_matches(self._framed, self.source)
        assert [each.headers["cause"] for each in own] == [each.headers["cause"] for each in matches]
        assert [each.row for each in own] == [{**each.row, "seen": each.row["n"]} for each in matches]
        results.until(lambda: len(results.of(self._some["destination"])) > 1, "silences of the other computation")
        own = self.lab.settled_matches(self._some, self.source)
        assert [each.headers["cause"] for each in own] == [wanted["m1"].cause, again["m1"].cause]
        results.until(lambda: len(self._digest_rows()) > _DEVICES, "digests of all silences")
        assert sorted(self._digest_rows()) == sorted((each.row["device"], each.row["n"]) for each in matches)

    def _digest_rows(self) -> list[tuple[str, int]]:
        return [(row["device"], row["n"]) for digest in digests(self.lab, self._digested) for row in digest.row["rows"]]

    def _publish(self, devices: range, n: int) -> dict[str, _Silence]:
        """Publish an event of each device now, and return the silences that follow, by device."""
        now_ms = time.time_ns() // 1_000_000
        made = [
            Event({"device": f"m{device}", "n": n}, device % _PARTITIONS, time_ms=now_ms + device) for device in devices
        ]
        places = self.source.publish(made, lambda event: json.dumps(event.values).encode())
        found: dict[str, Any] = {}
        for event, place in zip(made, places, strict=True):
            cause = f"{self.source.name}/{place.partition}/{place.offset}"
            at = datetime.fromtimestamp(event.time_ms / 1000 + _SECONDS, UTC)
            found[str(event.values["device"])] = _Silence(cause, at)
        return found
