"""Silences through the real servers: the clock moves on, roles die, and each silence is told once."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from tests.queries import Event
from tests.stack.lab import Lab
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

_DEVICES, _PARTITIONS = 6, 2
_SECONDS = 4


@pytest.mark.traceback(WORKER_DEATH)
@pytest.mark.timeout(300)  # roles start anew
def test_silences_while_workers_and_the_evaluator_die(stack: Stack, lab: Lab) -> None:
    """A key whose worker and evaluator die between match and silence is told once; a key with a new match again."""
    source = lab.stream("device STRING, n INT, PARTITION KEY (device)", partitions=_PARTITIONS)
    select = f"SELECT device, n FROM {source.name} {{}} EMIT ON SILENCE '{_SECONDS} seconds' BY device"
    every = lab.create("every", select.format(""), clauses="DO PUBLISH SHARED")
    assert every["trigger"] == {"kind": "change", "emit": "silence", "by": ["device"]}
    one = lab.create("one", select.format("WHERE device = 'm1' AND n > 0"), clauses="DO PUBLISH SHARED")

    def publish(devices: range, n: int) -> dict[str, tuple[str, datetime]]:
        now_ms = time.time_ns() // 1_000_000
        made = [
            Event({"device": f"m{device}", "n": n}, device % _PARTITIONS, time_ms=now_ms + device) for device in devices
        ]
        places = source.publish(made, lambda event: json.dumps(event.values).encode())
        times = [datetime.fromtimestamp(event.time_ms / 1000 + _SECONDS, UTC) for event in made]
        ids = [f"{source.name}/{place.partition}/{place.offset}" for place in places]
        names = [str(event.values["device"]) for event in made]
        return dict(zip(names, zip(ids, times, strict=True), strict=True))

    publish(range(_DEVICES), 1)
    wanted = publish(range(_DEVICES), 2)
    source.fence()
    stack.kill_workers()
    stack.await_restart("evaluator", stack.kill("evaluator"))
    destination = every["destination"]
    lab.results.until(lambda: len(lab.results.of(destination)) >= _DEVICES, "silences of all devices")
    again = publish(range(1, 2), 3)
    lab.results.until(lambda: len(lab.results.of(destination)) > _DEVICES, "a second silence")
    told = lab.settled_matches(every, source)
    assert len({each.headers["ce_id"] for each in told}) == len(told) == _DEVICES + 1
    assert {each.row["device"]: each.headers["cause"] for each in told[:_DEVICES]} == {
        device: cause for device, (cause, _) in wanted.items()
    }
    ends = {**{cause: at for cause, at in wanted.values()}, **{cause: at for cause, at in again.values()}}
    for each in told:
        assert (
            abs((datetime.fromisoformat(each.headers["ce_time"]) - ends[each.headers["cause"]]).total_seconds()) < 0.01
        )
        assert each.headers["ce_source"].startswith("j_")
    assert told[-1].row == {"device": "m1", "n": 3}
    own = lab.settled_matches(one, source)
    assert [each.headers["cause"] for each in own] == [wanted["m1"][0], again["m1"][0]]
    listed = lab.client.result("SHOW COMPUTATIONS LIKE 'j_%'", lab.subscriber())["computations"]
    assert any("EMIT ON SILENCE" in each["text"] for each in listed)
