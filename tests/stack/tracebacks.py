"""Stack traces in the logs of the roles: each is a fault, unless the test names it.

A test names the traces that it causes by ``@pytest.mark.traceback("a regular expression")``, once for each kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

__all__ = ["FULL_DISK", "KAFKA_AWAY", "TOPIC_GREW", "WORKER_DEATH", "LogWatch", "tracebacks", "unexpected"]

WORKER_DEATH = (
    "Python worker exited unexpectedly|Python worker failed to connect back|IOException: Stream closed"
    "|EOFException occurred while reading the port number"
)
"""The stack traces of a query whose workers were killed within a task, or at their start."""

TOPIC_GREW = "Specified: Set"
"""The stack trace of a query that Spark refuses to start: its topic has grown since Spark asked for the offsets."""

_PYTHON = "Traceback (most recent call last):"
_JAVA = re.compile(r"\s+at [\w.$/<>]+\(.*\)$")
_JSON = re.compile(r'\{".*\}$')
_GOES_ON = re.compile(
    r"\s|$|Caused by: |Suppressed: |Driver stacktrace:|During handling of|The above exception|Traceback "
)
"""Beginnings of the lines of a trace, besides the line of a Python exception itself."""

KAFKA_AWAY = (
    r"org\.apache\.kafka\.common\.errors\.|results cannot be written to Kafka|TableAway: .* cannot be read"
    "|OperationalError: (?:source partitions (?:cannot be read|do not give all)|pins of tables were not written)"
)
"""The stack traces of a broker that is started again, and of its clients: the broker may be away for a minute."""

FULL_DISK = r"No space left on device|java\.lang\.InternalError"
"""The stack traces when a disk is full: from all programs that write to it, and from Kafka, which maps its files."""

_DRIVER_GONE = (
    "EOF reached before Python server acknowledged|cancelled because SparkContext was shut down|"
    r"RejectedExecutionException: [^\n]* rejected from|ExitCodeException exitCode=137|"
    r"(?:Socket|IO)Exception: [^\n]*\n[\s\S]*PythonAccumulatorV2\.merge"
)
"""The stack traces of a JVM whose evaluator was killed a moment ago: tests kill it in many places."""


_CONTROLLER_SLOW = r"NotControllerException: The active controller appears to be node \d"
"""The stack traces of a Kafka whose controller waited too long for a busy machine, and resigned for a moment."""

_ENDED_WHILE_FENCED = r"IllegalStateException: Preparing transaction state transition to \w+ while it already a pending"
"""The stack trace of a Kafka that is asked to end a transaction while it fences the producer: the producer asks again.
"""

_DELETED_TWICE = r"NoSuchFileException: \S+-delete/\S+index -> \S+\.deleted"
"""The stack trace of a Kafka that was killed while it deleted a topic: at its next start it deletes the rest, and warns
of the indexes that are gone already.
"""


def tracebacks(lines: Iterable[str]) -> Iterator[str]:
    r"""Yield the stack traces among the lines of a log: Python's, and Java's with the line before the first frame.

    A line of JSON is a stack trace if it has the member ``stack`` or ``exception``.

    Example:
        >>> list(tracebacks(['{"message": "fine"}', '{"stack": "a"}', '{"exception": {"class": "a.B"}}', "fine"]))
        ['{"stack": "a"}', '{"exception": {"class": "a.B"}}']
        >>> python = ["fine", "Traceback (most recent call last):", '  File "a.py"', "KeyError: 1", "fine"]
        >>> [trace.splitlines()[-1] for trace in tracebacks(python)]
        ['KeyError: 1']
        >>> java = ["fine", "a.B: x", "\tat a.B.c(D.java:1)", "Caused by: a.E: y", "\tat a.E.c(D.java:1)", "fine"]
        >>> [trace.splitlines()[::2] for trace in tracebacks(java)]
        [['a.B: x', 'Caused by: a.E: y']]
    """
    trace: list[str] = []
    in_python = False
    before = ""
    for line in lines:
        begins = _PYTHON in line
        if _JSON.match(line):
            if trace:
                yield "\n".join(trace)
            trace, in_python = [], False
            if json.loads(line).keys() & {"stack", "exception"}:
                yield line
        elif trace and (in_python or _GOES_ON.match(line)):
            trace.append(line)
            in_python = begins or (in_python and bool(_GOES_ON.match(line)))
        else:
            if trace:
                yield "\n".join(trace)
            trace = [line] if begins else [before, line] if _JAVA.match(line) else []
            in_python = begins
        before = line
    if trace:
        yield "\n".join(trace)


def unexpected(traces: Iterable[str], named: Sequence[str]) -> list[str]:
    """Return the traces that match none of the named expressions and are not expected always.

    Traces of the JVM of a killed evaluator are always expected, and so are three kinds of traces of a Kafka that was
    killed or whose machine is busy.
    """
    always = (_DRIVER_GONE, _CONTROLLER_SLOW, _ENDED_WHILE_FENCED, _DELETED_TWICE)
    return [trace for trace in traces if not any(re.search(each, trace) for each in (*named, *always))]


class LogWatch:
    """Reads the lines that were added to the logs of some data folders since the last call."""

    def __init__(self) -> None:
        self._read: dict[Path, int] = {}
        self.named: Sequence[str] = ()
        """Regular expressions of the stack traces that the last test may have caused."""

    def check(self, folders: Iterable[Path], named: Sequence[str] = ()) -> None:
        """Check the lines that were added to the logs.

        Args:
            folders: The data folders.
            named: Regular expressions of the stack traces that are expected.

        Raises:
            AssertionError: There is a stack trace that matches none of them.
        """
        found = {log: unexpected(traces, named) for log, traces in self.new(folders).items()}
        lines = [f"{log}:\n{trace}" for log, traces in found.items() for trace in traces]
        assert not lines, "\n".join(lines)

    def new(self, folders: Iterable[Path]) -> dict[Path, list[str]]:
        """Return new stack traces by log file; a truncated log is read from its beginning."""
        return {
            path: found
            for folder in folders
            for path in sorted((folder / "logs").glob("*.log"))
            if (found := list(tracebacks(self._added(path).splitlines())))
        }

    def _added(self, path: Path) -> str:
        size, begin = path.stat().st_size, self._read.get(path, 0)
        with path.open("rb") as log:
            log.seek(begin if begin <= size else 0)
            text = log.read()
        self._read[path] = (begin if begin <= size else 0) + len(text)
        return text.decode(errors="replace")
