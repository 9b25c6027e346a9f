"""Notices of ends: they stay until all messages about a destination's end, or about departed members, are written."""

from __future__ import annotations

import msgspec

from gateway.model.records import Destination, TimedNote
from grouping.model.ids import DestinationId
from grouping.plan.group import GroupPlan, SelectList

__all__ = ["EndNotice", "end_key"]


class EndNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of an incarnation of a destination, or the departure of members.

    An incarnation begins with the first member and ends with the last; the destination may be used again immediately.
    """

    destination: Destination
    ended_ms: int
    reason: str
    """``expired``, ``dropped`` or ``replaced``."""
    version: int
    """A version: `cq.end` or `cq.leave` is written when no micro-batch pinned before it is under way."""
    source: str
    """The stream's name, as the stream may be gone when the end is written."""
    written: bool = False
    """Whether `cq.end` is written, so that only the topic is left to delete."""
    timed: TimedNote = TimedNote()
    """For a timer-based destination, its visible matches: its last digest may still come."""
    select: SelectList | None = None
    """For a last digest that needs the columns' types, since the stream may be gone by then."""
    until: tuple[int, ...] = ()
    """By source partition, the offset up to which events still count; empty once they are evaluated."""
    plan: GroupPlan | None = None
    """The plan of an aggregate query, which its last digest needs."""
    members: tuple[str, ...] = ()
    """The tokens of the members that left; empty if the destination ended."""
    after_ms: int = 0
    """When the previous incarnation ended, if its `cq.end` is not written yet and must come first; else 0."""
    written_ms: int = 0
    """When `cq.end` was written; 0 in a notice of an earlier version, which notes only the fact."""

    @property
    def lingers_since_ms(self) -> int:
        """Since when readers can read the end; a notice may wait long for the evaluator."""
        return self.written_ms or self.ended_ms

    @property
    def key(self) -> str:
        """The notice's key: incarnations of a destination end at different times, and a member leaves once."""
        name = self.destination.destination_id
        return f"{name}/leave/{self.members[0]}" if self.members else end_key(name, self.ended_ms)


def end_key(destination_id: DestinationId, ended_ms: int) -> str:
    """Return the key of the notice of an end."""
    return f"{destination_id}/{ended_ms}"
