"""The gateway's timers on real servers with a clock moved by hand, and their written records."""

from __future__ import annotations

import json
from typing import Any

from gateway.kafka import LogReader
from tests.timer_desk import Desk

__all__ = ["HOUR", "NOW", "await_taken_in", "digests", "let_pass", "take_in", "written"]

HOUR = 3_600_000
NOW = 1_800_000_000_000
_STEP = 100


def let_pass(desk: Desk, milliseconds: int) -> None:
    """Let the desk's clock go on, with a step of the gateway every 100 ms, once the gateway has read its log.

    The gateway fires nothing before that. The reading takes real time, not time of the desk's clock.
    """
    while not desk.timers.taken_in:
        desk.timers.step()
    for _ in range(0, milliseconds, _STEP):
        desk.timers.step()
        desk.look_after()
        desk.now_ms += _STEP


def take_in(desk: Desk, stores: list[tuple[bytes, int]], time_ms: int) -> None:
    """Write a match for each store, and let time go on until the gateway has taken all matches in."""
    desk.match(stores, [time_ms] * len(stores))
    await_taken_in(desk)


def await_taken_in(desk: Desk) -> None:
    """Let time go on until the gateway has taken in all matches so far."""
    awaited = desk.timers.taken_in + 3
    while desk.timers.taken_in < awaited:
        let_pass(desk, _STEP)


def written(desk: Desk) -> dict[str, Any]:
    """Return all results so far, with ends, by id and in their order; each id must be there only once."""
    reader = LogReader(desk.settings)
    partitions = dict.fromkeys(range(desk.settings.results.partitions), 0)
    found: dict[str, Any] = {}
    for message in reader.since(desk.settings.topics.results, partitions):
        name = dict(message.headers)["ce_id"].decode()
        assert name not in found, f"{name} was written twice"
        found[name] = json.loads(message.value or b"")
    reader.close()
    return found


def digests(desk: Desk) -> dict[str, Any]:
    """Return all digests so far by their ids."""
    return {name: body for name, body in written(desk).items() if "fired_at" in body}
