"""For processes other than the gateway: read all CQs from Redis, and order the gateway to fill Redis again."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gateway.model.stored_form import StoredCq, decode_cq
from gateway.model.unit import CqKey
from gateway.state.connection import Connection
from grouping.model.ids import CqName, Subscriber
from grouping.settings.settings import Settings
from grouping.store.connection import mapped

__all__ = ["cq_counts", "order_refill", "stored_cqs"]

_AT_ONCE = 5_000


def stored_cqs(settings: Settings, subscribers: Collection[Subscriber]) -> Iterator[tuple[CqKey, StoredCq]]:
    """Yield all CQs in Redis of the given subscribers, and of all subscribers that Redis lists.

    Raises:
        StoreUnavailable: Redis does not answer.
        msgspec.MsgspecError: A value is not a stored CQ.
    """
    connection = Connection(settings)
    redis, keys = connection.redis, connection.keys
    with mapped():
        known = {Subscriber(_text(name)) for name in redis.hkeys(keys.subscribers)}
        for subscriber in sorted(known.union(subscribers)):
            for name, body in redis.hscan_iter(keys.cqs(subscriber), count=_AT_ONCE):
                yield CqKey(subscriber, CqName(_text(name))), decode_cq(body)


def cq_counts(settings: Settings) -> dict[Subscriber, int]:
    """Return how many CQs each subscriber has; raises `StoreUnavailable`."""
    connection = Connection(settings)
    with mapped():
        counts = connection.redis.hgetall(connection.keys.subscribers)
    return {Subscriber(_text(name)): int(count) for name, count in counts.items()}


def order_refill(settings: Settings) -> None:
    """Remove the epoch from Redis; within a second, the gateway notices this and fills Redis from the catalog."""
    connection = Connection(settings)
    with connection.writing() as pipeline:
        pipeline.set(connection.keys.doubted, 1)
        pipeline.delete(connection.keys.epoch)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")
