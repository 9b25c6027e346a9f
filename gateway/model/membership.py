"""A destination with its members, and the record times that they see."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from gateway.model.records import Cq, Destination, TimedNote
from grouping.digests.cursor import Window

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

    def count(self, cq: Cq, by: int) -> None:
        """Add (or with -1 remove) a member."""
        if cq.paused:
            self.paused += by
            return
        key = _window_key(*cq.window)
        left = self.windows.get(key, 0) + by
        if left:
            self.windows[key] = left
        else:
            self.windows.pop(key, None)

    @property
    def members(self) -> int:
        """All CQs that share the destination, paused ones included."""
        return self.paused + sum(self.windows.values())

    @property
    def seen(self) -> list[Window]:
        """The record times that at least one live, unpaused member sees, as disjoint windows."""
        if ALWAYS in self.windows:
            return [(None, None)]
        windows = [_window(key) for key in self.windows]
        return union(windows) if len(windows) > 1 else windows

    def outlives(self, at_ms: int) -> bool:
        """Tell whether a member stays when all have gone that expire by an instant."""
        return bool(self.paused) or any(end is None or end > at_ms for _, end in map(_window, self.windows))


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
