"""Log lines of Kafka clients while Kafka is away."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time

import pytest
from confluent_kafka import Consumer

from gateway.kafka.driver import reader_config
from grouping.process.broker_errors import BrokerErrors
from grouping.settings.settings import Settings


def test_a_client_writes_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The first error at once, then one line a minute with the number of errors."""
    now = 100.0
    errors = BrokerErrors(lambda: now)
    for now in (100.0, 110.0, 159.0, 160.0, 161.0):  # noqa: B007 - the clock reads it
        errors.note("connection refused")
    assert [1, 3] == [vars(record)["errors"] for record in caplog.records]


def test_librdkafka_writes_nothing_itself(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """Its lines would be text among objects, twenty a second."""
    settings = Settings(kafka={"bootstrap": "127.0.0.1:1"})
    consumer = Consumer(reader_config(settings, "none"))
    deadline = time.monotonic() + 30
    while not caplog.records and time.monotonic() < deadline:
        consumer.poll(0.1)
    consumer.poll(0.3)
    consumer.close()
    assert ["kafka cannot be reached"] == [record.getMessage() for record in caplog.records]
    assert ("", "") == tuple(capfd.readouterr())


_RAISES = """
import logging, sys, threading, warnings
from grouping.process.log_lines import log_to
log_to(sys.stderr, logging.INFO, "json")
warnings.warn("careful")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
raise KeyError("lost")
"""


def test_stack_traces_are_objects_too() -> None:
    """Also Python's own reports of a thread's end, and of the program's."""
    ran = subprocess.run([sys.executable, "-c", _RAISES], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    assert [logging.getLevelName(logging.WARNING), "CRITICAL", "CRITICAL"] == [line["level"] for line in lines]
    assert ["ZeroDivisionError" in lines[1]["stack"], "KeyError" in lines[2]["stack"]] == [True, True]
    assert 1 == ran.returncode
