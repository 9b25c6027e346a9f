"""The last digest of a destination: the matches that are still pending when the destination ends.

The last digest is published before `cq.end`. After a DROP there is no last digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.kafka import OutgoingRecord
from gateway.model.end_notice import EndNotice
from gateway.model.loaded import Loaded
from gateway.model.records import incarnation_of
from gateway.state.commit import Commits
from gateway.state.working_copy import WorkingCopy
from gateway.timers.deliver import DueDigest, digest_records
from gateway.timers.pending_index import store_key
from gateway.timers.timers import Timers
from grouping.settings.settings import Settings
from grouping.store.record_keys import TickKey

__all__ = ["LastDigests"]

_UNIT_BYTES = 1 << 20


class LastDigests:
    """The last digests of destinations that end, made by the timers."""

    def __init__(self, settings: Settings, working: WorkingCopy, timers: Timers, commits: Commits) -> None:
        self._settings = settings
        self._working = working
        self._timers = timers
        self._commits = commits
        commits.after_write.append(lambda work: self.hold(work.notices))
        self._clear: dict[str, int] = {}
        """The key of a notice whose CQs get no more matches → a number of finished probes (`Timers.taken_in`). When
        this many probes are finished, the gateway has all matches of these CQs."""
        self._last_ticks: dict[str, int] = {}
        """Key of a notice of departed members → the last tick whose digest may have their matches."""

    def reload(self, notices: Iterable[EndNotice]) -> None:
        """Begin again after a crash, and keep the matches of destinations whose ends have begun."""
        self._clear.clear()
        self._last_ticks.clear()
        self.hold(notices)

    def needs_digest(self, notice: EndNotice) -> bool:
        """Tell whether a destination may still need a last digest."""
        return _pending(notice) and not (notice.members or notice.written)

    def hold(self, notices: Iterable[EndNotice]) -> None:
        """Keep the matches of destinations whose ends have begun."""
        for notice in notices:
            if self.needs_digest(notice):
                self._timers.retention.hold(notice.destination.destination_id, _store(notice))

    def of(self, notices: Iterable[EndNotice]) -> Iterator[tuple[EndNotice, list[OutgoingRecord]]]:
        """Yield notices whose last digests can be made, with the records of the digest.

        The list of records is empty if no digest is needed.

        Args:
            notices: Notices of destinations to which no micro-batch writes any more.
        """
        owing: list[EndNotice] = []
        taken_in = self._timers.taken_in
        for notice in notices:
            if not notice.destination.trigger.timed:
                yield notice, []
                continue
            if self._timers.under_way(notice.destination.stream_id):
                # A Spark job may still write a digest of an earlier tick, and `cq.end` must be the last record.
                continue
            if notice.members and self._timers.waits(notice.destination):
                # A digest whose cut is decided must be written before `cq.leave`. Before `cq.end`, the gateway need not
                # wait for this digest: the last digest takes over the matches of digests that are not written yet.
                continue
            if not _pending(notice) or notice.written:
                yield notice, []
            # The probe that is under way may have begun before the last match was written. So the gateway has all
            # matches only when one more probe has finished too, that is, when the number has grown by two.
            elif taken_in and taken_in >= self._clear.setdefault(notice.key, taken_in + 2):
                if not notice.members:
                    owing.append(notice)
                elif self._fired(notice):
                    yield notice, []
        for notice, ready in self._timers.last_digests(owing):
            match ready:
                case None:
                    yield notice, []
                case OutgoingRecord():
                    yield notice, [ready]
                case _:
                    yield notice, self._records(notice, ready)

    def _fired(self, notice: EndNotice) -> bool:
        """Tell whether all digests that may have matches of the departed members are written."""
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
                # The records are too large for a unit of work, so they are written now. After a crash, the same records
                # are written again.
                self._commits.write_records(records)
                records, size = [], 0
        return records

    def forget(self, loaded: Loaded, notices: Iterable[EndNotice]) -> list[OutgoingRecord]:
        """Forget ended destinations, within the unit of work that writes their ends.

        Args:
            loaded: The loaded destinations.
            notices: The notices of the destinations.

        Returns:
            The records that delete the cursors of the destinations.
        """
        timed = [notice for notice in notices if notice.destination.trigger.timed]
        for notice in timed:
            self._clear.pop(notice.key, None)
            self._last_ticks.pop(notice.key, None)
        timed = [notice for notice in timed if not notice.members]
        unwritten = [notice for notice in timed if self.needs_digest(notice)]
        homes = [notice.destination for notice in unwritten]
        living = [home for home in homes if loaded.membership(home.destination_id) is not None]
        self._timers.retention.end_hold(((notice.destination, _store(notice)) for notice in unwritten), living)
        self._timers.retention.drop_unread(_store(notice) for notice in timed)
        incarnations = [incarnation_of(notice.destination.destination_id, notice.timed) for notice in timed]
        for incarnation in incarnations:
            self._working.unit.set_field("cursors", incarnation, None)
        topic = self._settings.topics.ticks
        return [OutgoingRecord(topic, TickKey.of("cursor", incarnation), None, (), 0) for incarnation in incarnations]


def _pending(notice: EndNotice) -> bool:
    """Tell whether pending matches of an ended destination, or of departed members, must still be published."""
    return notice.destination.trigger.timed and notice.reason != "dropped"


def _store(notice: EndNotice) -> bytes:
    return store_key(notice.timed.store)
