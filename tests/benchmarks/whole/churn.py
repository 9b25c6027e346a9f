"""CREATE, OR REPLACE and DROP at a steady rate among many CQs while events flow: replies, events per second, memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count, islice
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from redis import Redis

from gateway.sdk.outbox import CommandUnderWay
from gateway.sdk.session import Session
from gateway.sdk.statements import create_cq, quoted
from tests.benchmarks.material import quotes
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product
from tests.benchmarks.whole.registration import redis_bytes

__all__ = ["add_options", "main"]

_LAG = 300
"""Live CQs of the churn."""
_BURST_SECONDS = 0.02
_SETTLED_SECONDS = 30.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--among", type=int, default=100_000, help="CQs that stay")
    parser.add_argument("--churn-rate", type=int, default=1_000, help="commands per second")
    parser.add_argument("--churn-events", type=int, default=2_000_000, help="events of each round")
    parser.add_argument("--churn-rounds", type=int, default=3, help="rounds with and without churn, in turns")
    parser.add_argument("--churn-warm-seconds", type=float, default=20.0, help="of churn before all rounds")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        stream = client.create_stream(quotes.TOPIC, quotes.COLUMNS, partitions=quotes.PARTITIONS)["id"]
        client.create_all(quotes.queries("q", options.among), timeout=600)
        redis = Redis.from_url(product.redis_url)
        # The beginning is not counted: the JVMs compile code met for the first time, for a minute and more.
        with closing(Session(product.bootstrap, "churn")) as other:
            churn = _Churn(other, options.churn_rate)
            warm = time.monotonic() + options.churn_warm_seconds
            while time.monotonic() < warm:
                _evaluated(product, redis, stream, options.churn_events)
            churn.end()
        _settled(product, redis, stream)
        before = _memory(product, redis, stream)
        quiet, busy, waits = [], [], []
        cpu: dict[str, dict[str, float]] = {"quiet": {}, "with churn": {}}
        for _ in range(options.churn_rounds):
            spent = _cpu(product)
            quiet.append(_evaluated(product, redis, stream, options.churn_events))
            _add(cpu["quiet"], spent, _cpu(product))
            with closing(Session(product.bootstrap, "churn")) as other:
                churn = _Churn(other, options.churn_rate)
                spent = _cpu(product)
                busy.append(_evaluated(product, redis, stream, options.churn_events))
                _add(cpu["with churn"], spent, _cpu(product))
                waits += churn.end()
        after = _settled(product, redis, stream)
    report.add("events/s, quiet", median(quiet), "events/s")
    report.add("events/s, with churn", median(busy), "events/s")
    ratios = [with_churn / without for with_churn, without in zip(busy, quiet, strict=True)]
    report.add("with churn ÷ quiet, median of rounds", median(ratios), "", ">= 0.9")
    report.add("commands", len(waits))
    for percent, target in ((50, ""), (99, "<= 1000"), (100, "")):
        report.add(f"command → reply, p{percent}", float(np.percentile(waits, percent)) * 1000, "ms", target)
    for when, roles in cpu.items():
        for role, seconds in roles.items():
            each = seconds / options.churn_rounds / options.churn_events * 1e6
            report.add(f"CPU of {role}, {when}", each, "µs/event")
    for name, value in before.items():
        report.add(f"{name}, before", value)
        report.add(f"{name}, after", after[name])
    report.write(folder)


def _evaluated(product: Product, redis: Redis, stream: str, events: int) -> float:
    """Publish events and return how many were evaluated per second, from the first one's publishing."""
    start = _committed(redis, stream)
    started = time.monotonic()
    code = f"from {quotes.__name__} import publish; publish({product.bootstrap!r}, {events})"
    subprocess.run([sys.executable, "-c", code], check=True)
    while _committed(redis, stream) < start + events:
        time.sleep(0.02)
    return events / (time.monotonic() - started)


def _add(total: dict[str, float], before: dict[str, float], after: dict[str, float]) -> None:
    for role, seconds in after.items():
        total[role] = total.get(role, 0.0) + seconds - before[role]


