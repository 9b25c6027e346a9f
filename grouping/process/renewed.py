"""Replaces a client of Kafka by a new client when an answer is late."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["RenewedClient"]

C = TypeVar("C")
T = TypeVar("T")


class RenewedClient(Generic[C]):
    """Holds a client for requests that may be repeated.

    The class is for the admin client of librdkafka, which has two faults. While a request waits for a broker that
    refuses connections, the client reconnects without pause, and takes a whole core for each of its two threads. Also,
    the client reads the metadata of the cluster only every five minutes. So a request gets only a short time. After
    this time, a new client repeats the request; a new client reads the metadata when it starts.
    """

    def __init__(self, make: Callable[[], C], is_late: Callable[[Exception], bool]) -> None:
        """Make the first client.

        Args:
            make: Makes a client.
            is_late: Tells whether an error means that the answer is late.
        """
        self._make = make
        self._is_late = is_late
        self.client = make()
        """The present client, for requests that must not be repeated."""

    def renew(self) -> None:
        """Make a new client. Call this if the metadata of the old client is outdated."""
        self.client = self._make()

    def ask(self, question: Callable[[C], T], seconds: float) -> T:
        """Return the answer to a request. A late request is repeated for `seconds`; other errors are raised at once."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return question(self.client)
            except Exception as error:
                if not self._is_late(error):
                    raise
                self.renew()
                if time.monotonic() > deadline:
                    raise
