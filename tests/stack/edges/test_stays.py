"""Stays through the real servers: the clock moves on, a worker dies, and each stay is told once under its id."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from tests.queries import Event
from tests.stack.digests.ticks import digests
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

_SECONDS = 4


@pytest.mark.traceback(WORKER_DEATH)
def test_stays_while_the_workers_die(stack: Stack, lab: Lab) -> None:
    """A key that stays in is told once, a key that leaves is not, though the workers die within the interval.

    A key that leaves after its stay is told a second time, and another key is not.

    A digest has each stay once, although the partition has no event between the stay's begin and the tick.
    """
    source = lab.stream("device STRING, temp DOUBLE, PARTITION KEY (device)")
    text = f"SELECT device, temp, _edge FROM {source.name} WHERE temp > {{}} EMIT ON ENTER BY device FOR '4 seconds'"
    hot, warm = (lab.create(f"above{at}", text.format(at), clauses="DO PUBLISH SHARED") for at in (90, 70))
    assert hot["trigger"] == {"kind": "change", "emit": "enter", "by": ["device"]}
    assert hot["group"] == warm["group"]

    both = lab.create("both", text.format(90).replace("ON ENTER", "ON ENTER OR EXIT"), clauses="DO PUBLISH SHARED")
    assert both["group"] == hot["group"]
    digested = lab.create("digested", text.format(70), clauses="EVERY '1 second' DO PUBLISH SHARED")
    framed = lab.create(
        "framed",
        f"SELECT device, temp, count(*) OVER w AS seen, _edge FROM {source.name} QUALIFY max(temp) OVER w > 90 "
        "WINDOW w AS (PARTITION BY device ORDER BY _offset ROWS 5 PRECEDING) "
        "EMIT ON ENTER OR EXIT BY device FOR '4 seconds'",
        clauses="DO PUBLISH SHARED",
    )

    begin = time.time_ns() // 1_000_000
    temps = [("m0", 95.0), ("m1", 96.0), ("m2", 60.0), ("m0", 92.0), ("m1", 80.0), ("m2", 71.0)]
    events = [
        Event({"device": device, "temp": temp}, 0, time_ms=begin + place) for place, (device, temp) in enumerate(temps)
    ]
    places = source.publish(events, lambda event: json.dumps(event.values).encode())
    source.fence()
    stack.kill_workers()
    lab.results.until(lambda: len(lab.results.of(warm["destination"])) >= 3, "stays of all devices")
    lab.results.until(lambda: lab.results.of(hot["destination"]), "the stay of the hot device")
    for created, wanted in ((hot, [0]), (warm, [0, 1, 5])):
        matches = lab.settled_matches(created, source)
        assert [each.row for each in matches] == [{**events[place].values, "_edge": "enter"} for place in wanted]
        for each, place in zip(matches, wanted, strict=True):
            headers, end = each.headers, events[place].time_ms + _SECONDS * 1000
            assert headers["edge"] == "enter"
            assert headers["cause"] == f"{source.name}/0/{places[place].offset}"
            assert headers["ce_id"] == f"{headers['ce_source']}/0/{(end << 21) + places[place].offset}"
            assert datetime.fromisoformat(headers["ce_time"]) == datetime.fromtimestamp(end / 1000, UTC)

    lab.results.until(lambda: len(lab.results.of(framed["destination"])) >= 2, "stays over frames")
    seen = [{**events[place].values, "seen": 1, "_edge": "enter"} for place in (0, 1)]
    assert [each.row for each in lab.settled_matches(framed, source)] == seen

    def rows() -> list[dict[str, object]]:
        return [row for digest in digests(lab, digested) for row in digest.row["rows"]]

    lab.results.until(lambda: len(rows()) >= 3, "digests of all stays")
    assert rows() == [{**events[place].values, "_edge": "enter"} for place in (0, 1, 5)]
    listed = lab.client.result("SHOW COMPUTATIONS LIKE 'j_%'", lab.subscriber())["computations"]
    assert any("FOR 'PT4S'" in each["text"] for each in listed)

    cool = Event({"device": "m0", "temp": 20.0}, 0, time_ms=time.time_ns() // 1_000_000)
    [place] = source.publish([cool], lambda event: json.dumps(event.values).encode())
    source.fence()
    lab.results.until(lambda: len(lab.results.of(both["destination"])) >= 2, "the end of the stay")
    entered, left = lab.settled_matches(both, source)
    assert entered.row == {**events[0].values, "_edge": "enter"}
    assert (left.row, left.headers["edge"]) == ({**cool.values, "_edge": "exit"}, "exit")
    assert left.headers["ce_id"] == f"{left.headers['ce_source']}/0/{(cool.time_ms << 21) + place.offset}"
    assert len(lab.results.of(hot["destination"])) == 1
    assert len(lab.results.of(framed["destination"])) == 2


@pytest.mark.traceback(WORKER_DEATH)
def test_rows_of_a_table_that_stay(stack: Stack, lab: Lab) -> None:
    """A row that stays a match is told once, though the workers die; a row that changes is not; a removal ends a stay.

    The clock moves the time on, since no record follows.
    """
    table = LabTable(lab, "id STRING PRIMARY KEY, status STRING, total DOUBLE")
    created = lab.create(
        "pending",
        f"SELECT id, total, _edge FROM {table.name} WHERE status = 'pending' EMIT ON ENTER OR EXIT FOR '4 seconds'",
    )
    assert created["trigger"] == {"kind": "change", "emit": "enter or exit", "by": ["id"]}
    results = lab.results
    table.put(*({"id": name, "status": "pending", "total": total} for name, total in (("a", 1.0), ("b", 2.0))))
    table.put({"id": "a", "status": "pending", "total": 3.0}, {"id": "b", "status": "paid", "total": 2.0})
    stack.kill_workers()
    results.until(lambda: results.of(created["destination"]), "the row that stays")
    table.write(("a", None))
    results.until(lambda: len(results.of(created["destination"])) >= 2, "the removal")
    entered, left = results.of(created["destination"])
    assert entered.row == {"id": "a", "total": 1.0, "_edge": "enter"}
    assert left.row == {"id": "a", "total": None, "_edge": "exit"}
    assert [each.headers["cause"] for each in (entered, left)] == [f"{table.name}/0/{offset}" for offset in (0, 4)]
