"""Events in real time, and a check that each event is in the right digest, for tests of timers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.kafka_tail import Result
from tests.stack.lab import Lab, Source

__all__ = ["Flow", "Sent", "digests", "now_ms", "numbers", "tick_of"]


def now_ms() -> int:
    """Return the present time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def tick_of(digest: Result) -> int:
    """Return the tick of a digest, which is part of its id."""
    return int(digest.headers["ce_id"].rsplit("/", 2)[1])


@dataclass(frozen=True, slots=True)
class Sent:
    """An event that was published."""

    number: int
    symbol: str
    time_ms: int
    acknowledged_ms: int
    """When the broker had acknowledged the event, in epoch milliseconds."""


class Flow:
    """Numbered events of one stream, published as time goes by."""

    def __init__(self, lab: Lab, source: Source) -> None:
        self._lab = lab
        self._source = source
        self.sent: list[Sent] = []

    def publish(self, *symbols: str, time_ms: int | None = None) -> None:
        """Publish one event for each symbol; `qty` is its number."""
        at_ms = now_ms() if time_ms is None else time_ms
        made = list(enumerate(symbols, len(self.sent)))
        bodies = [json.dumps({"symbol": symbol, "qty": number}).encode() for number, symbol in made]
        places = [
            (body, None, number % self._source.partitions, at_ms)
            for (number, _), body in zip(made, bodies, strict=True)
        ]
        self._lab.client.publish_all(self._source.topic, places)
        done_ms = now_ms()
        self.sent += [Sent(number, symbol, at_ms, done_ms) for number, symbol in made]

    def run(self, seconds: float, *symbols: str, pause: float = 0.1) -> None:
        """Publish events of these symbols again and again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.publish(*symbols)
            self._lab.results.until(lambda: True, "")
            time.sleep(pause)

    def of(self, symbol: str) -> list[Sent]:
        """Return the published events of one symbol."""
        return [sent for sent in self.sent if sent.symbol == symbol]

    def await_all(self, created: Any, symbol: str, timeout: float = 180.0) -> None:
        """Return when every event of a symbol is in some digest of a CQ."""
        wanted = {sent.number for sent in self.of(symbol)}

        def came() -> bool:
            return wanted <= set(numbers(digests(self._lab, created)))

        self._lab.results.until(came, f"digest of all {symbol}", timeout)

    def check(self, created: Any, symbol: str, every_ms: int) -> None:
        """Check that every event is in exactly one digest, and in the right digest.

        If the event was published before the tick, the right digest is the first one whose tick is later than the
        event's time. The first digest of a CQ also has events with times before the beginning of the digest.
        """
        first_tick = _ms(created["trigger"]["next_at"])
        by_number = {sent.number: sent for sent in self.of(symbol)}
        came: dict[int, int] = {}
        for digest in digests(self._lab, created):
            tick, row = tick_of(digest), digest.row
            assert tick == _ms(row["to"])
            for number in numbers([digest]):
                assert number not in came, f"event {number} is in the digests {came[number]} and {tick}"
                came[number] = tick
                sent = by_number[number]
                assert sent.time_ms < tick, f"{sent} is in the digest of {tick}"
                if tick > first_tick and sent.acknowledged_ms <= sent.time_ms + _until(sent.time_ms, tick, every_ms):
                    # The ticks that a gateway has missed have a single digest.
                    assert (tick - _ms(row["from"])) % every_ms == 0
                    assert _ms(row["from"]) <= sent.time_ms, f"{sent} is only in the digest of {tick}"
        assert came.keys() == by_number.keys(), f"missing {sorted(by_number.keys() - came.keys())[:5]}"


def _until(time_ms: int, tick_ms: int, every_ms: int) -> int:
    """Return the milliseconds from an event to its first tick."""
    return (tick_ms - time_ms - 1) % every_ms + 1


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def numbers(found: Iterable[Result]) -> list[int]:
    """Return the numbers of the events in digests."""
    return [row["qty"] for digest in found for row in digest.row["rows"]]


def digests(lab: Lab, created: Any) -> list[Result]:
    """Return a CQ's digest records so far, each once."""
    return [one for one in lab.results.of(created["destination"]) if one.kind == "cq.digest"]
