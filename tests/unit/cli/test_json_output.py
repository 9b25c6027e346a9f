"""With JSON each line that a role writes is an object, whoever wrote the line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

_START = "from grouping.process.json_output import drain_output, log_to_standard_error as log_to; "


def _lines(program: str, form: str = "json") -> list[str]:
    text = _START + f"import logging, os, subprocess, sys; log_to('INFO', '{form}'); {program}"
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert ran.stdout == ""
    return ran.stderr.splitlines()


def _objects(program: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _lines(program)]


def test_lines_of_a_child_are_objects() -> None:
    """Lines that Java or a library of C writes to standard output or standard error are messages of objects."""
    script = "echo hello; echo; echo '{\"level\": 1}' >&2; printf half"
    lines = _objects(f"subprocess.run(['sh', '-c', {script!r}])")
    assert ["hello", None, "half"] == [line.get("message") for line in lines]
    assert {"level": 1} == lines[1]
    assert {"time", "level", "logger", "message"} == set(lines[0])


def test_logged_lines_are_objects() -> None:
    """The role's own lines are as the logger made them."""
    (line,) = _objects("logging.getLogger('x').info('ready', extra={'rows': 3})")
    assert ("INFO", "x", "ready", 3) == tuple(line[name] for name in ("level", "logger", "message", "rows"))


def test_the_last_line_is_an_object() -> None:
    """The line with which a command ends, and the line before `os._exit`, are written."""
    assert ["cq: no"] == [line["message"] for line in _objects("sys.exit('cq: no')")]
    lines = _objects("print('cq evaluator: no', file=sys.stderr); drain_output(); os._exit(1)")
    assert ["cq evaluator: no"] == [line["message"] for line in lines]


def test_text_stays_text() -> None:
    """Without JSON nothing is changed."""
    assert ["half"] == _lines("os.write(2, b'half')", "text")
