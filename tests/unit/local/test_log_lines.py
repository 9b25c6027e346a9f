"""Log lines of all roles: the fields of a record beside its message are on its line."""

from __future__ import annotations

import io
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime

import pytest

from grouping.process.log_lines import LineLimit, change_level_by_signals, last_error, log_to


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The log lines of the block; afterwards the root logger is restored."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    written = io.StringIO()
    log_to(written, logging.INFO)
    yield written
    root.handlers[:] = handlers
    root.setLevel(level)


def test_fields_are_on_the_line(lines: io.StringIO) -> None:
    """Fields stand behind the message, also where a stack trace follows."""
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("x").exception("group not evaluated", extra={"group": "g_1"})
    first, *rest = lines.getvalue().splitlines()
    assert first.endswith("ERROR x group not evaluated group='g_1'")
    assert "ValueError: why" == rest[-1]


def test_each_line_of_json_stands_for_itself(lines: io.StringIO) -> None:
    """Fields are members, of any type; a stack trace is one too."""
    log_to(lines, logging.INFO, "json")
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("x").exception("%s failed", "it", extra={"group": "g_1", "rows": 3, "kind": ValueError})
    (line,) = lines.getvalue().splitlines()
    fields = json.loads(line)
    assert ("ERROR", "x", "it failed", "g_1", 3) == tuple(
        fields[n] for n in ("level", "logger", "message", "group", "rows")
    )
    assert fields["stack"].endswith("ValueError: why")
    assert datetime.fromisoformat(fields["time"])


def test_the_last_warning_is_kept(lines: io.StringIO) -> None:
    """With its time and fields; a message of no trouble does not take its place."""
    logging.getLogger("x").error("first")
    logging.getLogger("x").warning("%s failed", "it", extra={"group": "g_1"})
    logging.getLogger("x").info("all is well")
    assert lines.getvalue().splitlines()[-1].endswith("all is well")
    found = last_error()
    assert found is not None
    assert ("WARNING", "it failed group='g_1'") == (found["level"], found["message"])
    assert datetime.fromisoformat(found["at"]).tzinfo is not None


def test_a_repeated_line_is_due_once_a_minute() -> None:
    """Each kind of line has its own minute."""
    now = [0.0]
    line_limit = LineLimit(lambda: now[0])
    assert [True, False, True] == [line_limit.due("kafka"), line_limit.due("kafka"), line_limit.due("redis")]
    now[0] = 59.9
    assert not line_limit.due("kafka")
    now[0] = 60.0
    assert [True, False] == [line_limit.due("kafka"), line_limit.due("kafka")]


def test_a_library_that_retries_is_heard_once_a_minute(lines: io.StringIO) -> None:
    """Other loggers are heard each time."""
    for name in 2 * ("aiokafka.cluster", "aiokafka.conn", "x"):
        logging.getLogger(name).error("away")
    assert ["aiokafka.cluster", "aiokafka.conn", "x", "x"] == [
        line.split(" ERROR ")[1].split()[0] for line in lines.getvalue().splitlines()
    ]


def test_the_level_is_changed_by_signals(lines: io.StringIO) -> None:
    """SIGUSR1 has details logged, SIGUSR2 ends that; the process goes on meanwhile."""
    before = [signal.getsignal(each) for each in (signal.SIGUSR1, signal.SIGUSR2)]
    change_level_by_signals("INFO")
    try:
        for number in (signal.SIGUSR2, signal.SIGUSR1, signal.SIGUSR2):
            signal.raise_signal(number)
            logging.getLogger("x").debug("details")
    finally:
        for each, handler in zip((signal.SIGUSR1, signal.SIGUSR2), before, strict=True):
            signal.signal(each, handler)
    assert 1 == len(lines.getvalue().splitlines())


def test_an_exception_that_ends_a_process_is_a_line_of_json() -> None:
    """Python's own form of it has several lines."""
    program = "import sys; from grouping.process.log_lines import log_to; log_to(sys.stderr, 'INFO', 'json'); 1 / 0"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    (line,) = ran.stderr.splitlines()
    assert json.loads(line)["stack"].endswith("ZeroDivisionError: division by zero")
