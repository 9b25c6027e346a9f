"""Stays of CQs in their destinations: when a stay begins, and the notice of its end.

A destination may end and be created again within one unit of work. Readers distinguish the incarnations of a
destination by their times, so a stay begins later than the end of every earlier incarnation.
"""

from __future__ import annotations

from gateway.model.end_notice import EndNotice
from gateway.model.loaded import Loaded
from gateway.model.members import member_token
from gateway.model.records import Cq, Destination
from gateway.model.unit import CqKey
from gateway.model.unit_outcome import ended_note, ended_version
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import DestinationId

__all__ = ["Stays"]


class Stays:
    """Decides when stays begin, and makes the notices of their ends."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working

    def moment(self, loaded: Loaded, key: CqKey, destination_id: DestinationId, now_ms: int) -> int:
        """Return when a CQ's stay in a destination begins, epoch milliseconds.

        Args:
            loaded: The CQ, as loaded.
            key: The CQ's identity.
            destination_id: The destination that the CQ joins.
            now_ms: The present time.
        """
        cq, left, ending = loaded.cq(key), self._working.unit.left, self._working.inventory.ending
        moment = now_ms if cq is None else max(now_ms, cq.latest_ms)
        if left:
            moment = max(moment, left.get(key, 0) + 1, left.get(destination_id, 0) + 1)
        return max(moment, ending[destination_id] + 1) if destination_id in ending else moment

    def token(self, key: CqKey, cq: Cq) -> str:
        """Return the token that identifies a CQ as a member of its destination."""
        return member_token(self._working.secret, key, cq)

    def leave(
        self, key: CqKey, cq: Cq, destination: Destination, at_ms: int, reason: str, until: tuple[int, ...] = ()
    ) -> EndNotice:
        """Return the notice of a CQ that has left a destination which other CQs still use."""
        working, stream_id = self._working, destination.stream_id
        working.unit.left[key] = at_ms
        version, source = working.inventory.versions[stream_id] + 1, working.inventory.streams[stream_id].name
        members, until = (self.token(key, cq),), until or working.unit.left_until.get(key, ())
        return EndNotice(destination, at_ms, reason, version, source, until=until, members=members)

    def end(
        self, key: CqKey, destination: Destination, at_ms: int, reason: str, until: tuple[int, ...] = ()
    ) -> EndNotice:
        """Return the notice of a destination that has ended with its last CQ."""
        working, stream_id = self._working, destination.stream_id
        working.unit.left[key] = working.unit.left[destination.destination_id] = at_ms
        version, source = ended_version(working.unit, destination), working.inventory.streams[stream_id].name
        if destination.trigger.timed:
            timed, grouped = ended_note(working.unit, destination), destination.slots is not None
            ranked = grouped or destination.clause.kind == "top"
            select = working.select(stream_id, destination.select_id) if ranked else None
            plan = working.plan(stream_id, destination.group_id) if grouped else None
            return EndNotice(destination, at_ms, reason, version, source, timed=timed, select=select, plan=plan)
        # Members that left earlier may still wait for results, and `cq.end` comes after these results.
        until = until or working.unit.awaited(destination.destination_id)
        return EndNotice(destination, at_ms, reason, version, source, until=until)
