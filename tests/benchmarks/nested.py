"""CPU of a worker with very many CQs on parts of nested values and of texts, and of decoding such records."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream, StreamColumn
from tests.benchmarks.in_process import Spent, Worker
from tests.benchmarks.market import as_source
from tests.benchmarks.report import Report
from tests.benchmarks.tables import Contents

__all__ = ["add_options", "main"]

_NESTED = {
    "body": "STRING",
    "tags": "ARRAY<STRING>",
    "attrs": "MAP<STRING, STRING>",
    "payload": "STRUCT<user: STRUCT<id: BIGINT, name: STRING>, items: ARRAY<STRUCT<sku: STRING, n: INT>>>",
}
_FLAT = {
    "body": "STRING",
    **{f"tag{n}": "STRING" for n in range(3)},
    **{f"attr{n}": "STRING" for n in range(2)},
    "id": "BIGINT",
    "name": "STRING",
    **{name: kind for n in range(3) for name, kind in ((f"sku{n}", "STRING"), (f"n{n}", "INT"))},
}
_KINDS = {
    "payload.user.id = ?": ("payload.user.id = 1", None),
    "array_contains(tags, ?)": ("array_contains(tags, 'a')", "t{:06d}"),
    "get_json_object(body, '$.user') = ?": ("get_json_object(body, '$.user') = 'a'", "u{:06d}"),
    "payload.user.name ILIKE 'x%'": ("payload.user.name ILIKE 'a%'", "user {:06d} %"),
    "body LIKE '%needle%'": ("body LIKE '%a%'", "%order {:06d} has%"),
}
"""By title: a WHERE, and how its constants are written, None for numbers."""
_EVENTS = 5_000
_REPEATS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--nested-cqs", type=int, default=100_000, help="CQs of one kind, about one of which is met")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report("nested")
    numbers = np.random.default_rng(1).integers(0, options.nested_cqs, (_EVENTS, 3)).tolist()
    nested = [as_source([msgspec.json.encode(_nested(*row)) for row in numbers])]
    flat = [as_source([msgspec.json.encode(_flat(*row)) for row in numbers])]
    for title, (where, form) in _KINDS.items():
        values = range(options.nested_cqs)
        constants = pa.array(values, pa.int64()) if form is None else pa.array([form.format(n) for n in values])
        contents = Contents(_stream(_NESTED)).add(f"SELECT payload FROM calls WHERE {where}", {"c0": constants})
        spent = _run(Worker(contents), nested)
        report.add(f"{options.nested_cqs:,} × {title}", _micros(spent, "match"), "µs/event, matching")
        report.add("  its results", statistics.median(one.results / one.events for one in spent), "an event")
    decoded = [
        _micros(_run(Worker(Contents(_stream(columns))), batches), "decode")
        for columns, batches in ((_NESTED, nested), (_FLAT, flat))
    ]
    report.add("decoding nested records", decoded[0], "µs/event")
    report.add("decoding flat ones of the same values", decoded[1], "µs/event")
    report.add("nested ÷ flat", decoded[0] / decoded[1])
    report.write(folder, vars(options))


def _run(worker: Worker, batches: Sequence[pa.RecordBatch]) -> list[Spent]:
    worker.run(batches)
    return [worker.run(batches) for _ in range(_REPEATS)]


def _micros(spent: list[Spent], step: str) -> float:
    return statistics.median(one.micros[step] for one in spent)


def _stream(columns: dict[str, str]) -> Stream:
    declared = tuple(StreamColumn(*column) for column in columns.items())
    return Stream("s_nested", "calls", declared, "calls", "json", {"0": 0}, "2026-01-01T00:00:00Z")


def _body(user: int, order: int) -> str:
    return f'{{"user": "u{user:06d}", "text": "order {order:06d} has three lines, the last of them is a note"}}'


def _nested(user: int, tag: int, order: int) -> dict[str, object]:
    return {
        "body": _body(user, order),
        "tags": ["call", f"t{tag:06d}", "eu"],
        "attrs": {"tier": "gold", "lang": "es"},
        "payload": {
            "user": {"id": user, "name": f"User {user:06d} of many"},
            "items": [{"sku": f"k{n}", "n": n} for n in range(3)],
        },
    }


def _flat(user: int, tag: int, order: int) -> dict[str, object]:
    return {
        "body": _body(user, order),
        "tag0": "call",
        "tag1": f"t{tag:06d}",
        "tag2": "eu",
        "attr0": "gold",
        "attr1": "es",
        "id": user,
        "name": f"User {user:06d} of many",
        **{name: value for n in range(3) for name, value in ((f"sku{n}", f"k{n}"), (f"n{n}", n))},
    }