def _cpu(product: Product) -> dict[str, float]:
    """Return the CPU seconds that each role has taken so far, its children included."""
    spent = {"the commands' client": time.process_time()}
    for role in ("kafka", "redis", "gateway", "evaluator"):
        spent[role] = 0.0
        process = psutil.Process(product.pids[role])
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                spent[role] += sum(each.cpu_times()[:2])
    return spent


def _committed(redis: Redis, stream: str) -> int:
    body = redis.get(f"cq:committed:{stream}")
    return sum(json.loads(body)["offsets"].values()) if body else 0


def _memory(product: Product, redis: Redis, stream: str) -> dict[str, float]:
    return {
        "Redis, MB": redis_bytes(redis) / 1e6,
        "segments": redis.hlen(f"cq:segments:{stream}"),
        "largest worker, MB": max((worker.memory_info().rss for worker in product.workers()), default=0) / 1e6,
        "destinations": redis.hlen("cq:destinations"),
    }


def _settled(product: Product, redis: Redis, stream: str) -> dict[str, float]:
    """Return the memory when nothing is left to end and to merge; events go on, a few at a time."""
    deadline = time.monotonic() + _SETTLED_SECONDS
    while redis.hlen("cq:leaving") or redis.hlen("cq:ends") or time.monotonic() < deadline - _SETTLED_SECONDS / 2:
        _evaluated(product, redis, stream, 1_000)
        if time.monotonic() > deadline:
            break
    return _memory(product, redis, stream)


class _Churn:
    """Sends commands at a steady rate, in a thread of its own, and notes how long each waits for its reply."""

    def __init__(self, session: Session, rate: int) -> None:
        self._exchange = session.exchange
        self._rate = rate
        self._waits: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> list[float]:
        """Drop the remaining CQs, and return the waits in seconds."""
        self._stop.set()
        self._thread.join()
        return self._waits

    def _run(self) -> None:
        under_way: deque[tuple[float, CommandUnderWay]] = deque()
        texts, begun, sent = _commands(), time.monotonic(), 0
        while not self._stop.is_set():
            due = int((time.monotonic() - begun) * self._rate)
            self._send(under_way, islice(texts, due - sent))
            sent = due
            self._step(under_way, _BURST_SECONDS)
        self._send(under_way, islice(texts, -sent % 3))
        self._send(under_way, (f"DROP CQ {quoted(f'c{number}')}" for number in _left(sent)))
        while under_way:
            self._step(under_way, 0.1)

    def _send(self, under_way: deque[tuple[float, CommandUnderWay]], texts: Iterator[str]) -> None:
        at = time.monotonic()
        under_way.extend((at, pending) for pending in self._exchange.submit(list(texts), timeout=60))

    def _step(self, under_way: deque[tuple[float, CommandUnderWay]], seconds: float) -> None:
        self._exchange.step(seconds)
        now = time.monotonic()
        while under_way and under_way[0][1].done:
            at, pending = under_way.popleft()
            outcome = pending.outcome()
            if isinstance(outcome, Exception):
                raise outcome
            self._waits.append(now - at)


def _commands() -> Iterator[str]:
    """Yield CREATE, OR REPLACE and DROP in turns; none of the CQs matches an event."""
    for number in count():
        select = f"SELECT symbol, price FROM quotes WHERE symbol = '{quotes.symbol(number % quotes.SYMBOLS)}'"
        yield create_cq(f"c{number}", f"{select} AND price < {-number - 1}")
        yield create_cq(f"c{number}", f"{select} AND price < {-number - 0.5}", replace=True)
        yield f"DROP CQ {quoted(f'c{number - _LAG}')}" if number >= _LAG else "SHOW CQS LIMIT 1"


def _left(sent: int) -> range:
    """Return the numbers of the CQs that are live after `sent` commands, rounded up to whole turns."""
    turns = -(-sent // 3)
    return range(max(turns - _LAG, 0), turns)
