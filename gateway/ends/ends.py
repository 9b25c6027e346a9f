"""The end of a destination: writes `cq.end` after its last result, and deletes a dedicated topic some time later.

After a DROP, the events that were published before it are still evaluated for the CQ. Then the destination leaves the
constant tables. A micro-batch that has pinned earlier tables may still write results, so the end waits until no such
micro-batch is under way. A topic that is no longer used stays for a while: late readers need it, and a stream fails if
one of its tasks writes to a deleted topic. If a destination is used again, the readers of its earlier incarnation
still get `cq.end`. If other CQs stay in a destination, the readers of the CQs that have left get `cq.leave`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from gateway.ends.last_digests import LastDigests
from gateway.kafka import OutgoingRecord
from gateway.model.end_notice import EndNotice
from gateway.model.loaded import Loaded
from gateway.model.records import Destination, instant
from gateway.state.commit import Commits
from gateway.state.work import Change
from gateway.state.working_copy import WorkingCopy
from gateway.throttling.throttles import Throttles
from gateway.timers.stream_progress import covers
from gateway.topics.positions import dedicated_topic, topic_of
from gateway.topics.result_topics import ResultTopics
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings

__all__ = ["Ends", "end_record", "leave_records"]

_AT_ONCE = 8000
"""The largest number of notices that a unit of work examines."""
_UNIT_BYTES = 32 << 20
"""The approximate largest number of bytes of last digests in a unit of work."""


class Ends:
    """Carries out the ends of destinations, some thousands in a unit of work."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: ResultTopics,
        commits: Commits,
        last_digests: LastDigests,
        throttles: Throttles,
    ) -> None:
        self._settings = settings
        self._working = working
        self._topics = topics
        self._commits = commits
        self._last_digests = last_digests
        self._throttles = throttles
        self._notices = commits.notices
        self.busy = False
        """Whether the last step left many ends that are due. A few ends can wait, since each commit has a fixed
        cost."""

    def reload(self) -> None:
        """Read the notices from the working copy."""
        self._notices.reload()
        self._last_digests.reload(self._notices.open.values())
        self._topics.reload()
        self._topics.sweep(self._wanted_topics())

    def _wanted_topics(self) -> Iterator[str]:
        """Yield the topics of live destinations, and of ended destinations that readers may still read."""
        settings = self._settings
        yield from (topic_of(settings, each.destination) for each in self._notices.open.values())
        yield from (topic_of(settings, each.destination) for each in self._notices.lingering.values())
        yield from (dedicated_topic(settings, name) for name in self._working.inventory.dedicated)
        for stream_id in self._working.inventory.dependencies:
            yield from map(settings.topics.own_results, self._working.inventory.virtual_groups(stream_id))

    def step(self, now_ms: int, epoch: int) -> Change:
        """Carry out the ends that are due, within the unit of work.

        Returns:
            The change to write: last digests, ends and changed notices.
        """
        waiting = len(self._notices.open)
        some = list(self._notices.next(_AT_ONCE))
        loaded = self._load(some)
        records: list[OutgoingRecord] = []
        over: list[EndNotice] = []
        size = 0
        for notice, last in self._last_digests.of(self._due(loaded, some, epoch)):
            over.append(notice)
            for record in (*last, *_end_records(self._settings, notice)):
                records.append(record)
                size += len(record.value or b"")
            if size > _UNIT_BYTES:
                break
        records += self._last_digests.forget(loaded, over)
        for notice in over:
            records += self._forget_throttle(loaded, notice)
        # A topic is deleted only if an earlier unit has written its ends. The ends of this unit are not written yet.
        self._delete_topics(now_ms)
        for notice in over:
            if notice.members or notice.destination.mode == "shared" or _lives(loaded, notice):
                self._notices.remove(notice)
            else:
                self._notices.replace(msgspec.structs.replace(notice, written=True, written_ms=now_ms))
        changes = self._notices.changes()
        self.busy = bool(changes) and (waiting > _AT_ONCE or size > _UNIT_BYTES)
        return Change(catalog=tuple(changes), records=tuple(records))

    def _forget_throttle(self, loaded: Loaded, notice: EndNotice) -> list[OutgoingRecord]:
        destination = notice.destination
        if destination.trigger.at_most is None:
            return []
        ends_later = self._working.inventory.ending.get(destination.destination_id, 0) > notice.ended_ms
        return self._throttles.forget(notice, used=ends_later or _lives(loaded, notice))

    def _load(self, notices: Iterable[EndNotice]) -> Loaded:
        return self._working.load_memberships(notice.destination.destination_id for notice in notices)

    def _due(self, loaded: Loaded, notices: Iterable[EndNotice], epoch: int) -> Iterator[EndNotice]:
        """Yield the notices whose CQs will get no more results.

        The method also forgets departures whose events are all evaluated, and notices that `cq.end` replaces.
        """
        pins: dict[StreamId, tuple[int, int] | None] = {}
        committed: dict[StreamId, Mapping[str, int] | None] = {}
        for notice in notices:
            stream_id = notice.destination.stream_id
            if notice.members and not _lives(loaded, notice):
                self._last_digests.forget(loaded, [notice])
                self._throttles.forget(notice, used=True)
                self._notices.remove(notice)  # the other members have left too, so all readers get a `cq.end`
                continue
            if notice.until:
                if stream_id not in committed:
                    committed[stream_id] = self._committed(stream_id)
                reached = committed[stream_id]
                if reached is None or covers(reached, {str(part): end for part, end in enumerate(notice.until)}):
                    version = self._working.unit.retire(notice.destination, notice.until)
                    self._notices.replace(msgspec.structs.replace(notice, until=(), version=version))
                continue
            if self._notices.held_up(notice) or _others_follow(loaded, notice):
                continue
            if stream_id not in pins:
                pins[stream_id] = self._working.evaluator.oldest_pin(stream_id)
            pin = pins[stream_id]
            # A notice may name a version that was never published. Then the latest version is used.
            version = min(notice.version, self._working.inventory.versions.get(stream_id, notice.version))
            if (pin is None or pin >= (epoch, version)) and self._throttles.copied(notice):
                yield notice

    def _committed(self, stream_id: StreamId) -> Mapping[str, int] | None:
        """Return the evaluated offsets of a stream, by source partition; None for a dropped stream."""
        stream = self._working.inventory.streams.get(stream_id)
        if stream is None:
            return None
        (reached,) = self._working.evaluator.evaluated([stream])
        return reached

    def _delete_topics(self, now_ms: int) -> None:
        """Delete topics of ended destinations after `linger_seconds`, unless a topic is still needed.

        A topic is needed if its destination is used again, or if ends are still to be written to it.
        """
        since_ms = now_ms - round(self._settings.results.linger_seconds * 1000)
        due = [notice for notice in self._notices.lingering.values() if notice.lingers_since_ms <= since_ms]
        if not due:
            return
        later = [notice for notice in self._notices.lingering.values() if notice.lingers_since_ms > since_ms]
        others = [*self._notices.open.values(), *later]
        in_use = {topic_of(self._settings, notice.destination) for notice in others}
        loaded = self._load(due)
        topics = set()
        for notice in due:
            destination, topic = notice.destination, topic_of(self._settings, notice.destination)
            virtual = self._working.inventory.virtual_groups(destination.stream_id)
            if destination.mode == "virtual" and (topic in in_use or destination.group_id in virtual):
                continue
            if topic not in in_use and not _lives(loaded, notice):
                topics.add(topic)
            self._notices.remove(notice)
        if topics:
            self._commits.finish()  # the commit thread may still be writing to these topics
            self._topics.delete(topics)


