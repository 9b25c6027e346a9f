"""Fences: Redis refuses writes of a process that has been replaced.

A fence is a key that names the last holder of a lease. Unlike the lease, the fence does not lapse, so a suspended
holder that wakes up finds the name of its successor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped

__all__ = ["FRESH_SECONDS", "Fence", "FenceWatch", "LeaseLost", "transaction"]

# KEYS: fence. ARGV: token. If another process holds the fence, the script writes the fence with its present value: a
# transaction that watches the fence fails after any write to it.
_GUARD = """
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] then redis.call('SET', KEYS[1], holder or '') end
"""
_WAIT_SECONDS = 0.2
FRESH_SECONDS = 0.05
"""Seconds for which a task relies on the last answer of Redis, since a task may write thousands of times in a row."""


class LeaseLost(OperationalError):
    """Another process has taken the lease, or Redis has lost the lease. Writes under the lease's fence are refused."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence with the token of a holder. Fences can be pickled, since tasks get them."""

    key: str
    token: str
    """The token of the holder."""

    def transaction(self, client: Any) -> Any:
        """Return a pipeline whose commands Redis carries out in one transaction, if the fence still has this token.

        The pipeline's `execute` takes one round trip, and raises `LeaseLost` if another process has taken over.
        """
        return _FencedPipeline(client, self)


class FenceWatch:
    """Reads fences before writes, and caches the answers for `FRESH_SECONDS`. For one thread."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            clock: Monotonic seconds.
            sleep: Waits for some seconds.
        """
        self._redis = connect(settings)
        self._clock = clock
        self._sleep = sleep
        self._passed: tuple[Fence, float] | None = None

    def holder(self, fence: Fence) -> str | None:
        """Return the holder of a fence; None if Redis has lost it.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            holder = self._redis.get(fence.key)
        return holder.decode() if holder else None

    def note_holder(self, fence: Fence, holder: str | None, asked_at: float) -> None:
        """Note the holder of a fence from the answer to another request.

        Args:
            fence: The fence.
            holder: The holder; None if Redis has lost it.
            asked_at: The time of the request, by the watch's clock.
        """
        if holder == fence.token:
            self._passed = (fence, asked_at)

    def check(self, fence: Fence) -> None:
        """Return once Redis has confirmed the holder; wait while Redis does not answer, or has lost the holder.

        Raises:
            LeaseLost: Another process has taken over.
        """
        if self._passed is not None and self._passed[0] == fence and self._clock() < self._passed[1] + FRESH_SECONDS:
            return
        while True:
            asked_at = self._clock()
            try:
                holder = self.holder(fence)
            except OperationalError:
                holder = None
            if holder == fence.token:
                self._passed = (fence, asked_at)
                return
            if holder is not None:
                raise LeaseLost("another evaluator has taken over", detail="Nothing more is written.")
            self._sleep(_WAIT_SECONDS)


class _FencedPipeline(redis.client.Pipeline):
    """A transaction that is sent together with a check of the fence, and not run if another process has the fence."""

    def __init__(self, client: Any, fence: Fence) -> None:
        super().__init__(client.connection_pool, client.response_callbacks, True, None)
        self._fence = fence

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Carry out the commands, and return their answers.

        Raises:
            LeaseLost: Nothing was carried out.
        """
        commands = list(self.command_stack)
        key, token = self._fence.key, self._fence.token
        guard = (("WATCH", key), ("EVAL", _GUARD, 1, key, token), ("MULTI",))
        connection: Any = self.connection_pool.get_connection()
        try:
            connection.send_packed_command(
                connection.pack_commands([*guard, *(args for args, _ in commands), ("EXEC",)])
            )
            answers = [_answer(connection) for _ in range(len(guard) + len(commands) + 1)]
        finally:
            self.connection_pool.release(connection)
            self.reset()
        executed = answers.pop()
        if executed is None:
            raise LeaseLost("another process has taken over", detail="Redis was not written to.")
        for answer in (*answers, *(executed if isinstance(executed, list) else [executed])):
            if raise_on_error and isinstance(answer, Exception):
                raise answer
        callbacks = self.response_callbacks
        return [
            callbacks[args[0]](answer, **options) if args[0] in callbacks else answer
            for (args, options), answer in zip(commands, executed, strict=True)
        ]


def transaction(client: Any, fence: Fence | None) -> Any:
    """Return a pipeline whose commands Redis carries out in one transaction, under a fence if one is given."""
    return client.pipeline(transaction=True) if fence is None else fence.transaction(client)


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error
