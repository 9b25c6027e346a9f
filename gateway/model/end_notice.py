"""Notices of ends: a notice is kept until all records about the end, or about the departed members, are written."""

from __future__ import annotations

import msgspec

from gateway.model.records import Destination, TimedNote
from grouping.model.ids import DestinationId
from grouping.plan.group import GroupPlan, SelectList

__all__ = ["EndNotice", "end_key"]


class EndNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of an incarnation of a destination, or the departure of members.

    An incarnation begins when the first member joins, and ends when the last member leaves. The destination may be used
    again immediately.
    """

    destination: Destination
    ended_ms: int
    reason: str
    """``expired``, ``dropped`` or ``replaced``."""
    version: int
    """The first version of the constant tables without the destination or its departed members. `cq.end` or `cq.leave`
    is written when no micro-batch is under way that has pinned an earlier version."""
    source: str
    """The stream's name, as the stream may be gone when the end is written."""
    written: bool = False
    """Whether `cq.end` is written, so that only the topic is left to delete."""
    timed: TimedNote = TimedNote()
    """For a timer-based destination: its beginning and the matches that it sees, which the last digest needs."""
    select: SelectList | None = None
    """The SELECT list, if the last digest needs the columns' types. The stream may be gone when the digest is
    written."""
    until: tuple[int, ...] = ()
    """By source partition, the offset up to which events still count; empty after these events are evaluated."""
    plan: GroupPlan | None = None
    """The plan of an aggregate query, which its last digest needs."""
    members: tuple[str, ...] = ()
    """The tokens of the members that left; empty if the destination ended."""
    after_ms: int = 0
    """When the previous incarnation ended, epoch milliseconds, if its `cq.end` is not written yet and must come first;
    else 0."""
    written_ms: int = 0
    """When `cq.end` was written, epoch milliseconds; 0 before. A notice of an earlier version of the gateway has 0 too:
    that version set only `written`."""

    @property
    def lingers_since_ms(self) -> int:
        """The time from which the topic is kept for its readers, epoch milliseconds.

        The time is `written_ms` if known, because `cq.end` waits for the evaluator, and so may be written long after
        `ended_ms`.
        """
        return self.written_ms or self.ended_ms

    @property
    def key(self) -> str:
        """The notice's key, unique because incarnations end at different times and a member leaves only once."""
        name = self.destination.destination_id
        return f"{name}/leave/{self.members[0]}" if self.members else end_key(name, self.ended_ms)


def end_key(destination_id: DestinationId, ended_ms: int) -> str:
    """Return the key of the notice of an end."""
    return f"{destination_id}/{ended_ms}"
