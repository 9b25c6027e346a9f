"""Last digests: what is pending when a destination ends, unless it was dropped, comes just before its `cq.end`."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.commit import Commits
from gateway.kafka import Outgoing
from gateway.records import EndNotice
from gateway.timers.deliver import digest_records
from gateway.timers.pending_index import store_key
from gateway.timers.timers import Timers
from gateway.working_copy import WorkingCopy
from grouping.settings import Settings

__all__ = ["LastDigests"]

_UNIT_BYTES = 1 << 20


class LastDigests:
    """What timers have to do with ends of destinations."""

    def __init__(self, settings: Settings, working: WorkingCopy, timers: Timers, commits: Commits) -> None:
        self._settings = settings
        self._working = working
        self._timers = timers
        self._commits = commits
        self._clear: dict[str, int] = {}
        """Destinations to which nothing is written any more: how often everything had been taken in by then."""

    def reload(self, notices: Iterable[EndNotice]) -> None:
        """Take up the ends that are under way, after a crash."""
        self._clear.clear()
        for notice in notices:
            self.hold(notice)

    def owes(self, notice: EndNotice) -> bool:
        """Tell whether a destination may have a last digest to come."""
        timed = notice.destination.trigger.timed
        return timed and not notice.written and notice.reason != "dropped"

    def hold(self, notice: EndNotice) -> None:
        """Keep the matches of a destination whose end has begun."""
        if self.owes(notice):
            self._timers.hold(_store(notice))

    def of(self, notice: EndNotice) -> list[Outgoing] | None:
        """Return the records of a last digest, none where nothing is pending; None when it is too early to tell.

        Args:
            notice: Of a destination to which no batch under way writes.
        """
        if not self.owes(notice):
            return []
        name, taken_in = notice.destination.destination_id, self._timers.taken_in
        # What is being taken in now was asked for before: the next time has all that was written by now.
        if not taken_in or taken_in < self._clear.setdefault(name, taken_in + 2):
            return None
        del self._clear[name]
        ready = self._timers.last_digest(notice)
        self._timers.let_go(_store(notice))
        if ready is None:
            return []
        records: list[Outgoing] = []
        size = 0
        for record in digest_records(self._settings, self._working, ready, notice.ended_ms, notice.select):
            records.append(record)
            size += len(record.value or b"")
            if size > _UNIT_BYTES:
                # Too much for a unit of work; written again after a crash they are the same.
                self._commits.write_records(records)
                records, size = [], 0
        return records

    def forget(self, notice: EndNotice) -> list[Outgoing]:
        """Let go of a destination for good, within the unit of work, and return the records that say so."""
        if not notice.destination.trigger.timed:
            return []
        name = notice.destination.destination_id
        self._working.set_field("cursors", name, None)
        self._timers.let_go(_store(notice))
        return [Outgoing(self._settings.topic("ticks"), f"cursor/{name}".encode(), None, (), 0)]


def _store(notice: EndNotice) -> bytes:
    return store_key(notice.timed.store)
