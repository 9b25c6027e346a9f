"""A destination with its members, and the record times that its members see."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from gateway.model.records import Cq, Destination, TimedNote
from gateway.model.trigger_spec import TriggerSpec
from grouping.digests.cursor import Window
from grouping.model.panes import pack_bounds

__all__ = ["ALWAYS", "Membership", "union"]

ALWAYS = ","
"""In `Membership.windows`, the key of the window that has neither START nor EXPIRE."""


class Membership(msgspec.Struct, array_like=True):
    """A destination with its members."""

    destination: Destination
    number: int
    """The destination's index in the match counts of its stream; numbers of ended destinations are used again, so the
    numbers have few gaps."""
    windows: dict[str, int] = {}
    """Window (``start,expire`` as text) → number of live, unpaused members."""
    paused: int = 0
    """The number of paused members."""
    timed: TimedNote = TimedNote()
    """For a timer-based destination: its beginning and the matches that it sees."""
    bounds: dict[str, int] = {}
    """For a store of aggregates: the instants of possible ticks (``period,phase`` in milliseconds, as text) → number of
    live, unpaused members with these ticks."""
    moved_bounds: set[tuple[str, str]] = set()
    """For a store of aggregates: keys of `windows` and `bounds` that appeared or disappeared in this unit of work."""

    def count(self, cq: Cq, by: int, trigger: TriggerSpec | None = None) -> None:
        """Add a member, or remove it with `by` = -1.

        Args:
            cq: The member.
            by: 1 or -1.
            trigger: The CQ's trigger, which a store of aggregates needs.
        """
        if cq.paused:
            self.paused += by
            return
        window = _pair_key(*cq.window)
        moved = _add(self.windows, window, by)
        if self._of_aggregates and trigger is not None:
            bound = _pair_key(*trigger.bound)
            if moved:
                self.moved_bounds ^= {("window", window)}
            if _add(self.bounds, bound, by):
                self.moved_bounds ^= {("tick", bound)}

    @property
    def _of_aggregates(self) -> bool:
        return self.destination.slots is not None and self.destination.mode == "pending"

    @property
    def packed_bounds(self) -> bytes:
        """The packed bounds of the panes of a store of aggregates: ticks, START and EXPIRE of live, unpaused members.

        The value is empty for other destinations.
        """
        if not self._of_aggregates:
            return b""
        # A store may have a hundred thousand readers, so all bounds are parsed in one call.
        instants = _numbers(at_ms for at_ms in ",".join(self.windows).split(",") if at_ms)
        single = np.stack((np.zeros_like(instants), instants), axis=1)
        return pack_bounds(np.concatenate((single.ravel(), _numbers(self.bounds))))

    @property
    def members(self) -> int:
        """The number of CQs that share the destination, including paused CQs."""
        return self.paused + sum(self.windows.values())

    @property
    def seen(self) -> list[Window]:
        """The record times seen by at least one live, unpaused member, as disjoint windows."""
        if ALWAYS in self.windows:
            return [(None, None)]
        if len(self.windows) < 2:
            return [_window(key) for key in self.windows]
        windows = [_window(key) for key in self.windows if key[0] != ","]
        # For windows without START only the latest EXPIRE matters, and there may be a million such windows.
        if ends := [int(key[1:]) for key in self.windows if key[0] == ","]:
            windows.append((None, max(ends)))
        return union(windows)

    @property
    def last_ms(self) -> int | None:
        """When the last member expires, epoch milliseconds.

        The value is None if a member has no EXPIRE or is paused, or if the destination has no members.
        """
        seen = self.seen
        return None if self.paused or not seen else seen[-1][1]

    def outlives(self, at_ms: int) -> bool:
        """Tell whether a member is left after all members that expire by an instant have left."""
        return bool(self.paused) or any(end is None or end > at_ms for _, end in map(_window, self.windows))


def _add(counts: dict[str, int], key: str, by: int) -> bool:
    """Count a member, and tell whether its key appeared or disappeared."""
    before = counts.get(key, 0)
    if left := before + by:
        counts[key] = left
    else:
        counts.pop(key, None)
    return not (before and left)


def _numbers(texts: Iterable[str]) -> NDArray[np.int64]:
    """Return the numbers in texts; each text holds one or more numbers with commas between them."""
    text = ",".join(texts)
    return np.fromstring(text, np.int64, sep=",") if text else np.empty(0, np.int64)


@lru_cache(maxsize=4096)
def _window(key: str) -> Window:
    start, expire = key.split(",")
    return (int(start) if start else None, int(expire) if expire else None)


@lru_cache(maxsize=4096)
def _pair_key(start: int | None, expire: int | None) -> str:
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
