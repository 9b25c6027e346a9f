"""The ids of answered commands, and the choice of the first reply to each command."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from gateway.state.working_copy import WorkingCopy
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped

__all__ = ["NOT_REMEMBERED", "CommandIds", "remembered_id"]

NOT_REMEMBERED = ("remembered", b"no")
"""The header of replies that must not count as first replies when recovery reads `cq.replies`."""


def remembered_id(headers: Sequence[tuple[str, bytes | None]]) -> str | None:
    """Return the command id in the headers of a reply; None if the reply cannot be a first reply."""
    if not headers or headers[0][0] != "command_id" or NOT_REMEMBERED in headers:
        return None
    return (headers[0][1] or b"").decode("utf-8", "surrogatepass")


class CommandIds:
    """Command ids, and the places of their first replies on `cq.replies` (gateway/README.md).

    Redis has two generations of ids. Each generation has the ids of a period (`commands.remember_days`), so each id is
    kept for at least one period. The object has its own connection to Redis; only one thread at a time may use it.
    """

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        self._redis = connect(settings)
        self._connection = working.connection
        self._keys = working.connection.keys
        self._period_ms = round(settings.commands.remember_days * 86_400_000)

    @staticmethod
    def key(subscriber: bytes, command_id: str) -> bytes:
        """Return the key under which a subscriber's command id is remembered."""
        text = subscriber + b"\x00" + command_id.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=12).digest()

    def find(self, keys: list[bytes], now_ms: int) -> dict[bytes, tuple[int, int]]:
        """Return key → partition and offset of the first reply, for keys of repeated commands."""
        found: dict[bytes, tuple[int, int]] = {}
        if not keys:
            return found
        period = now_ms // self._period_ms
        for generation in (period - 1, period):
            with mapped():
                places = self._redis.hmget(self._keys.ids(generation), keys)
            for key, place in zip(keys, places, strict=True):
                if place is not None:
                    partition, offset = place.split(b"/")
                    found[key] = (int(partition), int(offset))
        return found

    def settle(self, places: Mapping[bytes, tuple[int, int]], also: Mapping[str, str | bytes], now_ms: int) -> None:
        """Store the places of replies that are on Kafka, together with further Redis keys, in one transaction."""
        with self._connection.writing(self._redis) as pipeline:
            if places:
                name = self._keys.ids(now_ms // self._period_ms)
                pipeline.hset(name, mapping={key: b"%d/%d" % (part, offset) for key, (part, offset) in places.items()})
                pipeline.pexpire(name, 2 * self._period_ms)
            for key, value in also.items():
                pipeline.set(key, value)
