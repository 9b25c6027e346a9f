"""Log lines of all roles: what a record was given beside its message is on its line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime

import pytest

from grouping.process.log_lines import last_error, log_to


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged meanwhile; the root logger is afterwards as it was."""
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
    told = json.loads(line)
    assert ("ERROR", "x", "it failed", "g_1", 3) == tuple(
        told[n] for n in ("level", "logger", "message", "group", "rows")
    )
    assert told["stack"].endswith("ValueError: why")
    assert datetime.fromisoformat(told["time"])


def test_the_last_warning_is_kept(lines: io.StringIO) -> None:
    """With its time and fields; what is no trouble does not take its place."""
    logging.getLogger("x").error("first")
    logging.getLogger("x").warning("%s failed", "it", extra={"group": "g_1"})
    logging.getLogger("x").info("all is well")
    assert lines.getvalue().splitlines()[-1].endswith("all is well")
    told = last_error()
    assert told is not None
    assert ("WARNING", "it failed group='g_1'") == (told["level"], told["message"])
    assert datetime.fromisoformat(told["at"]).tzinfo is not None
