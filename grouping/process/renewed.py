"""Replaces a client by a new client when an answer is late."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["RenewedClient"]

C = TypeVar("C")
T = TypeVar("T")


class RenewedClient(Generic[C]):
    """Holds a client for requests that may be repeated.

    The class is for the admin client of librdkafka. While a request waits for a broker that refuses connections, that
    client reconnects without pause, and takes a core for each of its two threads. Also, it reads the metadata of the
    cluster only every five minutes. So a request gets a short time; then a new client, which reads the metadata at its
    start, repeats the request.
    """

    def __init__(self, make: Callable[[], C], is_late: Callable[[Exception], bool]) -> None:
        """Make the first client.

        Args:
            make: Makes a client.
            is_late: Tells whether an error means a late answer.
        """
        self._make = make
        self._is_late = is_late
        self.client = make()
        """The present client, for requests that must not be repeated."""

    def renew(self) -> None:
        """Make a new client, since the metadata of the old client is outdated."""
        self.client = self._make()

    def ask(self, question: Callable[[C], T], seconds: float) -> T:
        """Return the answer to a request; a late request is repeated for `seconds`, other errors are raised."""
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
