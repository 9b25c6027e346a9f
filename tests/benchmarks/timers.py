"""Timers: all CQs due at one instant, periods of all lengths under a steady flow, and one EXPIRE for all."""

from __future__ import annotations

import argparse
import math
import random
import resource
import threading
import time
from pathlib import Path

from gateway.metrics import DIGESTS
from gateway.records import TriggerSpec
from tests.benchmarks.ground import open_ground
from tests.benchmarks.report import Report
from tests.benchmarks.timer_desk import Desk

__all__ = ["add_options", "main"]

_HOUR = 3_600_000
_PENDING_EVERY = 5
"""At one instant, one CQ of so many has something pending."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--timers", type=int, default=1_000_000, help="timer-based CQs, and CQs with one EXPIRE")
    parser.add_argument("--timer-seconds", type=float, default=60.0, help="length of the steady flow")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report("timers")
    _at_once(options.timers, report)
    _steady(options.timers, options.timer_seconds, report)
    _expire(options.timers, report)
    report.write(folder, vars(options))


def _rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _written() -> float:
    return float(DIGESTS._value.get())  # noqa: SLF001  # the client library has no public way to read a counter


def _at_once(count: int, report: Report) -> None:
    """Every CQ is due at the same instant, a fifth of them with something to send."""
    with open_ground() as ground:
        now_ms = 1_800_000_000_000
        desk = Desk(ground.settings, now_ms)
        trigger = TriggerSpec(_HOUR, now_ms % _HOUR)
        desk.create([trigger] * count)
        numbers = range(0, count, _PENDING_EVERY)
        desk.match(desk.stores(numbers, trigger), [now_ms + 1] * len(numbers))
        started = time.monotonic()
        _settle(desk, now_ms + 1000)
        report.add("matches taken in, timers armed", len(numbers) / (time.monotonic() - started), "matches/s")
        before, started, longest = _written(), time.monotonic(), 0.0
        desk.now_ms = now_ms + _HOUR
        while _written() - before < len(numbers):
            step = time.monotonic()
            desk.timers.step()
            longest = max(longest, time.monotonic() - step)
            desk.now_ms += not desk.timers.busy and 100
        report.add("all due at once, digests out in", time.monotonic() - started, "s", "< 30")
        report.add("longest time that commands wait", longest, "s")
        report.add("gateway memory, at most", _rss_mb(), "MB", "< 1000")


def _settle(desk: Desk, until_ms: int) -> None:
    """Let time go on to an instant, which nothing is due before, until all matches are taken in."""
    taken_in = desk.timers.taken_in
    while desk.now_ms < until_ms or desk.timers.busy or desk.timers.taken_in < taken_in + 3:
        desk.timers.step()
        desk.now_ms += 100


def _steady(count: int, seconds: float, report: Report) -> None:
    """Periods log-uniform from a minute to thirty days, phases as CREATE gives them, 1,000 matches a second."""
    rng = random.Random(1)
    with open_ground() as ground:
        desk = Desk(ground.settings, _now_ms())
        periods = [round(math.exp(rng.uniform(math.log(60_000), math.log(30 * 24 * _HOUR)))) for _ in range(count)]
        triggers = [TriggerSpec(every, rng.randrange(every)) for every in periods]
        desk.create(triggers)
        stores = desk.stores(range(count), triggers[0])
        stop = threading.Event()

        def flow() -> None:
            while not stop.wait(0.1):
                some = rng.choices(stores, k=100)
                desk.match(some, [_now_ms()] * len(some))

        feeder = threading.Thread(target=flow)
        feeder.start()
        lateness: list[float] = []
        end, cpu = time.monotonic() + seconds, time.process_time()
        while time.monotonic() < end:
            desk.now_ms = _now_ms()
            before = _written()
            desk.timers.step()
            if _written() > before:
                lateness += [(_now_ms() - tick) / 1000 for tick in desk.timers.fired]
            if not desk.timers.busy:
                time.sleep(0.02)
        stop.set()
        feeder.join()
        lateness.sort()
        report.add("digests a second in the flow", len(lateness) / seconds, "digests/s")
        report.add("lateness, p99", lateness[len(lateness) * 99 // 100], "s", "< 1")
        report.add("processor, with the flow's own", (time.process_time() - cpu) / seconds, "cores")
        report.add("gateway memory in the flow, at most", _rss_mb(), "MB", "< 1000")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _expire(count: int, report: Report) -> None:
    """CQs with one EXPIRE: gone with their ends in units of bounded work."""
    with open_ground() as ground:
        now_ms = 1_800_000_000_000
        desk = Desk(ground.settings, now_ms)
        desk.create([TriggerSpec()] * count, now_ms + _HOUR)
        desk.now_ms = now_ms + _HOUR + 1
        desk.timers.step()
        started, longest, idle = time.monotonic(), 0.0, 0
        while idle < 3:  # noqa: PLR2004  # probes may be under way
            step = time.monotonic()
            desk.timers.step()
            idle = 0 if desk.look_after() else idle + 1
            longest = max(longest, time.monotonic() - step)
            desk.now_ms += 100
        report.add("all expire at once, gone in", time.monotonic() - started, "s", "< 60")
        report.add("longest time that commands wait meanwhile", longest, "s")
        report.add("left over", desk.working.redis.hlen(desk.working.key("cqs", "bench")), "CQs", "0")
