"""How log lines look: time, level, where, the fragment, and its fields as ``name=value``."""

from __future__ import annotations

import logging
from typing import TextIO

__all__ = ["log_to"]

ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes of every log record; any other came as a field."""


class FieldFormatter(logging.Formatter):
    """Adds a record's fields to its line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the base class's name)
        """Return the line, before a stack trace that may follow it."""
        fields = {name: value for name, value in vars(record).items() if name not in ORDINARY}
        return " ".join([super().formatMessage(record), *(f"{name}={value!r}" for name, value in fields.items())])


def log_to(stream: TextIO, level: int) -> None:
    """Send all loggers' lines of that level and above there."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(FieldFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
