"""The cost, for other CQs, of a CQ that matches everything: CPU time per event, and lateness of results."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from gateway.sdk import Client
from grouping.model.catalog import Stream
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, in_turns, make_outputs
from tests.benchmarks.rates.copies import headers_copy
from tests.benchmarks.rates.pipeline import through
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import open_product
from tests.ground import open_ground

__all__ = ["add_options", "main"]

EVERYTHING = "SELECT symbol, price, volume FROM quotes"
_COPY, _OTHERS, _ALL = "copy with headers", "1,000 CQs", "1,000 CQs and one that matches everything"
_RESULTS = "cq.results"
_STEP_SECONDS = 0.01
_SETTLE_SECONDS = 5.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--greedy-events", type=int, default=400_000, help="events of one run at full rate")
    parser.add_argument("--greedy-rate", type=int, default=10_000, help="events per second while results are timed")
    parser.add_argument("--greedy-seconds", type=float, default=10.0, help="how long, with and without it in turns")
    parser.add_argument("--greedy-rounds", type=int, default=2, help="turns of each")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    _cost(report, options.greedy_events, options.greedy_rounds)
    _lateness(report, options.greedy_rate, options.greedy_seconds, options.greedy_rounds)
    report.write(folder)


def _cost(report: Report, events: int, rounds: int) -> None:
    """Compare the cost that its record adds to an event with the cost of a record in a copy."""
    with open_ground() as ground:
        evaluator = ground.settings.evaluator.model_copy(update={"events_per_batch": events // 4})
        settings = ground.settings.model_copy(update={"evaluator": evaluator})
        ground.make_topic(quotes.TOPIC, quotes.PARTITIONS)
        make_outputs(ground, "copy")
        quotes.publish(settings.kafka.bootstrap, events)
        copy, others, with_all = (quotes.stream(f"s_{name}") for name in ("copy", "others", "all"))
        tables = Tables(settings)
        tables.put(_many(others))
        tables.put(_many(with_all).add_each([EVERYTHING]))
        sides = {
            _COPY: headers_copy(copy, "copy"),
            _OTHERS: through(others, Evaluation.of(others, settings)),
            _ALL: through(with_all, Evaluation.of(with_all, settings)),
        }
        with bench_session(settings) as spark:
            made = in_turns(spark, sides, events, rounds, settings)
    cpu = {name: statistics.median(sum(one.cpu.values()) for one in runs) for name, runs in made.items()}
    for name, micros in cpu.items():
        report.add(f"{name}, CPU", micros, "µs/event")
    added = cpu[_ALL] - cpu[_OTHERS]
    report.add("what it adds ÷ what a record costs in the copy", added / cpu[_COPY], "", "<= 1")


def _many(stream: Stream) -> Contents:
    return Contents(stream).add(quotes.SELECTION, quotes.quote_rows(quotes.SYMBOLS))


def _lateness(report: Report, rate: int, seconds: float, rounds: int) -> None:
    """Compare how late the others' results come, from the events' times to the broker's own of the results."""
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        columns = {"symbol": "STRING", "price": "DOUBLE", "volume": "BIGINT"}
        client.create_stream("quotes", columns, partitions=quotes.PARTITIONS)
        select = "SELECT symbol, price, volume FROM quotes WHERE symbol = '{}' AND price < 100"
        client.create_many([(f"q{i}", select.format(quotes.symbol(i))) for i in range(quotes.SYMBOLS)], timeout=600)
        _late(product.bootstrap, rate, _SETTLE_SECONDS, "")
        waits: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(rounds):
            waits[False].append(_late(product.bootstrap, rate, seconds, ""))
            waits[True].append(_late(product.bootstrap, rate, seconds, _create(client)))
            client.drop("everything")
    alone, beside = (statistics.median(waits[greedy]) for greedy in (False, True))
    report.add(f"p99 of the others at {rate:,} events/s, alone", alone, "ms")
    report.add(f"p99 of the others at {rate:,} events/s, beside it", beside, "ms")
    report.add("beside it ÷ alone", beside / alone, "", "<= 1.1")


def _create(client: Client) -> str:
    return client.create("everything", EVERYTHING).destination.key


def _late(bootstrap: str, rate: int, seconds: float, greedy: str) -> float:
    """Publish at a steady rate and return the 99th percentile of the results' lateness in ms.

    Args:
        bootstrap: Where to.
        rate: Events per second.
        seconds: How long.
        greedy: The key of the results that don't count.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    places = [TopicPartition(_RESULTS, number) for number in consumer.list_topics(_RESULTS).topics[_RESULTS].partitions]
    for place in places:
        place.offset = consumer.get_watermark_offsets(place)[1]
    consumer.assign(places)
    count = _send(bootstrap, rate, seconds)
    waits: list[float] = []
    for message in _messages(consumer):
        if message.key() != greedy.encode():
            waits.append(_lateness_ms(message))
            if len(waits) == count:
                break
    consumer.close()
    return float(np.percentile(waits, 99))


def _messages(consumer: Consumer) -> Iterator[Message]:
    """Yield the messages that come; ends when none has come for long."""
    while batch := consumer.consume(10_000, 30.0):
        yield from (message for message in batch if message.error() is None)
    raise RuntimeError("not all results came")


def _lateness_ms(message: Message) -> float:
    """Return the time from the event's to the result's being written."""
    event = next(value for name, value in message.headers() or [] if name == "ce_time")
    assert isinstance(event, bytes)
    return message.timestamp()[1] - datetime.fromisoformat(event.decode()).timestamp() * 1000


def _send(bootstrap: str, rate: int, seconds: float) -> int:
    """Publish quotes that each meet one CQ, evenly in small bursts, and return how many."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 500_000})
    bodies = [f'{{"symbol": "{quotes.symbol(i)}", "price": 0.5, "volume": {i}}}' for i in range(quotes.SYMBOLS)]
    burst = round(rate * _STEP_SECONDS)
    due, count = time.monotonic(), 0
    while count < rate * seconds:
        for number in range(count, count + burst):
            producer.produce(quotes.TOPIC, bodies[number % quotes.SYMBOLS], partition=number % quotes.PARTITIONS)
        count += burst
        producer.poll(0)
        due += _STEP_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
    producer.flush()
    return count
