"""Timers: all CQs due at the same instant, periods of all lengths under a steady flow, and a common EXPIRE."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import psutil

from gateway.kafka import LogReader
from gateway.metrics import DIGESTS
from gateway.model.trigger_spec import TriggerSpec
from gateway.service import collect_seldom
from tests.benchmarks.report import Figure, Report
from tests.ground import open_ground
from tests.timer_desk import Desk

__all__ = ["add_options", "main"]

_HOUR = 3_600_000
_NOW = 1_800_000_000_000
_PENDING_EVERY = 5
"""At one instant, one CQ in this many has something pending."""
_IDLE_SECONDS = 10.0
_PAUSE_MS = 50
"""Between two steps of a gateway that has nothing to do."""
_UNIT = 5000
"""CQs that are put there at once."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--timers", type=int, default=100_000, help="timer-based CQs, and CQs with one EXPIRE")
    parser.add_argument("--timer-seconds", type=float, default=60.0, help="length of the steady flow")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    report.figures += _alone(_at_once, options.timers, 0)
    report.figures += _alone(_at_once, options.timers, 1)
    report.figures += _alone(_steady, options.timers, options.timer_seconds)
    report.figures += _alone(_expire, options.timers)
    report.write(folder)


def _alone(part: Callable[..., list[Figure]], *arguments: float) -> list[Figure]:
    """Measure in a process of its own, so that memory is the part's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(part, *arguments).result()


def _rss_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


def _written() -> float:
    return float(DIGESTS._value.get())  # noqa: SLF001  # the client library has no public way to read a counter


def _at_once(count: int, spark_from: int) -> list[Figure]:
    """Every CQ is due at the same instant, a fifth of them with something to send: by Spark, or by the gateway."""
    with open_ground(evaluator=bool(spark_from)) as ground:
        timers = ground.settings.timers.model_copy(update={"spark_from": spark_from})
        desk = Desk(ground.settings.model_copy(update={"timers": timers}), _NOW)
        trigger = TriggerSpec(_HOUR, _NOW % _HOUR)
        collect_seldom()
        desk.create([trigger] * count)
        numbers = range(0, count, _PENDING_EVERY)
        desk.match(desk.stores(numbers, trigger), [_NOW + 1] * len(numbers))
        started = time.monotonic()
        _settle(desk, _NOW + 1000)
        taken = time.monotonic() - started
        before, started, spent, longest = _written(), time.time(), time.process_time(), 0.0
        desk.now_ms = _NOW + _HOUR
        while _written() - before < len(numbers):
            step = time.monotonic()
            desk.timers.step()
            longest = max(longest, time.monotonic() - step)
            if not desk.timers.busy:
                time.sleep(_PAUSE_MS / 1000)
                desk.now_ms += _PAUSE_MS
        by = "Spark" if spark_from else "the gateway"
        return [
            Figure(f"matches taken in, timers armed, by {by}", len(numbers) / taken, "matches/s"),
            Figure(f"all due at once, digests out by {by} in", _last_result(desk) - started, "s", "< 30"),
            Figure(f"the gateway done with digests by {by} in", time.time() - started, "s"),
            Figure(f"gateway's CPU a digest by {by}", (time.process_time() - spent) / len(numbers) * 1e6, "µs"),
            Figure(f"longest time that commands wait for digests by {by}", longest, "s", "< 1"),
            Figure(f"gateway memory with as many timers pending, digests by {by}", _rss_mb(), "MB", "< 1000"),
        ]


def _last_result(desk: Desk) -> float:
    """Return when the last result was written, by the broker's clock."""
    reader, topic = LogReader(desk.settings), desk.settings.topics.results
    ends = desk.topics.offsets.ends([(topic, number) for number in range(desk.settings.results.partitions)])
    last = reader.since(topic, {number: max(end - 2, 0) for (_, number), end in ends.items()})  # behind it lies a mark
    latest: int = max(record.time_ms for record in last)
    reader.close()
    return latest / 1000


