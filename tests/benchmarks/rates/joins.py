"""CQs over a join with a table: beside the same CQs on a stream that has the column, one row per event and ten.

Beside them a join by Spark itself, with the table broadcast and without any CQ. All sides run in one Spark application
over the same topic, in turns, and write about one record an event.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from gateway.testing import Table as KitTable
from grouping.model.catalog import Stream, StreamColumn
from grouping.model.table import Table
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.sink import checkpoint_location
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.market import as_source
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.parts.in_process import Worker
from tests.benchmarks.rates.contest import bench_session, in_turns, make_outputs, report_ratio, report_sides
from tests.benchmarks.rates.pipeline import Run, through
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

_JOINED, _COLUMN, _SEVERAL, _NATIVE = "CQs over a join", "CQs on a column", "CQs over ten rows", "a join by Spark"
_OWNERS = 10
"""Rows of a symbol in the table of owners."""
_MATCH_EVERY = 10
"""The share of owners with a CQ, one in this many, so an event has about one match."""
_ON_STREAM = "SELECT symbol, price, industry FROM quotes WHERE industry = 'a' AND price < 1.5"
_ON_TABLE = """SELECT q.symbol, q.price, p.industry FROM quotes q JOIN profiles p ON q.symbol = p.symbol
    WHERE p.industry = 'a' AND price < 1.5"""
_ON_OWNERS = "SELECT q.symbol, q.price, o.owner FROM quotes q JOIN owners o ON q.symbol = o.symbol WHERE o.owner = 'a'"

_WORKER_EVENTS, _WORKER_ROUNDS, _WORKER_ROWS = 20_000, 7, 50_000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--join-cqs", type=int, default=100_000, help="CQs over the join")
    parser.add_argument("--join-rows", type=int, default=100_000, help="rows of the table, each of a symbol")
    parser.add_argument("--join-events", type=int, default=1_000_000, help="events of one run")
    parser.add_argument("--join-rounds", type=int, default=3, help="rounds that count")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with open_ground() as ground:
        runs = _measure(ground, options.join_cqs, options.join_rows, options.join_events, options.join_rounds)
    report = Report(options.command)
    _report_worker(report, options.join_cqs, min(options.join_rows, _WORKER_ROWS))
    report_sides(report, runs)
    for mine, other, target in ((_JOINED, _COLUMN, "0.85"), (_JOINED, _NATIVE, "2"), (_SEVERAL, _JOINED, "0.5")):
        report_ratio(report, runs, mine, other, target)
    report.write(folder)
    report.bars(folder, "events/s")


def _measure(ground: Ground, cqs: int, rows: int, events: int, rounds: int) -> dict[str, list[Run]]:
    settings, bootstrap = ground.settings, ground.settings.kafka.bootstrap
    make_outputs(ground, "joined")
    ground.make_topic(settings.topics.pins, 1)
    for topic in (quotes.TOPIC, "profiles", "owners"):
        ground.make_topic(topic, quotes.PARTITIONS)
    quotes.send(bootstrap, quotes.TOPIC, _quotes(events, rows))
    quotes.send(bootstrap, "profiles", _profiles(rows))
    quotes.send(bootstrap, "owners", _owners(rows))
    tables = Tables(settings)
    sides = {}
    for name, contents in _contents(cqs, rows).items():
        tables.put(contents)
        sides[name] = through(contents.stream, Evaluation.of(contents.stream, settings))
    sides[_NATIVE] = _native
    with bench_session(settings) as spark:
        return dict(in_turns(spark, sides, events, rounds, settings))


def _contents(cqs: int, rows: int) -> dict[str, Contents]:
    """Return the CQs of each side."""
    constants = quotes.quote_rows(cqs)  # industries are named as symbols are
    profiles = _table("profiles", "symbol", symbol="STRING", industry="STRING", beta="DOUBLE")
    owners = _table("owners", "owner", "symbol", owner="STRING", symbol="STRING")
    owned = pa.array([_owner(number) for number in range(0, rows * _OWNERS, _MATCH_EVERY)][:cqs])
    return {
        _JOINED: Contents(_stream("s_join", "symbol", "price", "volume"), [profiles]).add(_ON_TABLE, constants),
        _COLUMN: Contents(_stream("s_column", "symbol", "price", "industry")).add(_ON_STREAM, constants),
        _SEVERAL: Contents(_stream("s_several", "symbol", "price", "volume"), [owners]).add(_ON_OWNERS, {"c0": owned}),
    }


def _report_worker(report: Report, cqs: int, rows: int) -> None:
    """Report the CPU time of decoding, matching and splitting in this process, the sides in turns."""
    profiles = "profiles (symbol STRING PRIMARY KEY, industry STRING, beta DOUBLE)"
    owners = "owners (owner STRING PRIMARY KEY, symbol STRING)"
    views = {
        _JOINED: {"t_profiles": KitTable(profiles, (_decode(body) for _, body in _profiles(rows))).view()},
        _SEVERAL: {"t_owners": KitTable(owners, (_decode(body) for _, body in _owners(rows))).view()},
    }
    workers = {name: Worker(made, views.get(name, {})) for name, made in _contents(cqs, rows).items()}
    batches = [as_source([body for _, body in _quotes(_WORKER_EVENTS, rows)])]
    spent: dict[str, list[float]] = {name: [] for name in workers}
    for number in range(_WORKER_ROUNDS + 1):
        for name, worker in workers.items():
            taken = sum(worker.run(batches).micros.values())
            spent[name] += [taken] if number else []
    for name, taken in spent.items():
        report.add(f"{name}, in one process", statistics.median(taken), "µs/event")


def _stream(stream_id: str, *names: str) -> Stream:
    types = {"price": "DOUBLE", "volume": "BIGINT"}
    columns = tuple(StreamColumn(name, types.get(name, "STRING")) for name in names)
    return msgspec.structs.replace(quotes.stream(stream_id), columns=columns)


def _table(name: str, *key: str, **columns: str) -> Table:
    return Table(f"t_{name}", name, tuple(StreamColumn(*column) for column in columns.items()), key, name, "json", "")


def _symbol(number: int) -> str:
    return f"C{number:07d}"


def _owner(number: int) -> str:
    return f"owner {number}"


def _industry(number: int) -> str:
    return quotes.symbol(number % quotes.SYMBOLS)


def _quotes(count: int, symbols: int) -> Iterator[tuple[str, bytes]]:
    random = np.random.default_rng(1)
    numbers = random.integers(0, symbols, count).tolist()
    prices = np.round(random.uniform(0, quotes.TOP_PRICE, count), 4).tolist()
    for row, (number, price) in enumerate(zip(numbers, prices, strict=True)):
        body = {"symbol": _symbol(number), "price": price, "volume": row, "industry": _industry(number)}
        yield _symbol(number), _encode(body)


def _profiles(count: int) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        body = {"symbol": _symbol(number), "industry": _industry(number), "beta": number / 7}
        yield _symbol(number), _encode(body)


def _owners(symbols: int) -> Iterator[tuple[str, bytes]]:
    for number in range(symbols * _OWNERS):
        yield _owner(number), _encode({"owner": _owner(number), "symbol": _symbol(number // _OWNERS)})


def _native(spark: SparkSession, settings: Settings) -> StreamingQuery:
    """Join the stream with the table, which is read once and broadcast, and write each joined row."""
    kafka = {"kafka.bootstrap.servers": settings.kafka.bootstrap, "startingOffsets": "earliest"}
    batch = {"maxOffsetsPerTrigger": str(settings.evaluator.events_per_batch)}
    profiles = spark.read.format("kafka").options(subscribe="profiles", **kafka).load()
    table = _decoded(profiles, "symbol STRING, industry STRING, beta DOUBLE").cache()
    events = spark.readStream.format("kafka").options(subscribe=quotes.TOPIC, **kafka, **batch).load()
    joined = _decoded(events, "symbol STRING, price DOUBLE, volume BIGINT").join(f.broadcast(table), "symbol")
    value = f.to_json(f.struct("symbol", "price", "industry")).alias("value")
    write = joined.select(f.col("symbol").alias("key"), value).writeStream.format("kafka")
    write = write.options(topic="joined", **{"kafka.bootstrap.servers": settings.kafka.bootstrap})
    return write.option("checkpointLocation", checkpoint_location("s_native", settings)).start()


def _decoded(records: DataFrame, columns: str) -> DataFrame:
    return records.select(f.from_json(f.col("value").cast("string"), columns).alias("row")).select("row.*")
