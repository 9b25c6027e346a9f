"""Notices of ends: the messages due when a destination ended, or when members left a destination."""

from __future__ import annotations

import msgspec

from gateway.model.records import Destination, TimedNote
from grouping.model.ids import DestinationId
from grouping.plan.group import GroupPlan, SelectList

__all__ = ["EndNotice", "end_key"]


class EndNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of an incarnation of a destination, or the departure of members, until all messages are written.

    An incarnation begins with the first member and ends with the last; the destination may be taken up again at once.
    """

    destination: Destination
    ended_ms: int
    reason: str
    """``expired``, ``dropped`` or ``replaced``."""
    version: int
    """No batch that was pinned before this version may still be under way when `cq.end` or `cq.leave` is written."""
    source: str
    """The stream's name, which may be gone by then."""
    written: bool = False
    """Whether `cq.end` is out, so that only the topic is left to delete."""
    timed: TimedNote = TimedNote()
    """For a timer-based destination, whose last digest may still come."""
    select: SelectList | None = None
    """For a last digest that needs the columns' types: the stream's own may be gone by then."""
    until: tuple[int, ...] = ()
    """By source partition, the offset up to which events still count; none once they are evaluated."""
    plan: GroupPlan | None = None
    """The plan, for a query over groups: the last digest needs it."""
    members: tuple[str, ...] = ()
    """The tokens of the members that left; empty if the destination ended."""
    after_ms: int = 0
    """When the incarnation before ended, if its `cq.end` is still to be written and comes first; else 0."""
    written_ms: int = 0
    """When `cq.end` was written; 0 if an earlier version noted only the fact."""

    @property
    def lingers_since_ms(self) -> int:
        """Since when its readers can read the end: a notice may wait long for the evaluator."""
        return self.written_ms or self.ended_ms

    @property
    def key(self) -> str:
        """Its key: incarnations of a destination end at different times, and a member leaves once."""
        name = self.destination.destination_id
        return f"{name}/leave/{self.members[0]}" if self.members else end_key(name, self.ended_ms)


def end_key(destination_id: DestinationId, ended_ms: int) -> str:
    """Return the key of the notice of an end."""
    return f"{destination_id}/{ended_ms}"
