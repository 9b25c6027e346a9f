"""Event times of a column through the real servers: late and future events, and the clock of an idle stream."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.kafka_client import wait_until
from tests.queries import Event
from tests.stack.lab import Lab

_BEGIN = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=5)
"""Event times are hours behind the records' times."""
_INTERVAL = timedelta(seconds=4)
_SECONDS = {"a": 0, "b": 6, "late": 3, "future": 6.5 * 3600, "none": None, "c": 4}
"""By device the event time: device a is silent by the event of b, and the event of c is as late as the delay allows."""


def test_event_times_of_a_column(lab: Lab) -> None:
    """Silences go by the column; late and future events count for none, and once each in DESCRIBE STREAM."""
    source = lab.stream(
        "device STRING, n INT, at TIMESTAMP, PARTITION KEY (device), WATERMARK FOR at AS at - INTERVAL '2 seconds'",
        options="format = 'json', idle = '2 seconds'",
    )

    def described() -> dict[str, Any]:
        found: dict[str, Any] = lab.client.result(f"DESCRIBE STREAM {source.name}", lab.subscriber("owner"))
        return found

    first = described()
    assert (first["event_time"], first["idle"]) == ({"column": "at", "delay": "PT2S"}, "PT2S")
    assert (first["watermark"], first["late"], first["future"]) == (None, 0, 0)
    select = f"SELECT device FROM {source.name} {{}} EMIT ON SILENCE '4 seconds' BY device"
    made = [
        lab.create(name, select.format(where), clauses="DO PUBLISH SHARED")["destination"]
        for name, where in (("every", ""), ("some", "WHERE n > 0"))
    ]
    now_ms = time.time_ns() // 1_000_000
    times = {name: None if at is None else _BEGIN + timedelta(seconds=at) for name, at in _SECONDS.items()}
    events = [
        Event({"device": name, "n": 1, "at": None if at is None else at.isoformat()}, time_ms=now_ms)
        for name, at in times.items()
    ]
    places = source.publish(events, lambda event: json.dumps(event.values).encode())
    ids = {name: f"{source.name}/0/{place.offset}" for name, place in zip(times, places, strict=True)}
    wanted = [(name, ids[name], times[name] + _INTERVAL) for name in ("a", "c", "b")]  # type: ignore[operator]
    for destination in made:
        lab.results.until(lambda to=destination: len(lab.results.of(to)) >= 3, "silences by event and by clock")
        reported = [
            (each.row["device"], each.headers["cause"], datetime.fromisoformat(each.headers["ce_time"]))
            for each in lab.results.of(destination)
        ]
        assert sorted(wanted) == sorted(reported), "a step of the clock may end several silences at once"
    wait_until(lambda: (described()["late"], described()["future"]) == (2, 1), "each event counted once")
    last = described()
    watermark = datetime.fromisoformat(last["watermark"])
    assert _BEGIN + timedelta(seconds=10) <= watermark <= _BEGIN + timedelta(minutes=5), (
        "the clock's pace, hours behind"
    )
    assert last["watermarks"] == {"0": last["watermark"]}
    listed = lab.client.result("SHOW COMPUTATIONS LIKE 'j_%'", lab.subscriber())["computations"]
    assert all(datetime.fromisoformat(each["watermark"]) >= watermark for each in listed)
    assert len(listed) == len(made)
