"""Limits how many commands a subscriber may send a second. Refusing a command costs hardly any time."""

from __future__ import annotations

import math

from grouping.model.errors import InputError

__all__ = ["CommandRates"]

_SECONDS = 10
"""A full bucket allows as many commands at once as the rate allows in this number of seconds. An empty bucket is full
again after this time."""
_KNOWN = 100_000
"""The largest number of buckets in memory. If there are more, all buckets are forgotten, so that all are full again."""


class CommandRates:
    """A token bucket for each subscriber."""

    def __init__(self) -> None:
        """Begin with full buckets."""
        self._left: dict[bytes, tuple[float, int]] = {}
        """Subscriber → number of commands left in its bucket, and the time of this number, epoch milliseconds."""

    def refusal(self, subscriber: bytes, per_second: int, now_ms: int) -> InputError | None:
        """Count a command, and return None; return the refusal if the bucket is empty.

        Args:
            subscriber: The sender.
            per_second: The number of commands that the sender may send a second; 0 for any number.
            now_ms: The present, epoch milliseconds.
        """
        if not per_second:
            return None
        rate, most = per_second / 1000, per_second * _SECONDS
        left, since_ms = self._left.get(subscriber, (most, now_ms))
        left = min(left + rate * max(now_ms - since_ms, 0), most)
        if left >= 1:
            self._keep(subscriber, left - 1, now_ms)
            return None
        return InputError(
            "you send too many commands",
            code="quota-exceeded",
            detail=f"A subscriber may send {per_second} a second, averaged over {_SECONDS} seconds.",
            hint=f"Send it again in {math.ceil((1 - left) / per_second)} s, under another command_id.",
        )

    def give_back(self, subscriber: bytes) -> None:
        """Undo the count of a command that is not carried out now. The command is counted again later."""
        if subscriber in self._left:
            left, since_ms = self._left[subscriber]
            self._left[subscriber] = (left + 1, since_ms)

    def _keep(self, subscriber: bytes, left: float, now_ms: int) -> None:
        if len(self._left) >= _KNOWN:
            self._left.clear()
        self._left[subscriber] = (left, now_ms)
