"""The number of matches of each destination, and the time of the last match, for DESCRIBE.

Each task pushes a tally to Redis: the number of its matches for each destination, by `Membership.number`. The gateway
adds the tallies to arrays. While no gateway reads the tallies, workers merge them. Matches of a replayed micro-batch
are counted once. After a crash, matches of some tasks may be missing, and after the loss of a checkpoint, some matches
are counted twice. No decision depends on these figures.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gateway.model.rotation import Rotation
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import StreamId
from grouping.store.connection import mapped
from grouping.store.match_tally import MatchTally

__all__ = ["MatchCounts"]

_BLOCK = 1 << 16
"""The number of destinations in a block. A block is saved as a whole. The write is short, since a block has a
megabyte."""
_AT_ONCE = 200
"""The largest number of tallies that are added at once; each has at most a megabyte."""


class MatchCounts:
    """Matches by stream and destination number."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self._connection = working.connection
        self._rotation = Rotation()
        self._counts: dict[StreamId, np.ndarray] = {}
        self._last_ms: dict[StreamId, np.ndarray] = {}
        self._changed: dict[StreamId, set[int]] = {}
        """Stream → blocks of counts that have changed since they were saved."""
        self._saved: dict[StreamId, int] = {}
        """Stream → block that was saved last."""
        self._stored: dict[StreamId, set[int]] = {}
        """Stream → blocks that were saved to Redis."""

    def open(self) -> None:
        """Read the saved counts."""
        self._counts, self._last_ms, self._changed, self._stored = {}, {}, {}, {}
        for stream_id in self._working.inventory.streams:
            with mapped():
                bodies = self._connection.redis.hgetall(self._key(stream_id))
            for block, body in bodies.items():
                counts, last_ms = np.frombuffer(body, np.int64).reshape(2, -1)
                begin = int(block) * _BLOCK
                end = begin + len(counts)
                self._grow(stream_id, end)
                self._counts[stream_id][begin:end], self._last_ms[stream_id][begin:end] = counts, last_ms
                self._stored.setdefault(stream_id, set()).add(int(block))

    def _key(self, stream_id: StreamId) -> str:
        return self._connection.keys.match_totals(stream_id)

    def save(self, *, all_blocks: bool = False) -> None:
        """Save the counts that have changed, for the next gateway.

        Args:
            all_blocks: Whether to write all changed blocks. Otherwise, each call writes only one block of each stream,
                because the counts of a million CQs have 16 MB, which Redis also writes to its append-only file.
        """
        self._note_lost()
        for stream_id in self._changed.keys() & self._working.inventory.streams.keys():
            changed, last = self._changed[stream_id], self._saved.get(stream_id, -1)
            blocks = sorted(changed, key=lambda block: (block <= last, block))[: None if all_blocks else 1]
            for block in blocks:
                part = slice(block * _BLOCK, (block + 1) * _BLOCK)
                body = self._counts[stream_id][part].tobytes() + self._last_ms[stream_id][part].tobytes()
                with self._connection.writing() as pipeline:
                    pipeline.hset(self._key(stream_id), str(block), body)
                changed.discard(block)
                self._saved[stream_id] = block
                self._stored.setdefault(stream_id, set()).add(block)

    def _note_lost(self) -> None:
        """If Redis has lost saved blocks of a stream, mark all its saved blocks as changed, to save them again."""
        streams = [name for name in self._stored if name in self._working.inventory.streams]
        with mapped():
            pipeline = self._connection.redis.pipeline(transaction=False)
            for stream_id in streams:
                pipeline.hlen(self._key(stream_id))
            sizes = pipeline.execute() if streams else []
        for stream_id, size in zip(streams, sizes, strict=True):
            if size < len(self._stored[stream_id]):
                self._note(stream_id, self._stored[stream_id])

    def step(self) -> None:
        """Add the tallies that workers have pushed."""
        for stream_id in self._rotation.choose(self._working.inventory.streams):
            self._drain(stream_id)

    def of(self, stream_id: StreamId, number: int) -> tuple[int, int | None]:
        """Return a destination's matches, and the time of the last match, epoch milliseconds."""
        self._drain(stream_id)
        counts = self._counts.get(stream_id)
        if counts is None or number >= len(counts) or not counts[number]:
            return 0, None
        return int(counts[number]), int(self._last_ms[stream_id][number])

    def forget(self, freed: Iterable[tuple[StreamId, int]]) -> None:
        """Reset the counts of ended destinations, given by stream and number: new destinations get these numbers."""
        for stream_id, number in freed:
            counts = self._counts.get(stream_id)
            if counts is not None and number < len(counts):
                counts[number] = 0
                self._note(stream_id, {number // _BLOCK})

    def _drain(self, stream_id: StreamId) -> None:
        with mapped():
            bodies = self._connection.redis.lpop(self._connection.keys.matches(stream_id), _AT_ONCE) or []
        for body in bodies:
            numbers, counts, last_ms = MatchTally.decode(body)
            self._grow(stream_id, int(numbers.max()) + 1)
            self._counts[stream_id][numbers] += counts
            last = self._last_ms[stream_id]
            last[numbers] = np.maximum(last[numbers], last_ms)
            self._note(stream_id, np.flatnonzero(np.bincount(numbers // _BLOCK)).tolist())

    def _note(self, stream_id: StreamId, blocks: Iterable[int]) -> None:
        self._changed.setdefault(stream_id, set()).update(blocks)

    def _grow(self, stream_id: StreamId, size: int) -> None:
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
