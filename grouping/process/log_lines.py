"""The form of log lines: a text of time, level, logger, message and fields (``name=value``), or a JSON object."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TextIO

__all__ = ["LineLimit", "change_level_by_signals", "last_error", "log_to"]

_LONGEST = 500
"""The largest number of characters of the last error that a report shows."""

ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes of every log record; any other attribute is a field."""


class FieldFormatter(logging.Formatter):
    """Formats a record as text, with its fields."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the base class's name)
        """Return the line without a stack trace."""
        return " ".join([super().formatMessage(record), *(f"{k}={value!r}" for k, value in _fields(record).items())])


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line, with any stack trace as a member."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
        fields["message"] = record.getMessage()
        if record.exc_info:
            fields["stack"] = self.formatException(record.exc_info)
        return json.dumps(_fields(record) | fields, default=str)

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03d"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in ORDINARY}


class _LastError(logging.Handler):
    """Keeps the last log line of level WARNING or above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.line: dict[str, str] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record as the last one."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = (f"{name}={value!r}" for name, value in _fields(record).items())
        text = " ".join([record.getMessage(), *fields])
        self.line = {"at": at, "level": record.levelname, "message": text[:_LONGEST]}


_last = _LastError()


def last_error() -> dict[str, str] | None:
    """Return time, level and text of this process's last line of level WARNING or above; None without one."""
    return _last.line


class LineLimit:
    """Decides when a repeated line is written: the first time at once, and then at most once a minute."""

    _EVERY_SECONDS = 60.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}

    def due(self, line: str) -> bool:
        """Return whether a line should be written now. If so, the line counts as written."""
        now = self._clock()
        if now < self._due.get(line, now):
            return False
        self._due = {each: at for each, at in self._due.items() if now < at} | {line: now + self._EVERY_SECONDS}
        return True


class _LimitedLibraries(logging.Filter):
    """Lets each logger of aiokafka write at most one line a minute, since its clients retry without end."""

    def __init__(self, line_limit: LineLimit) -> None:
        super().__init__()
        self._line_limit = line_limit

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is to be written."""
        return not record.name.startswith("aiokafka") or self._line_limit.due(record.name)


def log_to(stream: TextIO, level: int | str, form: Literal["text", "json"] = "text") -> None:
    """Write log lines of a level and above to a stream, and the stack trace of an exception that ends the process.

    Args:
        stream: The stream for the lines.
        level: The lowest level, as a number or a name.
        form: The form of a line.
    """
    handler = logging.StreamHandler(stream)
    text = "%(asctime)s %(levelname)s %(name)s %(message)s"
    handler.setFormatter(JsonFormatter() if form == "json" else FieldFormatter(text))
    handler.addFilter(_LimitedLibraries(LineLimit()))
    logging.basicConfig(level=level, handlers=[handler, _last], force=True)
    logging.captureWarnings(capture=form == "json")
    if form == "json":  # Python's default hooks would write text instead
        sys.excepthook = _log_uncaught
        threading.excepthook = lambda args: _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def _log_uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if issubclass(kind, Exception):
        found = (kind, error or kind(), trace)
        logging.getLogger(__name__).critical("an exception was not caught", exc_info=found)


def change_level_by_signals(level: int | str) -> None:
    """Let SIGUSR1 change the level of logs to DEBUG, and SIGUSR2 change it back to the level of the settings."""
    root = logging.getLogger()
    signal.signal(signal.SIGUSR1, lambda *_: root.setLevel(logging.DEBUG))
    signal.signal(signal.SIGUSR2, lambda *_: root.setLevel(level))
