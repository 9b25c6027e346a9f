"""How often each destination was met, and when last: for DESCRIBE.

Workers push a packed blob per task, indexed by the destination's dense number; here they are summed into arrays. After
a crash some tasks may count twice or not at all: the figures inform, nothing is decided by them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from gateway.working_copy import WorkingCopy
from grouping.redis_store import mapped

__all__ = ["MatchCounts"]

_BYTES_A_CALL = 1_000_000
"""Bytes written for each call of `save`, on average and for each stream."""


class MatchCounts:
    """Matches by stream and destination number."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self._counts: dict[str, np.ndarray] = {}
        self._last_ms: dict[str, np.ndarray] = {}
        self._changed: set[str] = set()
        self._saved_up: dict[str, int] = {}
        """By stream: bytes that may be written."""

    def open(self) -> None:
        """Read what was saved."""
        self._counts, self._last_ms = {}, {}
        for stream_id in self._working.streams:
            with mapped():
                body = self._working.redis.get(self._working.key("match-counts", stream_id))
            if body is not None:
                counts, last_ms = (np.frombuffer(part, np.int64).copy() for part in msgspec.msgpack.decode(body))
                self._counts[stream_id], self._last_ms[stream_id] = counts, last_ms

    def save(self, *, all_of_it: bool = False) -> None:
        """Write what has changed where the next gateway finds it.

        Args:
            all_of_it: Whether to write large arrays too. Otherwise they wait for some calls: with a million CQs each
                writing is 16 MB, also of the append-only file.
        """
        for stream_id in self._changed & self._counts.keys() & self._working.streams.keys():
            counts, last_ms = self._counts[stream_id], self._last_ms[stream_id]
            self._saved_up[stream_id] = self._saved_up.get(stream_id, 0) + _BYTES_A_CALL
            if self._saved_up[stream_id] < counts.nbytes + last_ms.nbytes and not all_of_it:
                continue
            body = msgspec.msgpack.encode((counts.tobytes(), last_ms.tobytes()))
            with mapped():
                self._working.redis.set(self._working.key("match-counts", stream_id), body)
            self._changed.discard(stream_id)
            del self._saved_up[stream_id]
        self._changed &= self._counts.keys() & self._working.streams.keys()

    def step(self) -> None:
        """Take in what the workers have pushed."""
        for stream_id in list(self._working.streams):
            self._drain(stream_id)

    def of(self, stream_id: str, number: int) -> tuple[int, int | None]:
        """Return a destination's matches and the time of the last one, epoch milliseconds."""
        self._drain(stream_id)
        counts = self._counts.get(stream_id)
        if counts is None or number >= len(counts) or not counts[number]:
            return 0, None
        return int(counts[number]), int(self._last_ms[stream_id][number])

    def forget(self, freed: Iterable[tuple[str, int]]) -> None:
        """Let numbers, each of a stream, start from nothing when they are given anew."""
        for stream_id, number in freed:
            counts = self._counts.get(stream_id)
            if counts is not None and number < len(counts):
                counts[number] = 0
                self._changed.add(stream_id)

    def _drain(self, stream_id: str) -> None:
        with mapped():
            bodies = self._working.redis.lpop(self._working.key("matches", stream_id), 1000) or []
        for body in bodies:
            last_ms, packed_numbers, packed_counts = msgspec.msgpack.decode(body)
            numbers = np.frombuffer(packed_numbers, np.int32)
            if not len(numbers):
                continue
            self._grow(stream_id, int(numbers.max()) + 1)
            np.add.at(self._counts[stream_id], numbers, np.frombuffer(packed_counts, np.int32))
            last = self._last_ms[stream_id]
            last[numbers] = np.maximum(last[numbers], last_ms)
            self._changed.add(stream_id)

    def _grow(self, stream_id: str, size: int) -> None:
        old = self._counts.get(stream_id)
        have = 0 if old is None else len(old)
        if size <= have:
            return
        size = max(size, 2 * have, 1024)
        for arrays in (self._counts, self._last_ms):
            grown = np.zeros(size, np.int64)
            if have:
                grown[:have] = arrays[stream_id]
            arrays[stream_id] = grown
