"""The end of a destination: `cq.end` after its last result, and a dedicated topic's deletion some time later.

What was published before a DROP still counts: a destination leaves the constant table when that is evaluated. A batch
that was pinned before may still write results, so the notice of the end waits until no such batch is under way; and the
topic stays for readers who are late, and because a task that meets a deleted topic fails its stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from gateway.commit import Commits
from gateway.end_notices import EndNotices
from gateway.kafka import Outgoing
from gateway.positions import dedicated_topic, topic_of
from gateway.records import EndNotice, instant
from gateway.registry import CatalogChange
from gateway.result_topics import ResultTopics
from gateway.table_upkeep import oldest_pin
from gateway.timers.frontier import covers
from gateway.timers.last_digests import LastDigests
from gateway.working_copy import WorkingCopy
from grouping.redis_store import mapped
from grouping.settings import Settings

__all__ = ["Ends", "end_record"]

_AT_ONCE = 8000
"""Notices looked at in one unit of work."""
_UNIT_BYTES = 32 << 20
"""Of last digests in one unit of work, about."""


class Ends:
    """Carries out the ends of destinations, some thousands in a unit of work."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: ResultTopics,
        commits: Commits,
        last_digests: LastDigests,
    ) -> None:
        self._settings = settings
        self._working = working
        self._topics = topics
        self._commits = commits
        self._last_digests = last_digests
        self._notices = EndNotices(working)
        self.busy = False
        """Whether there were more ends than one step looks at; a few more can wait, for each commit has its costs."""

    def reload(self) -> None:
        """Read the notices from the working copy."""
        self._notices.reload()
        self._last_digests.reload(self._notices.open.values())
        self._topics.reload()
        self._topics.sweep(self._wanted_topics())

    def _wanted_topics(self) -> Iterator[str]:
        """Yield the topics of destinations that live, or whose readers may not be done."""
        settings = self._settings
        yield from (topic_of(settings, each.destination) for each in self._notices.open.values())
        yield from (topic_of(settings, each.destination) for each in self._notices.lingering.values())
        yield from (dedicated_topic(settings, name) for name in self._working.dedicated)
        for parts in self._working.parts.values():
            yield from (settings.topic(f"results.{name}") for name in parts if name.startswith("g_"))

    def note(self, notices: list[EndNotice]) -> list[CatalogChange]:
        """Take up ends that the unit of work brings, and return what the catalog is told."""
        self._last_digests.hold(notices)
        return self._notices.add(notices)

    def step(self, now_ms: int, epoch: int) -> tuple[list[Outgoing], list[CatalogChange]]:
        """Return what is to be written now, as part of the unit of work: last digests, `cq.end` and changed notices."""
        waiting = len(self._notices.open)
        some = list(self._notices.next(_AT_ONCE))
        taken_over = self._taken_over(some)
        records: list[Outgoing] = []
        over: list[EndNotice] = []
        size = 0
        for notice, last in self._last_digests.of(self._due(some, taken_over, epoch)):
            over.append(notice)
            if last:
                records += last
                size += sum(len(record.value or b"") for record in last)
            if notice.destination.destination_id not in taken_over:
                records.append(end_record(self._settings, notice))
            if size > _UNIT_BYTES:
                break
        records += self._last_digests.forget(over)
        for notice in over:
            if notice.destination.mode == "shared" or notice.destination.destination_id in taken_over:
                self._notices.remove(notice)
            else:
                self._notices.replace(msgspec.structs.replace(notice, written=True))
        self._delete_topics(now_ms)
        changes = self._notices.changes()
        self.busy = bool(changes) and (waiting > _AT_ONCE or size > _UNIT_BYTES)
        return records, changes

    def _taken_over(self, notices: Iterable[EndNotice]) -> set[str]:
        """Return the destinations that somebody took up again."""
        names = [notice.destination.destination_id for notice in notices]
        self._working.load_holders(names)
        holders = self._working.holders
        return {name for name in names if holders[name] is not None}

    def _due(self, notices: Iterable[EndNotice], taken_over: set[str], epoch: int) -> Iterator[EndNotice]:
        """Yield those to whose destinations nothing is written any more."""
        pins: dict[str, tuple[int, int] | None] = {}
        committed: dict[str, Mapping[str, int] | None] = {}
        for notice in notices:
            stream_id = notice.destination.stream_id
            if notice.destination.destination_id in taken_over and not self._last_digests.owes(notice):
                self._notices.remove(notice)
                continue
            if notice.until:
                if stream_id not in committed:
                    committed[stream_id] = self._committed(stream_id)
                reached = committed[stream_id]
                if reached is None or covers(reached, {str(part): end for part, end in enumerate(notice.until)}):
                    version = self._working.retire(notice.destination)
                    self._notices.replace(msgspec.structs.replace(notice, until=(), version=version))
                continue
            if stream_id not in pins:
                pins[stream_id] = oldest_pin(self._working, stream_id)
            pin = pins[stream_id]
            if pin is None or pin >= (epoch, notice.version):
                yield notice

    def _committed(self, stream_id: str) -> Mapping[str, int] | None:
        """Return by source partition how far a stream is evaluated; None for one that is gone, and holds up nothing."""
        stream = self._working.streams.get(stream_id)
        if stream is None:
            return None
        with mapped():
            body = self._working.redis.get(self._working.key("committed", stream_id))
        return stream.evaluated(json.loads(body)["offsets"] if body else {})

    def _delete_topics(self, now_ms: int) -> None:
        """Delete the topics that have stayed long enough, unless somebody took them over or still writes to them."""
        since_ms = now_ms - round(self._settings.results.linger_seconds * 1000)
        due = [notice for notice in self._notices.lingering.values() if notice.ended_ms <= since_ms]
        if not due:
            return
        later = [notice for notice in self._notices.lingering.values() if notice.ended_ms > since_ms]
        others = [*self._notices.open.values(), *later]
        in_use = {topic_of(self._settings, notice.destination) for notice in others}
        taken_over = self._taken_over(due)
        topics = set()
        for notice in due:
            destination, topic = notice.destination, topic_of(self._settings, notice.destination)
            parts = self._working.parts.get(destination.stream_id, {})
            if destination.mode == "virtual" and (topic in in_use or destination.group_id in parts):
                continue
            if topic not in in_use and destination.destination_id not in taken_over:
                topics.add(topic)
            self._notices.remove(notice)
        if topics:
            self._commits.finish()  # the unit before may be writing their `cq.end` still
            self._topics.delete(topics)


def end_record(settings: Settings, notice: EndNotice) -> Outgoing:
    """Return the record that tells readers that nothing follows."""
    destination = notice.destination
    name = destination.destination_id.encode()
    body, headers, time, suffix = _of_ends(notice.ended_ms, notice.reason, notice.source)
    own = ("ce_id", name + suffix)
    return Outgoing(topic_of(settings, destination), name, body, (*headers, own, time), destination.partition)


_Header = tuple[str, bytes]


@lru_cache(maxsize=1024)
def _of_ends(ended_ms: int, reason: str, source: str) -> tuple[bytes, tuple[_Header, ...], _Header, bytes]:
    """Return what all ends of one instant and stream have in common: body, headers, and how their ids end."""
    at = instant(ended_ms).encode()
    headers = (("ce_specversion", b"1.0"), ("ce_type", b"cq.end"), ("ce_source", source.encode()))
    body = b'{"ended_at":"%b","reason":"%b"}' % (at, reason.encode())
    return body, headers, ("ce_time", at), b"/end/%d" % ended_ms
