"""Turns all lines that a process writes into JSON objects, also lines of libraries, of Java and of Python itself."""

from __future__ import annotations

import atexit
import json
import logging
import os
import secrets
import sys
import threading
from collections.abc import Iterable
from typing import Literal, TextIO

from grouping.process.log_lines import JsonFormatter, log_to

__all__ = ["JsonOutput", "drain_output", "json_line", "log_to_standard_error"]

_DRAIN_SECONDS = 0.5


def json_line(line: str) -> str:
    """Return a line that is a JSON object unchanged, and any other line as the message of an object.

    Example:
        >>> json_line('{"level": "ERROR"}')
        '{"level": "ERROR"}'
        >>> json.loads(json_line("WARNING: Using incubator modules"))["message"]
        'WARNING: Using incubator modules'
    """
    if line.startswith("{"):
        try:
            json.loads(line)
        except ValueError:
            pass
        else:
            return line
    return JsonFormatter().format(logging.makeLogRecord({"name": "output", "levelname": "INFO", "msg": line}))


class JsonOutput:
    """Replaces standard output and standard error of this process, and of children started later.

    A thread reads all these lines from a pipe, and writes each as an object to the former standard error.
    """

    def __init__(self) -> None:
        """Begin."""
        self.stream: TextIO = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
        """The former standard error, for lines that are JSON already."""
        self._mark = secrets.token_hex(16)
        self._drained = threading.Event()
        reading, writing = os.pipe()
        for standard in (1, 2):
            os.dup2(writing, standard)
        os.close(writing)
        lines = os.fdopen(reading, encoding="utf-8", errors="replace", newline="\n")
        threading.Thread(target=self._copy, args=[lines], name="json-output", daemon=True).start()

    def drain(self) -> None:
        """Return once the lines written before the call have left the pipe, or after half a second."""
        self._drained.clear()
        os.write(2, f"\n{self._mark}\n".encode())
        self._drained.wait(_DRAIN_SECONDS)

    def _copy(self, lines: Iterable[str]) -> None:
        for line in map(str.rstrip, lines):
            if line == self._mark:
                self._drained.set()
            elif line:
                self.stream.write(json_line(line) + "\n")


_outputs: list[JsonOutput] = []
"""The replaced output of this process; empty if the output was not replaced."""


def log_to_standard_error(level: int | str, form: Literal["text", "json"]) -> None:
    """Log to standard error. With JSON, all other lines of this process and its children become JSON objects too.

    Args:
        level: The lowest level that is logged.
        form: The form of a line: text or JSON.
    """
    if form == "json" and not _outputs:
        _outputs.append(JsonOutput())
        atexit.register(drain_output)
    log_to(_outputs[0].stream if form == "json" else sys.stderr, level, form)


def drain_output() -> None:
    """Flush buffered output, for a process that ends by `os._exit`."""
    for buffered in (sys.stdout, sys.stderr):
        buffered.flush()
    for output in _outputs:
        output.drain()
