"""The end of a destination: `cq.end` after its last result, and a dedicated topic's deletion some time later.

What was published before a DROP still counts: a destination leaves the constant table when that is evaluated. A batch
that was pinned before may still write results, so the notice of the end waits until no such batch is under way; and the
topic stays for readers who are late, and because a sink that meets a deleted topic fails its stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice

import msgspec

from gateway.kafka import Outgoing, Topics
from gateway.positions import topic_of
from gateway.records import EndNotice, instant
from gateway.registry import CatalogChange
from gateway.table_upkeep import oldest_pin
from gateway.timers.last_digests import LastDigests
from gateway.working_copy import WorkingCopy
from grouping.redis_store import mapped
from grouping.settings import Settings

__all__ = ["Ends", "end_record"]

_AT_ONCE = 2000
"""Notices looked at in one unit of work."""


class Ends:
    """Notices of ends that are not yet carried out."""

    def __init__(self, settings: Settings, working: WorkingCopy, topics: Topics, last_digests: LastDigests) -> None:
        self._settings = settings
        self._working = working
        self._topics = topics
        self._last_digests = last_digests
        self._open: dict[str, EndNotice] = {}
        self._lingering: dict[str, EndNotice] = {}
        """Those whose `cq.end` is out, so that only the topic is left to delete."""

    def reload(self) -> None:
        """Read the notices from the working copy."""
        with mapped():
            bodies = self._working.redis.hgetall(self._working.key("ends"))
        notices = {name.decode(): msgspec.json.decode(body, type=EndNotice) for name, body in bodies.items()}
        self._open = {name: notice for name, notice in notices.items() if not notice.written}
        self._lingering = {name: notice for name, notice in notices.items() if notice.written}
        self._last_digests.reload(self._open.values())

    def note(self, notices: Iterable[EndNotice]) -> None:
        """Take up ends that the unit of work brings; they are written with it."""
        for notice in notices:
            self._keep(notice)

    def _keep(self, notice: EndNotice) -> CatalogChange:
        name = notice.destination.destination_id
        body = msgspec.json.encode(notice)
        for shelf in (self._open, self._lingering):
            shelf.pop(name, None)
        (self._lingering if notice.written else self._open)[name] = notice
        self._working.set_field("ends", name, body)
        return (f"end/{name}".encode(), body)

    def _forget(self, name: str) -> CatalogChange:
        self._open.pop(name, None)
        self._lingering.pop(name, None)
        self._working.set_field("ends", name, None)
        return (f"end/{name}".encode(), None)

    def step(self, now_ms: int, epoch: int) -> tuple[list[Outgoing], list[CatalogChange]]:
        """Return what is to be written now, as part of the unit of work: `cq.end` records and changed notices."""
        records: list[Outgoing] = []
        changes: list[CatalogChange] = []
        pins: dict[str, tuple[int, int] | None] = {}
        some = dict(islice(self._open.items(), _AT_ONCE))
        self._working.load((), [notice.destination for notice in some.values()])
        for name, notice in some.items():
            taken_over = self._working.holder(name) is not None
            if taken_over and not self._last_digests.owes(notice):
                # Somebody took the destination over before it came to its end.
                changes.append(self._forget(name))
                continue
            stream_id = notice.destination.stream_id
            if notice.until:
                if self._evaluated(stream_id, notice.until):
                    version = self._working.retire(notice.destination)
                    changes.append(self._keep(msgspec.structs.replace(notice, until=(), version=version)))
                continue
            if stream_id not in pins:
                pins[stream_id] = oldest_pin(self._working, stream_id)
            pin = pins[stream_id]
            if pin is not None and pin < (epoch, notice.version):
                continue
            last = self._last_digests.of(notice)
            if last is None:
                continue
            records += last
            if not taken_over:
                records += [end_record(self._settings, notice), *self._last_digests.forget(notice)]
            if notice.destination.mode != "shared" and not taken_over:
                changes.append(self._keep(msgspec.structs.replace(notice, written=True)))
            else:
                changes.append(self._forget(name))
        return records, changes + self._delete_topics(now_ms)

    def _delete_topics(self, now_ms: int) -> list[CatalogChange]:
        """Delete the topics that have stayed long enough, unless somebody took them over or still writes to them."""
        since_ms = now_ms - round(self._settings.results.linger_seconds * 1000)
        due = {name: notice for name, notice in self._lingering.items() if notice.ended_ms <= since_ms}
        if not due:
            return []
        in_use = {topic_of(self._settings, notice.destination) for notice in self._open.values()}
        self._working.load((), [notice.destination for notice in due.values()])
        changes, topics = [], set()
        for name, notice in due.items():
            destination, topic = notice.destination, topic_of(self._settings, notice.destination)
            others = self._working.parts.get(destination.stream_id, {})
            if destination.mode == "virtual" and (topic in in_use or destination.group_id in others):
                continue
            if self._working.holder(name) is None:
                topics.add(topic)
            changes.append(self._forget(name))
        self._topics.delete(topics)
        return changes

    def _evaluated(self, stream_id: str, until: tuple[int, ...]) -> bool:
        """Tell whether the events below those offsets are evaluated and their results written."""
        stream = self._working.streams.get(stream_id)
        if stream is None:
            return True
        with mapped():
            body = self._working.redis.get(self._working.key("committed", stream_id))
        offsets = json.loads(body)["offsets"] if body else stream.start_offsets
        return all(int(offsets.get(str(number), 0)) >= offset for number, offset in enumerate(until))


def end_record(settings: Settings, notice: EndNotice) -> Outgoing:
    """Return the record that tells readers that nothing follows."""
    destination = notice.destination
    name = destination.destination_id
    at = instant(notice.ended_ms).encode()
    headers = (
        ("ce_specversion", b"1.0"),
        ("ce_type", b"cq.end"),
        ("ce_source", notice.source.encode()),
        ("ce_id", f"{name}/end/{notice.ended_ms}".encode()),
        ("ce_time", at),
    )
    return Outgoing(
        topic_of(settings, destination),
        name.encode(),
        b'{"ended_at":"%b","reason":"%b"}' % (at, notice.reason.encode()),
        headers,
        destination.partition,
    )
