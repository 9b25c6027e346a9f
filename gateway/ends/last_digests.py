"""Last digests: what is pending when a destination ends, unless it was dropped, comes just before its `cq.end`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.kafka import OutgoingRecord
from gateway.model.end_notice import EndNotice
from gateway.model.records import incarnation_of
from gateway.state.commit import Commits
from gateway.state.working_copy import WorkingCopy
from gateway.timers.deliver import DueDigest, digest_records
from gateway.timers.pending_index import store_key
from gateway.timers.timers import Timers
from grouping.settings import Settings
from grouping.store.record_keys import TickKey

__all__ = ["LastDigests"]

_UNIT_BYTES = 1 << 20


class LastDigests:
    """The timers' part in the ends of destinations."""

    def __init__(self, settings: Settings, working: WorkingCopy, timers: Timers, commits: Commits) -> None:
        self._settings = settings
        self._working = working
        self._timers = timers
        self._commits = commits
        self._clear: dict[str, int] = {}
        """Notices of destinations to which nothing is written any more: how often all had been taken in by then."""
        self._last_ticks: dict[str, int] = {}
        """Notices of members that left a destination to others: the tick up to which digests may hold what they saw."""

    def reload(self, notices: Iterable[EndNotice]) -> None:
        """Take up the ends that are under way, after a crash."""
        self._clear.clear()
        self._last_ticks.clear()
        self.hold(notices)

    def owes(self, notice: EndNotice) -> bool:
        """Tell whether a destination may have a last digest to come."""
        return _pending(notice) and not (notice.members or notice.written)

    def hold(self, notices: Iterable[EndNotice]) -> None:
        """Keep the matches of destinations whose ends have begun."""
        for notice in notices:
            if self.owes(notice):
                self._timers.retention.hold(notice.destination.destination_id, _store(notice))

    def of(self, notices: Iterable[EndNotice]) -> Iterator[tuple[EndNotice, list[OutgoingRecord]]]:
        """Yield those for which it is time, with the records of their last digests: none where nothing is pending.

        Args:
            notices: Of destinations to which no batch under way writes.
        """
        owing: list[EndNotice] = []
        taken_in = self._timers.taken_in
        for notice in notices:
            timed = notice.destination.trigger.timed
            if timed and self._timers.under_way(notice.destination.stream_id):
                continue  # a digest that was due before the end may still come, and `cq.end` is the last of all
            if notice.members and self._timers.waits(notice.destination):
                continue  # so it may before a leave; at an end the last digest has what that one would have
            if not _pending(notice) or notice.written:
                yield notice, []
            # What is being taken in now was asked for before: the next time has all that was written by now.
            elif taken_in and taken_in >= self._clear.setdefault(notice.key, taken_in + 2):
                if not notice.members:
                    owing.append(notice)
                elif self._fired(notice):
                    yield notice, []
        for notice, ready in self._timers.last_digests(owing):
            yield notice, [] if ready is None else self._records(notice, ready)

    def _fired(self, notice: EndNotice) -> bool:
        """Tell whether the digests are out that may hold what members saw who left a destination to others."""
        last_ms = self._last_ticks.get(notice.key)
        if last_ms is None:
            last_ms = self._timers.tick_after(notice.destination, notice.ended_ms - 1)
            self._last_ticks[notice.key] = last_ms
        armed_ms = self._timers.armed_ms(notice.destination)
        return armed_ms is None or armed_ms > last_ms

    def _records(self, notice: EndNotice, ready: DueDigest) -> list[OutgoingRecord]:
        records: list[OutgoingRecord] = []
        size = 0
        for record in digest_records(self._settings, self._working, ready, notice.ended_ms):
            records.append(record)
            size += len(record.value or b"")
            if size > _UNIT_BYTES:
                # Too much for a unit of work; written again after a crash they are the same.
                self._commits.write_records(records)
                records, size = [], 0
        return records

    def forget(self, notices: Iterable[EndNotice]) -> list[OutgoingRecord]:
        """Let go of destinations within the unit of work that ends them, and return the records that say so.

        Args:
            notices: Of destinations that are loaded.
        """
        timed = [notice for notice in notices if notice.destination.trigger.timed]
        for notice in timed:
            self._clear.pop(notice.key, None)
            self._last_ticks.pop(notice.key, None)
        timed = [notice for notice in timed if not notice.members]
        owed = [notice for notice in timed if self.owes(notice)]
        memberships = self._working.unit.memberships
        living = [notice.destination for notice in owed if memberships[notice.destination.destination_id] is not None]
        self._timers.retention.let_go(((notice.destination, _store(notice)) for notice in owed), living)
        self._timers.retention.drop_unread(_store(notice) for notice in timed)
        incarnations = [incarnation_of(notice.destination.destination_id, notice.timed) for notice in timed]
        for incarnation in incarnations:
            self._working.unit.set_field("cursors", incarnation, None)
        topic = self._settings.topics.ticks
        return [OutgoingRecord(topic, TickKey.cursor(incarnation), None, (), 0) for incarnation in incarnations]


def _pending(notice: EndNotice) -> bool:
    """Tell whether what was pending for those who left is still to come."""
    return notice.destination.trigger.timed and notice.reason != "dropped"


def _store(notice: EndNotice) -> bytes:
    return store_key(notice.timed.store)
