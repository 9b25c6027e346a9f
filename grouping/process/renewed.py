"""A client of a server, replaced by a new client after a question without an answer in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["RenewedClient"]

C = TypeVar("C")
T = TypeVar("T")


class RenewedClient(Generic[C]):
    """Holds a client, for questions that may be asked again.

    The class is for librdkafka's admin client. While a question waits for a broker that refuses connections, the client
    reconnects at once and without end (each look at the broker expedites the next attempt), which takes a core for each
    of its two threads; and the client looks up the right broker anew only every five minutes. So a question is given a
    short time, and is then asked by another client, which looks the cluster up.
    """

    def __init__(self, make: Callable[[], C], is_late: Callable[[Exception], bool]) -> None:
        """Make the first client.

        Args:
            make: Makes a client.
            is_late: Recognises errors that mean a late answer.
        """
        self._make = make
        self._is_late = is_late
        self.client = make()
        """A client for requests that may not be sent twice."""

    def renew(self) -> None:
        """Make a new client, as the old client's knowledge of the cluster is outdated."""
        self.client = self._make()

    def ask(self, question: Callable[[C], T], seconds: float) -> T:
        """Return the answer to a question; raise an error unless it is a late answer within `seconds`."""
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
