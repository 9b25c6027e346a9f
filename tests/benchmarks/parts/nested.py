"""CPU of a worker with very many CQs on parts of nested values and of texts, and of decoding such records."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream, StreamColumn
from tests.benchmarks.material.calls import FLAT, NESTED, VARIANT, flat_record, nested_record
from tests.benchmarks.material.market import as_source
from tests.benchmarks.material.tables import Contents
from tests.benchmarks.parts.in_process import Spent, Worker
from tests.benchmarks.report import Report

__all__ = ["add_options", "main"]

_NEEDLE = "order {:06d} has"
_KINDS = {
    "payload.user.id = ?": ("payload.user.id = 1", None, NESTED),
    "variant_get(payload, '$.user.id', 'BIGINT') = ?": (
        "variant_get(payload, '$.user.id', 'BIGINT') = 1",
        None,
        VARIANT,
    ),
    "array_contains(tags, ?)": ("array_contains(tags, 'a')", "t{:06d}", NESTED),
    "get_json_object(body, '$.user') = ?": ("get_json_object(body, '$.user') = 'a'", "u{:06d}", NESTED),
    "payload.user.name ILIKE 'x%'": ("payload.user.name ILIKE 'a%'", "user {:06d} %", NESTED),
    "body LIKE '%needle%'": ("body LIKE '%a%'", f"%{_NEEDLE}%", NESTED),
}
"""By title: a WHERE, how its constants are written (None for numbers), and the columns."""
_EVENTS = 5_000
_LOOP_EVENTS = 20
_REPEATS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--nested-cqs", type=int, default=100_000, help="CQs of one kind, about one of which is met")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    numbers = np.random.default_rng(1).integers(0, options.nested_cqs, (_EVENTS, 3)).tolist()
    nested = [as_source([msgspec.json.encode(nested_record(*row)) for row in numbers])]
    flat = [as_source([msgspec.json.encode(flat_record(*row)) for row in numbers])]
    for title, (where, form, columns) in _KINDS.items():
        values = range(options.nested_cqs)
        constants = pa.array(values, pa.int64()) if form is None else pa.array([form.format(n) for n in values])
        contents = Contents(_stream(columns)).add(f"SELECT payload FROM calls WHERE {where}", {"c0": constants})
        spent = _run(Worker(contents), nested)
        report.add(f"{options.nested_cqs:,} × {title}", _micros(spent, "match"), "µs/event, matching")
        report.add(f"results of {title}", statistics.median(one.results / one.events for one in spent), "an event")
    needles = [_NEEDLE.format(number) for number in range(options.nested_cqs)]
    report.add("body LIKE '%needle%' by a loop over all needles", _loop_micros(needles, numbers), "µs/event")
    decoded = [
        _micros(_run(Worker(Contents(_stream(columns))), batches), "decode")
        for columns, batches in ((NESTED, nested), (FLAT, flat), (VARIANT, nested))
    ]
    report.add("decoding nested records", decoded[0], "µs/event")
    report.add("decoding flat ones of the same values", decoded[1], "µs/event")
    report.add("nested ÷ flat", decoded[0] / decoded[1])
    report.add("decoding nested records, the payload as VARIANT", decoded[2], "µs/event")
    report.add("payload as VARIANT ÷ as STRUCT", decoded[2] / decoded[0])
    report.write(folder)


def _loop_micros(needles: Sequence[str], numbers: Sequence[Sequence[int]]) -> float:
    """Return the costs of an event where each needle is looked for by itself."""
    bodies = [str(nested_record(*row)["body"]) for row in numbers[:_LOOP_EVENTS]]
    began = time.process_time()
    found = sum(needle in body for body in bodies for needle in needles)
    assert found == len(bodies)
    return (time.process_time() - began) * 1e6 / len(bodies)


def _run(worker: Worker, batches: Sequence[pa.RecordBatch]) -> list[Spent]:
    worker.run(batches)
    return [worker.run(batches) for _ in range(_REPEATS)]


def _micros(spent: list[Spent], step: str) -> float:
    return statistics.median(one.micros[step] for one in spent)


def _stream(columns: dict[str, str]) -> Stream:
    declared = tuple(StreamColumn(*column) for column in columns.items())
    return Stream("s_nested", "calls", declared, "calls", "json", {"0": 0}, "2026-01-01T00:00:00Z")
