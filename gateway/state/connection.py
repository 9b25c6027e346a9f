"""The gateway's connection to Redis, which writes only while the gateway holds the lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.keys import RedisKeys
from grouping.store.lease import Lease

__all__ = ["Connection"]


class Connection:
    """A connection to Redis. Only the room `state` uses it; rooms above call methods of this room."""

    def __init__(self, settings: Settings, lease: Lease | None = None) -> None:
        """Connect.

        Args:
            settings: The settings.
            lease: The lease that each transaction checks; None if no other process can write.
        """
        self._lease = lease
        self.redis = connect(settings)
        self.keys = RedisKeys.of(settings)

    def transaction(self, client: Any = None) -> Any:
        """Return a pipeline that is written as one transaction, unless another gateway has taken over.

        Args:
            client: The Redis client for the pipeline; the connection's own client by default.
        """
        client = client or self.redis
        return client.pipeline(transaction=True) if self._lease is None else self._lease.transaction(client)

    @contextmanager
    def writing(self, client: Any = None) -> Iterator[Any]:
        """Give a pipeline, and carry it out at the end of the block.

        Raises:
            LeaseLost: Another gateway has taken over; nothing was written.
            StoreUnavailable: Redis did not answer.
        """
        pipeline = self.transaction(client)
        yield pipeline
        with mapped():
            pipeline.execute()
