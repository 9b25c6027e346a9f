"""The cost of a flood of broken commands for a neighbour: from command to reply, and the gateway's part."""

from __future__ import annotations

import argparse
import json
import random
import secrets
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
from confluent_kafka import Producer

from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import open_product
from tests.fuzz.surfaces import hostile_statement
from tests.kafka_client import RawClient, wait_until
from tests.stack.collector import Collector, collector

__all__ = ["add_options", "main"]

_COMMANDS, _ELSEWHERE = "cq.commands", "elsewhere"
_RENEWED = "beside a flood under ever new names"
_SIDES = {
    "alone": None,
    "beside a flood that the gateway does not read": _ELSEWHERE,
    "beside a flood": _COMMANDS,
    _RENEWED: _COMMANDS,
}
"""The topic on which the flood is. The flood on an unread topic costs only the client's and Kafka's part."""
_WRONG = 1_000
"""Broken commands in a row of a subscriber beside a neighbour."""
_AT_ONCE = 300
_RATE = 400
"""Commands a second where nobody answers: about as many as the gateway carries out of a flood."""
_PARTS = {"wait": "until it is begun", "carry out": "carried out", "store": "in Redis", "reply": "on Kafka"}
_SETTLE_SECONDS = 2.0
_START_SECONDS = 120.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--fairness-seconds", type=float, default=10.0, help="how long each side is asked at a time")
    parser.add_argument("--fairness-rounds", type=int, default=2, help="turns of each")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    waits: dict[str, list[float]] = {name: [] for name in _SIDES}
    parts: dict[str, list[dict[str, float]]] = {name: [] for name in _SIDES}
    sent = 0
    with collector() as traces, open_product(traces_endpoint=traces.endpoint, traces_share=0) as product:
        client = RawClient(product.bootstrap)
        client.make_topic(_ELSEWHERE)
        client.result("CREATE STREAM quotes (symbol STRING, n INT) WITH (topic = 'q', format = 'json', partitions = 1)")
        _asked(client, traces, _SETTLE_SECONDS)
        for _ in range(options.fairness_rounds):
            for name, topic in _SIDES.items():
                with _flood(product.bootstrap, topic, renewed=name == _RENEWED):
                    before = len(client.replies)
                    took, spans = _asked(client, traces, options.fairness_seconds)
                    sent += len(client.replies) - before - len(took) if topic == _COMMANDS else 0
                waits[name] += took
                parts[name] += spans
        answered = _answered(client, traces)
        client.close()
    for name in _SIDES:
        for percent in (50, 99):
            report.add(f"{name}, p{percent}", float(np.percentile(waits[name], percent)) * 1000, "ms")
        for part, shown in _PARTS.items():
            figures = [each[part] for each in parts[name]]
            report.add(f"{name}, {shown}, median", float(np.median(figures)), "ms")
    floods = sum(topic == _COMMANDS for topic in _SIDES.values())
    report.add("commands of a flood", sent / (floods * options.fairness_rounds * options.fairness_seconds), "/s")
    report.add(f"{_WRONG} broken commands in a row beside a neighbour, all answered", answered, "s", "<= 30")
    alone = float(np.percentile(waits["alone"], 99))
    for name in list(_SIDES)[1:]:
        report.add(f"{name} ÷ alone, p99", float(np.percentile(waits[name], 99)) / alone, "", "<= 2")
    report.write(folder)


def _asked(client: RawClient, traces: Collector, seconds: float) -> tuple[list[float], list[dict[str, float]]]:
    """Ask one thing after another for `seconds`.

    Returns:
        The seconds from each command to its reply, and in ms the gateway's times of its parts.
    """
    took, asked = [], []
    producer = Producer({"bootstrap.servers": client.bootstrap, "partitioner": "murmur2_random", "linger.ms": 0})
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        trace, command_id = secrets.token_hex(16), uuid.uuid4().hex
        value = json.dumps({"command_id": command_id, "subscriber": "neighbour", "text": "SHOW CQS LIMIT 1"}).encode()
        headers = [("traceparent", f"00-{trace}-{secrets.token_hex(8)}-01".encode())]
        began = time.monotonic()
        producer.produce(_COMMANDS, value, "neighbour", headers=headers)
        producer.flush()
        client.reply(command_id)
        took.append(time.monotonic() - began)
        asked.append(trace)
    wait_until(lambda: len(traces.of_trace(asked[-1])) > len(_PARTS), "the last spans")
    return took, [
        {span.name: (span.ended_ns - span.began_ns) / 1e6 for span in spans}
        for trace in asked
        if len(spans := traces.of_trace(trace)) > len(_PARTS)
    ]


def _answered(client: RawClient, traces: Collector) -> float:
    """Return the seconds until a subscriber has the last answer to broken commands sent at once beside a neighbour."""
    name, rng = f"wrong-{uuid.uuid4().hex[:8]}", random.Random(11)
    client.result("SHOW CQS LIMIT 1", name)
    client.replies.clear()
    began, answers = time.monotonic(), 0
    values = (
        {"command_id": uuid.uuid4().hex, "subscriber": name, "text": _broken_statement(rng)} for _ in range(_WRONG)
    )
    client.publish_all(_COMMANDS, ((json.dumps(value).encode(), name, None, 0) for value in values))
    while answers < _WRONG:
        _asked(client, traces, 0.2)
        client.poll()
        answers += sum(reply.key == name for reply in client.replies)
        client.replies.clear()
    return time.monotonic() - began


def _broken_statement(rng: random.Random) -> str:
    """Return a hostile statement that makes no topics."""
    text = hostile_statement(rng)
    return "DESCRIBE STREAM quotes" if "STREAM" in text.upper() or "TABLE" in text.upper() else text


@contextmanager
def _flood(bootstrap: str, topic: str | None, *, renewed: bool) -> Iterator[None]:
    """Have another process send broken commands, some hundred at once, until the block is left; None for nothing.

    Args:
        bootstrap: Where Kafka is.
        topic: Where they are sent.
        renewed: Whether each command is under a name of its own.
    """
    if topic is None:
        yield
        return
    spawn = get_context("spawn")
    begun, stop = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_send, args=(bootstrap, topic, renewed, begun, stop))
    process.start()
    try:
        assert begun.wait(_START_SECONDS), "the flood did not begin"
        yield
    finally:
        stop.set()
        process.join()


def _send(bootstrap: str, topic: str, renewed: bool, begun: Event, stop: Event) -> None:
    rng, name = random.Random(7), f"hostile-{uuid.uuid4().hex[:8]}"
    client = RawClient(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 1})
    while not stop.is_set():
        began = time.monotonic()
        for _ in range(_AT_ONCE):
            subscriber = f"{name}-{uuid.uuid4().hex}" if renewed else name
            value = {"command_id": uuid.uuid4().hex, "subscriber": subscriber, "text": _broken_statement(rng)}
            producer.produce(topic, json.dumps(value), subscriber)
        producer.flush()
        if topic == _COMMANDS:
            client.await_replies(_AT_ONCE, lambda reply: (reply.key or "").startswith(name), timeout=600)
            client.replies.clear()
        else:
            stop.wait(_AT_ONCE / _RATE - (time.monotonic() - began))
        begun.set()
    client.close()
