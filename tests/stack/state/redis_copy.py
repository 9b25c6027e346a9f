"""Earlier copies of a prefix's keys in Redis, and a Redis set back to an earlier copy."""

from __future__ import annotations

import json
from typing import NamedTuple

from grouping.settings.settings import Settings
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys

__all__ = ["RedisCopy"]


class RedisCopy(NamedTuple):
    """All keys under a prefix as they were at a moment."""

    dumps: dict[bytes, bytes]

    @classmethod
    def of(cls, settings: Settings) -> RedisCopy:
        """Copy the present keys."""
        redis = connect(settings)
        names = list(redis.scan_iter(match=RedisKeys.of(settings).everything, count=1000))
        pipeline = redis.pipeline(transaction=True)
        for name in names:
            pipeline.dump(name)
        bodies = pipeline.execute() if names else []
        redis.close()
        return cls({name: body for name, body in zip(names, bodies, strict=True) if body is not None})

    def put_back(self, settings: Settings, *, other_run: bool) -> None:
        """Set Redis back to this copy, and remove all later keys.

        Args:
            settings: The settings of the prefix.
            other_run: Whether the server has a new run id, as after a restart or a failover.
        """
        redis = connect(settings)
        leases = f"{RedisKeys.of(settings).start}:lease".encode()
        for name in list(redis.scan_iter(match=RedisKeys.of(settings).everything, count=1000)):
            if not name.startswith(leases):
                redis.delete(name)
        for name, body in self.dumps.items():
            if not name.startswith(leases):
                redis.restore(name, 0, body, replace=True)
        epoch = redis.get(RedisKeys.of(settings).epoch)
        if other_run and epoch:
            redis.set(RedisKeys.of(settings).epoch, json.dumps({**json.loads(epoch), "run_id": "another"}))
        redis.close()