def _lives(loaded: Loaded, notice: EndNotice) -> bool:
    """Tell whether a notice's destination has members now."""
    return loaded.membership(notice.destination.destination_id) is not None


def _others_follow(loaded: Loaded, notice: EndNotice) -> bool:
    """Tell whether the remaining members expire at the same time as the departed ones, so that `cq.end` is enough."""
    if not notice.members or notice.reason != "expired":
        return False
    membership = loaded.membership(notice.destination.destination_id)
    return membership is not None and not membership.outlives(notice.ended_ms)


def end_record(settings: Settings, notice: EndNotice) -> OutgoingRecord:
    """Return the record `cq.end`, after which no result of the destination's incarnation comes."""
    body, headers, time = _of_ends("cq.end", notice.ended_ms, notice.reason, notice.source)
    return _record(settings, notice.destination, b"%b}" % body, headers, b"end/%d" % notice.ended_ms, time)


def _end_records(settings: Settings, notice: EndNotice) -> list[OutgoingRecord]:
    return leave_records(settings, notice) if notice.members else [end_record(settings, notice)]


def leave_records(settings: Settings, notice: EndNotice) -> list[OutgoingRecord]:
    """Return a record `cq.leave` for each departed member, after which no result for this member comes."""
    body, headers, time = _of_ends("cq.leave", notice.ended_ms, notice.reason, notice.source)
    return [
        _record(settings, notice.destination, b'%b,"member":"%b"}' % (body, name), headers, b"leave/%b" % name, time)
        for name in map(str.encode, notice.members)
    ]


_Header = tuple[str, bytes]


def _record(
    settings: Settings, destination: Destination, body: bytes, headers: tuple[_Header, ...], own: bytes, time: _Header
) -> OutgoingRecord:
    name = destination.destination_id.encode()
    own_id = ("ce_id", b"%b/%b" % (name, own))
    return OutgoingRecord(topic_of(settings, destination), name, body, (*headers, own_id, time), destination.partition)


@lru_cache(maxsize=1024)
def _of_ends(kind: str, ended_ms: int, reason: str, source: str) -> tuple[bytes, tuple[_Header, ...], _Header]:
    """Return the parts that are equal for all ends at an instant: the beginning of the body, headers, and the time."""
    at = instant(ended_ms).encode()
    headers = (("ce_specversion", b"1.0"), ("ce_type", kind.encode()), ("ce_source", source.encode()))
    return b'{"ended_at":"%b","reason":"%b"' % (at, reason.encode()), headers, ("ce_time", at)