def _settle(desk: Desk, until_ms: int) -> None:
    """Let time go on to an instant, which nothing is due before, until all matches are taken in."""
    taken_in = desk.timers.taken_in
    while desk.now_ms < until_ms or desk.timers.busy or desk.timers.taken_in < taken_in + 3:
        desk.timers.step()
        desk.now_ms += 100


def _steady(count: int, seconds: float) -> list[Figure]:
    """Periods log-uniform from a minute to thirty days, phases as CREATE gives them; nothing, then 1,000 matches/s."""
    with open_ground() as ground:
        desk = Desk(ground.settings, _now_ms())
        collect_seldom()
        for first in range(0, count, _UNIT):
            desk.put([(f"c{number}", number, _any_trigger(number)) for number in range(first, first + _UNIT)])
            desk.timers.step()
        idle = _serve(desk, _IDLE_SECONDS, [])
        stop = threading.Event()

        def flow() -> None:
            while not stop.wait(0.1):
                some = desk.stores((random.randrange(count) for _ in range(100)), TriggerSpec(_HOUR))
                desk.match(some, [_now_ms()] * len(some))

        feeder = threading.Thread(target=flow)
        feeder.start()
        lateness: list[float] = []
        busy = _serve(desk, seconds, lateness)
        stop.set()
        feeder.join()
        lateness.sort()
        return [
            Figure("processor with no events", idle * 100, "% of a core", "< 5"),
            Figure("digests in the flow", len(lateness) / seconds, "digests/s"),
            Figure("lateness, p99", lateness[len(lateness) * 99 // 100], "s", "< 1"),
            Figure("processor, with the flow's own", busy * 100, "% of a core"),
            Figure("gateway memory in the flow", _rss_mb(), "MB", "< 1000"),
        ]


def _any_trigger(number: int) -> TriggerSpec:
    rng = random.Random(number)
    every_ms = round(math.exp(rng.uniform(math.log(60_000), math.log(30 * 24 * _HOUR))))
    return TriggerSpec(every_ms, rng.randrange(every_ms))


def _serve(desk: Desk, seconds: float, lateness: list[float]) -> float:
    """Run the timers in real time as the gateway's loop does, and return the cores that it took."""
    begun, spent = time.monotonic(), time.process_time()
    look_at = 0.0
    while time.monotonic() < begun + seconds:
        desk.now_ms = _now_ms()
        desk.timers.step()
        lateness += [(_now_ms() - tick) / 1000 for tick in desk.timers.fired]
        if time.monotonic() >= look_at:
            desk.look_after()
            look_at = time.monotonic() + 0.25
        if not desk.timers.busy:
            time.sleep(0.05)
    return (time.process_time() - spent) / (time.monotonic() - begun)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _expire(count: int) -> list[Figure]:
    """CQs with one EXPIRE: gone with their ends in units of bounded work, the gateway alone."""
    with open_ground() as ground:
        desk = Desk(ground.settings, _NOW)
        collect_seldom()
        desk.create([TriggerSpec()] * count, _NOW + _HOUR)
        desk.now_ms = _NOW + _HOUR + 1
        desk.timers.step()
        started, spent, longest, idle = time.monotonic(), time.process_time(), 0.0, 0
        while idle < 3:  # noqa: PLR2004  # probes may be under way
            step = time.monotonic()
            desk.timers.step()
            idle = 0 if desk.look_after() else idle + 1
            longest = max(longest, time.monotonic() - step)
            desk.now_ms += 100
        left = desk.working.connection.redis.hlen(desk.working.connection.keys.cqs("bench"))
        return [
            Figure("all expire at once, gone in", time.monotonic() - started, "s", "< 60"),
            Figure("gateway's CPU a CQ that expires", (time.process_time() - spent) / count * 1e6, "µs"),
            Figure("longest time that commands wait meanwhile", longest, "s", "< 1"),
            Figure("left over", left, "CQs", "0"),
        ]
