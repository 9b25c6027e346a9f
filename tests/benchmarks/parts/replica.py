"""A table in a worker: its load from Kafka, look-ups, bytes a row, and the costs of a change."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from confluent_kafka import Producer

from grouping.model.catalog import StreamColumn
from grouping.model.table import Table
from spark_jobs.engine.operators.lookup_join.replica import Replica
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.runtime.kafka.table_log import TableLog
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

_TOPIC = "profiles"
_INDUSTRIES = 1_000
_EVENTS = 100_000
_ROUNDS = 5
_COLUMNS = (StreamColumn("symbol", "STRING"), StreamColumn("industry", "STRING"), StreamColumn("beta", "DOUBLE"))
_TABLE = Table("t_1", "profiles", _COLUMNS, ("symbol",), _TOPIC, "json", "")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--table-rows", type=int, default=200_000, help="rows of the table")
    parser.add_argument("--table-changes", type=int, default=200, help="times that it changes")
    parser.add_argument("--changed-rows", type=int, default=100, help="rows that are set each time")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    rows, rng = options.table_rows, np.random.default_rng(1)
    report = Report(options.command)
    with open_ground() as ground:
        ground.make_topic(_TOPIC, 2, cleanup_policy="compact")
        producer = Producer(
            {
                "bootstrap.servers": ground.settings.kafka.bootstrap,
                "linger.ms": 5,
                "queue.buffering.max.messages": 2_000_000,
                "compression.type": "lz4",
            }
        )
        _publish(producer, rng.permutation(rows))
        log = TableLog(ground.settings)
        replica = Replica(_TABLE, log, ground.settings)
        view = _load(report, ground, log, replica)
        _look_ups(report, view, rng, "")
        report.add("bytes a row, two indexes", view.nbytes / rows, "B", "<= 80")
        _changes(report, producer, log, replica, rng, options)
        view = replica.at(log.ends([_TOPIC])[_TOPIC])
        _look_ups(report, view, rng, ", after changes")
        report.add("bytes a row, after changes", view.nbytes / rows, "B", "<= 80")
        log.close()
    report.write(folder)


def _publish(producer: Producer, numbers: np.ndarray) -> None:
    """Set the rows of some numbers."""
    for number in numbers.tolist():
        row = {"symbol": _symbol(number), "industry": f"industry {number % _INDUSTRIES}", "beta": number / 7}
        producer.produce(_TOPIC, json.dumps(row).encode(), _symbol(number).encode(), partition=number % 2)
        producer.poll(0)
    producer.flush()


def _symbol(number: int) -> str:
    return f"S{number:07d}"


def _load(report: Report, ground: Ground, log: TableLog, replica: Replica) -> TableView:
    """Load twice: a worker's first load brings modules and memory pools along, which are not the rows'."""
    pin = log.ends([_TOPIC])[_TOPIC]
    Replica(msgspec.structs.replace(_TABLE), log, ground.settings).at({each: end // 10 for each, end in pin.items()})
    began, spent = time.perf_counter(), time.process_time()
    view = replica.at(pin)
    report.add("load, CPU", (time.process_time() - spent) / view.count * 1e6, "µs a row", "<= 6")
    report.add("load", (time.perf_counter() - began) / view.count * 1e6, "µs a row")
    return view


def _look_ups(report: Report, view: TableView, rng: np.random.Generator, when: str) -> None:
    known = pa.array([_symbol(number) for number in rng.integers(0, view.count, _EVENTS).tolist()])
    absent = pa.array([f"X{number}" for number in rng.integers(0, view.count, _EVENTS).tolist()])
    industries = pa.array([f"industry {number}" for number in rng.integers(0, _INDUSTRIES, _INDUSTRIES).tolist()])
    _, row = view.find(("symbol",), [known])
    pairs = view.find(("industry",), [industries])[0].size
    by_industry = _micros(lambda: view.find(("industry",), [industries])) / pairs
    report.add(f"look-up by key{when}", _micros(lambda: view.find(("symbol",), [known])) / _EVENTS, "µs", "<= 0.3")
    report.add(f"look-up of what is not there{when}", _micros(lambda: view.find(("symbol",), [absent])) / _EVENTS, "µs")
    report.add(f"look-up by industry{when}", by_industry, "µs a pair")
    report.add(f"a text of a row{when}", _micros(lambda: view.take("industry", row)) / _EVENTS, "µs")
    report.add(f"its code in a dictionary{when}", _micros(lambda: view.encoded("industry", row)) / _EVENTS, "µs")


def _micros(call: Callable[[], object]) -> float:
    """Return the least CPU time of some calls, µs."""
    taken = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return min(taken) * 1e6


def _changes(
    report: Report,
    producer: Producer,
    log: TableLog,
    replica: Replica,
    rng: np.random.Generator,
    options: argparse.Namespace,
) -> None:
    """Change some rows again and again, and see each change: by CPU time and as a reader sees it."""
    cpu, seen = [], []
    probe = pa.array([_symbol(number) for number in range(1_000)])
    for _ in range(options.table_changes):
        _publish(producer, rng.integers(0, options.table_rows, options.changed_rows))
        began, spent = time.perf_counter(), time.process_time()
        pin = log.ends([_TOPIC])[_TOPIC]
        view = replica.at(pin)
        view.find(("symbol",), [probe])
        view.find(("industry",), [pa.array(["industry 1"])])
        seen.append((time.perf_counter() - began) * 1e3)
        cpu.append((time.process_time() - spent) * 1e3)
        replica.forget_before({partition: max(0, end - 1_000) for partition, end in pin.items()})
    for name, taken in (("change, acknowledged to seen", seen), ("change, CPU of the worker", cpu)):
        report.add(f"{name}, p50", float(np.percentile(taken, 50)), "ms")
        report.add(f"{name}, p99", float(np.percentile(taken, 99)), "ms", "<= 1000" if taken is seen else "<= 100")
        report.add(f"{name}, most", max(taken), "ms")
