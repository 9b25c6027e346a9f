"""Aggregates at ticks: counting beside storing nothing, and a tick at which a million HAVINGs are decided."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import psutil
import pyarrow as pa

from gateway.metrics import DIGESTS
from gateway.model.trigger_spec import TriggerSpec
from gateway.service import collect_seldom
from grouping.model.catalog import Stream, StreamColumn
from grouping.model.panes import pack_bounds
from spark_jobs.runtime.worker.worker import Evaluation
from tests.aggregate_desk import VENUES, GroupDesk
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, in_turns, report_ratio, report_sides
from tests.benchmarks.rates.pipeline import Run, through
from tests.benchmarks.report import Figure, Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

_SELECT = (
    "SELECT venue, sum(volume) AS total FROM quotes WHERE symbol = 'S00000' GROUP BY venue HAVING sum(volume) > 10"
)
_COUNTED, _NOTHING = "counted for a tick", "storing nothing"
_MINUTE = 60_000
_NOW = 1_800_000_000_000
_ROUNDS = 3
_MATCHED_EVERY = 5
"""The share of stores with matches at the tick: one in this many."""
_PAUSE_MS = 50
_WAITING_STORES = 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--tick-cqs", type=int, default=100_000, help="CQs with a HAVING of their own")
    parser.add_argument("--tick-symbols", type=int, default=10_000, help="symbols: each has a store of its own")
    parser.add_argument("--tick-batches", type=int, default=300, help="micro-batches of a second that wait for ticks")
    parser.add_argument("--tick-events", type=int, default=1_000_000, help="events of one run, all of them counted")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_ground() as ground:
        runs = _rates(ground, options.tick_symbols, options.tick_events)
    report_sides(report, runs)
    report_ratio(report, runs, _COUNTED, _NOTHING, ">= 0.7")
    report.figures += _alone(_tick, options.tick_cqs, options.tick_symbols)
    minutes, hours = (_alone(_waiting, every_ms, options.tick_batches) for every_ms in (_MINUTE, 60 * _MINUTE))
    report.figures += [
        Figure("gateway memory, ticks of one minute", minutes, "MB"),
        Figure("gateway memory, ticks of one hour", hours, "MB"),
        Figure("one hour ÷ one minute", hours / minutes, "", "<= 1.2"),
    ]
    report.write(folder)


_Result = TypeVar("_Result")


def _alone(part: Callable[..., _Result], *args: int) -> _Result:
    """Run a part in a process of its own, so that memory is the part's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(part, *args).result()


def _stream(stream_id: str) -> Stream:
    kinds = {"symbol": "STRING", "venue": "STRING", "volume": "BIGINT"}
    columns = tuple(StreamColumn(name, kind) for name, kind in kinds.items())
    offsets = {str(partition): 0 for partition in range(quotes.PARTITIONS)}
    return Stream(stream_id, "quotes", columns, quotes.TOPIC, "json", offsets, "2026-01-01T00:00:00Z")


def _events(count: int, symbols: int) -> Iterator[tuple[str, str]]:
    random = np.random.default_rng(1)
    numbers, venues = random.integers(0, symbols, count).tolist(), random.integers(0, VENUES, count).tolist()
    for row, (number, venue) in enumerate(zip(numbers, venues, strict=True)):
        name = quotes.symbol(number)
        yield name, f'{{"symbol": "{name}", "venue": "V{venue}", "volume": {row}, "price": {number / 7:.4f}}}'


def _rates(ground: Ground, symbols: int, events: int) -> dict[str, list[Run]]:
    """Evaluate the same events for queries that count all of them, and for as many that match none."""
    settings = ground.settings
    ground.make_topic(quotes.TOPIC, quotes.PARTITIONS)
    partitions = settings.results.partitions
    ground.make_topic(settings.topics.pending, partitions, retention_bytes="50000000", segment_bytes="25000000")
    quotes.send(settings.kafka.bootstrap, quotes.TOPIC, _events(events, symbols))
    tables, sides = Tables(settings), {}
    for name, begin in ((_NOTHING, "T"), (_COUNTED, "S")):
        stream = _stream(f"s_{begin}")
        names = pa.array([f"{begin}{number:05d}" for number in range(symbols)])
        tables.put(Contents(stream).add(_SELECT, {"c0": names}, "pending", pack_bounds([(_MINUTE, 0)])))
        sides[name] = through(stream, Evaluation.of(stream, settings))
    with bench_session(settings) as spark:
        return dict(in_turns(spark, sides, events, _ROUNDS, settings))


def _tick(count: int, symbols: int) -> list[Figure]:
    """Every CQ is due at the same instant, and a fifth of the stores have counted something."""
    with open_ground() as ground:
        GroupDesk.symbols = symbols
        GroupDesk.half = max(count // symbols // 2, 1)
        desk = GroupDesk(ground.settings, _NOW)
        trigger = TriggerSpec(_MINUTE, 0)
        collect_seldom()
        desk.create([trigger] * count)
        numbers = range(0, symbols, _MATCHED_EVERY)
        desk.match(desk.stores(numbers, trigger), [_NOW + 1] * len(numbers))
        taken_in = desk.timers.taken_in
        while desk.timers.busy or desk.timers.taken_in < taken_in + 3:  # noqa: PLR2004
            desk.timers.step()
            desk.now_ms += 10
        before, started, longest = float(DIGESTS._value.get()), time.monotonic(), 0.0  # noqa: SLF001
        processor = time.process_time()
        due = count // symbols * len(numbers)
        wanted = GroupDesk.half * len(numbers)
        desk.now_ms = _NOW - _NOW % _MINUTE + _MINUTE
        while float(DIGESTS._value.get()) - before < wanted:  # noqa: SLF001
            step = time.monotonic()
            desk.timers.step()
            longest = max(longest, time.monotonic() - step)
            if not desk.timers.busy:
                time.sleep(_PAUSE_MS / 1000)
                desk.now_ms += _PAUSE_MS
        taken, processor = time.monotonic() - started, time.process_time() - processor
        return [
            Figure("destinations due at one instant", due, "destinations"),
            Figure("digests, of those whose HAVING is met", wanted, "digests"),
            Figure("all digests out in", taken, "s", "< 30"),
            Figure("of these the gateway's processor", processor, "s"),
            Figure("longest time that commands wait", longest, "s", "< 1"),
            Figure("gateway memory", psutil.Process().memory_info().rss / 1e6, "MB"),
        ]


def _waiting(every_ms: int, batches: int) -> float:
    """Return the gateway's memory in MB after micro-batches in each of which each store has something."""
    with open_ground() as ground:
        GroupDesk.symbols = _WAITING_STORES
        desk = GroupDesk(ground.settings, _NOW)
        trigger, GroupDesk.pane = TriggerSpec(every_ms, 0), (every_ms, 0)
        desk.create([trigger] * _WAITING_STORES)
        stores = desk.stores(range(_WAITING_STORES), trigger)
        for _ in range(batches):
            desk.match(stores, [desk.now_ms] * len(stores))
            desk.now_ms += 1000
            taken_in = desk.timers.taken_in
            while desk.timers.busy or desk.timers.taken_in == taken_in:
                desk.timers.step()
                desk.now_ms += _PAUSE_MS
        return psutil.Process().memory_info().rss / 1e6
