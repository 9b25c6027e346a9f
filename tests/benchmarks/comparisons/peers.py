"""The field's workloads W1 to W7, compared with a peer from the same registry: only matching, on one core.

The peer is mokaccino, a percolator in Rust. The peer takes prepared documents one at a time, and returns the numbers of
the queries. Our worker takes batches of decoded events, and returns the input of the output stage. Both find the same
matches.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
from mokaccino import Document, Percolator, Query

from grouping.model.catalog import Stream, StreamColumn
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.evaluate import matches
from spark_jobs.engine.rows.events import Events
from tests.benchmarks.comparisons import peer_churn
from tests.benchmarks.comparisons.peer_workloads import COLUMNS, WORKLOADS, Conjunct, PeerWorkload, sql
from tests.benchmarks.material.market import as_source
from tests.benchmarks.material.tables import Contents
from tests.benchmarks.parts.in_process import Worker
from tests.benchmarks.report import Report

__all__ = ["add_options", "main"]

_EVENTS = 10_000
"""Also the events of one batch."""
_CHECKED = 50
"""Events on which both sides are compared."""
_SECONDS = 1.0
"""Spent on one side at least, unless the events come to an end for the peer."""
_PEER_PAIRS = 2_000_000
"""Matches that the peer lists in one measurement at most."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--peer-queries", type=int, nargs="+", default=[1_000, 10_000], help="how many queries")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    for name, workload in WORKLOADS.items():
        for queries in sorted({min(queries, workload.most) for queries in options.peer_queries}):
            _measure(report, name, workload, queries)
    for queries in options.peer_queries:
        events = _decoded(WORKLOADS["W2"].events(queries, _EVENTS))
        peer_churn.measure(report, _stream(), events, queries)
    report.write(folder)


def _stream() -> Stream:
    columns = tuple(StreamColumn(*column) for column in COLUMNS.items())
    return Stream("s_peers", "quotes", columns, "quotes", "json", {"0": 0}, "2026-01-01T00:00:00Z")


def _measure(report: Report, name: str, workload: PeerWorkload, count: int) -> None:
    selections = list(workload.queries(Random(2), count))
    values = workload.events(count, _EVENTS)
    worker = Worker(Contents(_stream()).add_each(map(sql, selections)))
    events = _decoded(values)
    own, per_event = _own_rate(worker, events)
    at = f"{name}, {count:,} × {workload.title}"
    report.add(f"{at}: matches an event", per_event)
    report.add(f"{at}: ours", own, "events/s")
    if any(_peer_condition(conjunct) is None for conjunct in selections[0]):
        return
    peer = _percolator(selections)
    documents = [_document(value) for value in values]
    ours = list(matches(worker.snapshot, _decoded(values[:_CHECKED])))
    theirs = sum(len(peer.percolate_list(document)) for document in documents[:_CHECKED])
    assert sum(part.event.size for part in ours) == theirs, f"both sides find the same in {name}"
    rate = _peer_rate(peer, documents, per_event)
    report.add(f"{at}: mokaccino", rate, "events/s")
    report.add(f"{at}: ours ÷ mokaccino", own / rate)


def _decoded(values: Sequence[dict[str, str | int]]) -> Events:
    encoder = msgspec.json.Encoder()
    events, _ = decode(as_source([encoder.encode(value) for value in values]), _stream(), Settings())
    for column in COLUMNS:
        events.column(column)
    return events


def _own_rate(worker: Worker, events: Events) -> tuple[float, float]:
    """Return events per second of CPU, and matches per event."""
    done = matched = 0
    began = time.process_time()
    while not done or time.process_time() - began < _SECONDS:
        matched += sum(part.event.size for part in matches(worker.snapshot, events))
        done += events.count
    return done / (time.process_time() - began), matched / done


def _percolator(selections: Sequence[Sequence[Conjunct]]) -> Percolator:
    peer = Percolator()
    for selection in selections:
        queries = [query for conjunct in selection if (query := _peer_condition(conjunct)) is not None]
        peer.add_query(queries[0] if len(queries) == 1 else Query.from_and(queries))
    return peer.optimized()


def _peer_condition(conjunct: Conjunct) -> Query | None:
    """Return a conjunct as the peer's query; None for a conjunct that it lacks."""
    column, op, value = conjunct
    match op:
        case "=":
            return Query.from_kv(column, value)
        case "<>":
            return Query.from_not(Query.from_kv(column, value))
        case ">":
            return Query.from_kgt(column, value)
        case "between":
            return Query.from_and([Query.from_kge(column, value[0]), Query.from_kle(column, value[1])])
        case "in":
            return Query.from_or([Query.from_kv(column, one) for one in value])
        case "prefix":
            return Query.from_kprefix(column, value)
    return None


def _document(value: dict[str, str | int]) -> Document:
    document = Document()
    for column, one in value.items():
        document.add_value(column, str(one))
    return document


def _peer_rate(peer: Percolator, documents: Sequence[Document], per_event: float) -> float:
    """Return events per second of CPU."""
    most = max(1, int(_PEER_PAIRS / max(per_event, 1.0)))
    done, began = 0, time.process_time()
    for document in documents[:most]:
        peer.percolate_list(document)
        done += 1
        if not done % 16 and time.process_time() - began > _SECONDS:
            break
    return done / (time.process_time() - began)
