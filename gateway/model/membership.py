"""A destination with its members, and the record times that they see."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np

from gateway.model.records import Cq, Destination, TimedNote, TriggerSpec
from grouping.digests.cursor import Window
from grouping.model.panes import pack_bounds

__all__ = ["ALWAYS", "Membership", "union"]

ALWAYS = ","
"""The window without bounds, as a membership's key."""


class Membership(msgspec.Struct, array_like=True):
    """A destination with its members."""

    destination: Destination
    number: int
    """Where its matches are counted, dense within the stream."""
    windows: dict[str, int] = {}
    """Live, unpaused members by window (``start,expire`` as text)."""
    paused: int = 0
    """Paused members."""
    timed: TimedNote = TimedNote()
    bounds: dict[str, int] = {}
    """For a store of groups: live, unpaused members by the bound of their ticks (``period,phase`` as text)."""

    def count(self, cq: Cq, by: int, trigger: TriggerSpec | None = None) -> None:
        """Add (or with -1 remove) a member.

        Args:
            cq: The member.
            by: 1 or -1.
            trigger: When it fires; a store of groups needs it.
        """
        if cq.paused:
            self.paused += by
            return
        _add(self.windows, _window_key(*cq.window), by)
        if self._of_groups and trigger is not None:
            _add(self.bounds, _window_key(*trigger.bound), by)

    @property
    def _of_groups(self) -> bool:
        return self.destination.slots is not None and self.destination.mode == "pending"

    @property
    def packed_bounds(self) -> bytes:
        """The bounds of a store of groups: ticks, START and EXPIRE of live, unpaused members; else nothing."""
        if not self._of_groups:
            return b""
        instants = [(0, at_ms) for key in self.windows for at_ms in _window(key) if at_ms is not None]
        # A store may have a hundred thousand readers, so their bounds are read at once.
        ticks = np.fromstring(",".join(self.bounds), np.int64, sep=",") if self.bounds else np.empty(0, np.int64)
        return pack_bounds(np.concatenate((np.array(instants, np.int64).ravel(), ticks)))

    @property
    def members(self) -> int:
        """All CQs that share the destination, paused ones included."""
        return self.paused + sum(self.windows.values())

    @property
    def seen(self) -> list[Window]:
        """The record times that at least one live, unpaused member sees, as disjoint windows."""
        if ALWAYS in self.windows:
            return [(None, None)]
        if len(self.windows) < 2:
            return [_window(key) for key in self.windows]
        windows = [_window(key) for key in self.windows if key[0] != ","]
        # Of those without START the last EXPIRE tells, and there may be a million.
        if ends := [int(key[1:]) for key in self.windows if key[0] == ","]:
            windows.append((None, max(ends)))
        return union(windows)

    def outlives(self, at_ms: int) -> bool:
        """Tell whether a member stays when all have gone that expire by an instant."""
        return bool(self.paused) or any(end is None or end > at_ms for _, end in map(_window, self.windows))


def _add(counts: dict[str, int], key: str, by: int) -> None:
    left = counts.get(key, 0) + by
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)


@lru_cache(maxsize=4096)
def _window(key: str) -> Window:
    start, expire = key.split(",")
    return (int(start) if start else None, int(expire) if expire else None)


@lru_cache(maxsize=4096)
def _window_key(start: int | None, expire: int | None) -> str:
    return f"{'' if start is None else start},{'' if expire is None else expire}"


def union(windows: list[Window]) -> list[Window]:
    """Return the same times as disjoint, ordered windows.

    Example:
        >>> union([(None, 10), (20, 30), (5, 12)])
        [(None, 12), (20, 30)]
    """
    merged: list[Window] = []
    for start, expire in sorted(windows, key=lambda window: (window[0] is not None, window[0] or 0)):
        if merged:
            last_start, last_expire = merged[-1]
            if last_expire is None:
                break
            if start is None or start <= last_expire:
                longest = None if expire is None else max(expire, last_expire)
                merged[-1] = (last_start, longest)
                continue
        merged.append((start, expire))
    return merged
