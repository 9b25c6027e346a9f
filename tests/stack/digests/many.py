"""CQs of all kinds of digests with the same ticks, so many that Spark makes their digests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.stack.digests.ticks import digests, now_ms, tick_of
from tests.stack.lab import Lab
from tests.stack.server import SPARK_FROM

__all__ = ["Many"]

_EVERY_MS = 2000
_LEAD_MS = 4000
_CLAUSES = f"START '2026-01-01T00:00:00Z' EVERY '{_EVERY_MS // 1000} seconds'"
_SYMBOLS = SPARK_FROM + 10
_KINDS = {"latest": "DIGEST LATEST BY symbol", "top": "DIGEST TOP 3 BY price", "count": "DIGEST COUNT"}
_EACH = 4


class Many:
    """A stream, a CQ for each of its symbols, and a CQ for each kind of digest."""

    count = _EACH * _SYMBOLS
    """The number of events that are published at once."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._source = source = lab.stream("symbol STRING, qty INT, price DECIMAL(9,2), pad STRING", partitions=2)
        self._published = 0
        self._lead_ms = _LEAD_MS
        select = f"SELECT symbol, qty, price FROM {source.name} WHERE"
        wanted = {f"s{n}": f"{select} symbol = 'S{n}' DO PUBLISH SHARED {_CLAUSES}" for n in range(_SYMBOLS)}
        wanted |= {name: f"{select} qty >= 0 DO PUBLISH SHARED {kind} {_CLAUSES}" for name, kind in _KINDS.items()}
        wanted["large"] = f"SELECT qty, pad FROM {source.name} WHERE qty >= 0 DO PUBLISH SHARED {_CLAUSES}"
        wanted["empty"] = f"{select} qty < 0 DO PUBLISH SHARED EVEN IF EMPTY {_CLAUSES}"
        wanted["silent"] = f"{select} qty < 0 DO PUBLISH DEDICATED {_CLAUSES}"
        owner = lab.subscriber()
        sent = {name: lab.client.send(f"CREATE CQ {name} AS {text}", owner) for name, text in wanted.items()}
        self.made: dict[str, Any] = {}
        for name, command_id in sent.items():
            reply = lab.client.reply(command_id)
            assert reply.code == "ok", reply.fields
            self.made[name] = lab.cqs[owner, name] = reply.result
            lab.results.follow(reply.result["destination"])

    def publish(self, before_tick: Callable[[], object] = lambda: None) -> tuple[list[dict[str, Any]], int]:
        """Publish some events of each symbol, and return them once they are evaluated, with their tick.

        The events' times are in the future, so that the tick is still to come. If a machine is too slow for this, the
        events are published again with later times.

        Args:
            before_tick: Is called when the events are evaluated; must return before the tick.
        """
        while True:
            rows, tick_ms = self._publish()
            before_tick()
            if now_ms() < tick_ms:
                return rows, tick_ms
            self._lead_ms *= 2
            self._lab.results.until(lambda: self._counted() == self._published, "digests of what came late")

    def _publish(self) -> tuple[list[dict[str, Any]], int]:
        tick_ms = (now_ms() + self._lead_ms) // _EVERY_MS * _EVERY_MS + _EVERY_MS
        first = self._published
        self._published += self.count
        rows = [
            {"symbol": f"S{number % _SYMBOLS}", "qty": first + number, "price": str((number * 7919) % 1009)}
            for number in range(self.count)
        ]
        bodies = [json.dumps(row | {"pad": "x" * 6000}).encode() for row in rows]
        places = [(body, None, number % 2, tick_ms - 1) for number, body in enumerate(bodies)]
        self._lab.client.publish_all(self._source.topic, places)
        self._source.fence()
        return rows, tick_ms

    def _counted(self) -> int:
        return sum(one.row["count"] for one in digests(self._lab, self.made["count"]))

    def check(self, rows: list[dict[str, Any]], tick_ms: int, timeout: float = 180.0) -> None:
        """Wait for all digests of a tick, and compare them with the expected digests of each CQ."""

        def of(name: str) -> list[Any]:
            found = digests(self._lab, self.made[name])
            if name == "empty":  # after a death of the gateway, one digest may stand for two ticks
                return [one.row for one in found if tick_of(one) >= tick_ms][:1]
            return [one.row for one in found if tick_of(one) == tick_ms]

        def complete(name: str) -> bool:
            parts = of(name)
            return name == "silent" or (bool(parts) and len(parts) == parts[0]["parts"])

        self._lab.results.until(lambda: all(map(complete, self.made)), f"all digests of {tick_ms}", timeout)
        for n in range(_SYMBOLS):
            [digest] = of(f"s{n}")
            own = [row["qty"] for row in rows if row["symbol"] == f"S{n}"]
            assert sorted(row["qty"] for row in digest["rows"]) == own
            assert digest["count"] == _EACH
        [latest], [top], [count], [empty] = (of(name) for name in ("latest", "top", "count", "empty"))
        assert len(latest["rows"]) == _SYMBOLS
        best = sorted(rows, key=lambda row: -int(row["price"]))[:3]
        assert [row["qty"] for row in top["rows"]] == [row["qty"] for row in best]
        assert (count["count"], count["rows"], empty["count"], empty["rows"]) == (len(rows), [], 0, [])
        large = of("large")
        assert [part["part"] for part in large] == list(range(1, large[0]["parts"] + 1))
        assert len(large) > 1
        assert sorted(row["qty"] for part in large for row in part["rows"]) == [row["qty"] for row in rows]
        assert digests(self._lab, self.made["silent"]) == []
