"""Stays of CQs in their destinations: when they begin and end, and what is told when they do.

A destination may end and be taken up again within one unit of work. Readers tell incarnations apart by their times,
so a stay begins later than whatever ended in its place.
"""

from __future__ import annotations

import msgspec

from gateway.state.members import member_token
from gateway.state.records import Cq, Destination, EndNotice
from gateway.state.unit import CqKey
from gateway.state.working_copy import WorkingCopy

__all__ = ["Stays"]


class Stays:
    """The stays that begin and end in a unit of work."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self.begin()

    def begin(self) -> None:
        """Start a unit of work."""
        self._notices: list[EndNotice] = []
        self._left: dict[CqKey | str, int] = {}
        """When CQs left a destination, and when destinations ended, by id."""
        self._leaves: dict[EndNotice, list[str]] = {}
        """The tokens of members that left destinations to others."""

    def moment(self, key: CqKey, destination_id: str, now_ms: int) -> int:
        """Return when a command acts that lets a CQ stay in a destination, epoch milliseconds.

        Args:
            key: The CQ's identity; loaded.
            destination_id: Where it is to be.
            now_ms: The present.
        """
        cq = self._working.cq(key)
        before = (self._left.get(key), self._left.get(destination_id), self._working.ending.get(destination_id))
        return max(now_ms, 0 if cq is None else cq.latest_ms, *(at_ms + 1 for at_ms in before if at_ms is not None))

    def token(self, key: CqKey, cq: Cq) -> str:
        """Return what a CQ is called in its destination."""
        return member_token(self._working.secret, key, cq)

    def leave(
        self, key: CqKey, cq: Cq, destination: Destination, at_ms: int, reason: str, until: tuple[int, ...] = ()
    ) -> None:
        """Note that a CQ has left its destination to others."""
        self._left[key] = at_ms
        stream_id = destination.stream_id
        version, source = self._working.versions[stream_id] + 1, self._working.streams[stream_id].name
        notice = EndNotice(destination, at_ms, reason, version, source, until=until)
        self._leaves.setdefault(notice, []).append(self.token(key, cq))

    def end(self, key: CqKey, destination: Destination, at_ms: int, reason: str, until: tuple[int, ...] = ()) -> None:
        """Note that a destination has ended with the last CQ."""
        self._left[key] = self._left[destination.destination_id] = at_ms
        working, stream_id = self._working, destination.stream_id
        version, source = working.ended_version(destination), working.streams[stream_id].name
        if destination.trigger.timed:
            timed, ranked = working.ended_note(destination), destination.clause.kind == "top"
            select = working.select(stream_id, destination.select_id) if ranked else None
            notice = EndNotice(destination, at_ms, reason, version, source, timed=timed, select=select)
        else:
            # Those who left before may have something to come, and `cq.end` is the last of all.
            until = until or working.awaited(destination.destination_id)
            notice = EndNotice(destination, at_ms, reason, version, source, until=until)
        self._notices.append(notice)

    def finish(self) -> list[EndNotice]:
        """Return the notices of the unit, and begin the next one."""
        leaves = [msgspec.structs.replace(notice, members=tuple(some)) for notice, some in self._leaves.items()]
        notices = [*self._notices, *leaves]
        self.begin()
        return notices
