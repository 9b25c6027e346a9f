"""Limits the log of a Kafka client that reaches no broker to one line a minute, instead of twenty lines a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["BrokerErrors", "with_quiet_log"]

log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0


class BrokerErrors:
    """Logs a client's broker errors: the first at once, then one line a minute with the number of errors since then.

    librdkafka calls `note` in the thread that polls the client.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without an error.

        Args:
            clock: Monotonic seconds.
        """
        self._clock = clock
        self._next = 0.0
        self._errors = 0

    def note(self, error: Any) -> None:
        """Count a `KafkaError`, and log it if the last line is at least a minute old."""
        self._errors += 1
        now = self._clock()
        if now >= self._next:
            log.warning("kafka cannot be reached", extra={"error": str(error), "errors": self._errors})
            self._next, self._errors = now + _EVERY_SECONDS, 0


def with_quiet_log(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with which a client's errors become log lines, and librdkafka itself writes nothing.

    By default librdkafka writes a line to stderr for each attempt to connect, in a form of its own.

    Example:
        >>> sorted(with_quiet_log({"bootstrap.servers": "k:1"}))
        ['bootstrap.servers', 'error_cb', 'log_level']
    """
    return {"log_level": 2, "error_cb": BrokerErrors().note, **options}
