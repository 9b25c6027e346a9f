"""The session of a sync or an asyncio client: the client's connections and timeout."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from gateway.sdk.exchange import Exchange
from gateway.sdk.pipeline import Inquiry, Outcome, Pipeline
from gateway.sdk.publisher import Publisher
from gateway.sdk.records.feed import places
from gateway.sdk.results import ContinuousQuery
from gateway.sdk.signing import SigningKey
from gateway.sdk.subscription import Subscription

__all__ = ["Session"]


class Session:
    """A subscriber's connections; safe to use from several threads."""

    def __init__(
        self,
        bootstrap: str,
        subscriber: str,
        *,
        prefix: str = "cq.",
        timeout: float = 30.0,
        extra: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        signing_key: SigningKey | None = None,
    ) -> None:
        self._bootstrap = bootstrap
        self._extra = dict(extra or {})
        self.subscriber = subscriber
        """The name under which commands are sent."""
        self.timeout = timeout
        """Seconds to wait for the reply to a command, unless a call has its own timeout."""
        self.exchange = Exchange(
            bootstrap, subscriber, prefix=prefix, extra=self._extra, clock=clock, signing_key=signing_key
        )
        self.publisher = Publisher(bootstrap, self._extra)

    def follow(self, queries: Sequence[ContinuousQuery], cursor: str | None, *, skip_lost: bool) -> Subscription:
        """Return a subscription to these CQs; without CQs, to the CQs of the cursor.

        Raises:
            BadCursor: The text is not a cursor.
            FilterUnavailable: A destination is virtual, and DuckDB is not installed.
        """
        return Subscription(
            self._bootstrap, self._extra, places(queries, cursor), skip_lost=skip_lost, inquire=self.inquire
        )

    def send_many(self, texts: Iterable[str], take: Callable[[Outcome], None]) -> Pipeline:
        """Return a pipeline that sends statements with the client's timeout."""
        return Pipeline(self.exchange, texts, take, timeout=self.timeout, progress=None)

    def inquire(self, names: Sequence[str]) -> Inquiry:
        """Return a question about the subscriber's CQs with these names."""
        return Inquiry(self.exchange, names, timeout=self.timeout)

    def close(self) -> None:
        """Close the connections. Subscriptions stay open until they are closed themselves."""
        self.exchange.close()
        self.publisher.close()
