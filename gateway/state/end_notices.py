"""Notices of ends, kept in batches: the notices of a unit of work share few records.

A batch is a record of `cq.catalog` (key ``end/<batch>``), and a field in Redis. The batch is written again when some of
its notices are done, and removed when all are done. So a million ends at the same EXPIRE cost only hundreds of records.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from gateway.model.end_notice import EndNotice, end_key
from gateway.state.catalog_records import ends_record
from gateway.state.work import CatalogChange
from gateway.state.working_copy import WorkingCopy
from grouping.store.connection import mapped

__all__ = ["BATCH", "EndNotices"]

BATCH = 8000
"""The largest number of notices in a record, which then has a few megabytes."""

_decode = msgspec.json.Decoder(list[EndNotice]).decode


class EndNotices:
    """All notices; changed notices are written with the unit of work."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self.open: dict[str, EndNotice] = {}
        """Notices whose records are not written yet, in the order of their last examination."""
        self.lingering: dict[str, EndNotice] = {}
        """Notices whose `cq.end` is written; only the deletion of the topic remains."""
        self._batches: dict[str, set[str]] = {}
        self._batch_of: dict[str, str] = {}
        self._changed: set[str] = set()

    def reload(self) -> None:
        """Read the notices from the working copy."""
        self.open, self.lingering, self._batches, self._batch_of, self._changed = {}, {}, {}, {}, set()
        self._working.inventory.ending = {}
        with mapped():
            bodies = self._working.connection.redis.hgetall(self._working.connection.keys.ends)
        for batch, body in bodies.items():
            notices = _decode(body)
            self._bind(batch.decode(), notices)
            for notice in notices:
                self._note_end(notice)
        self._changed.clear()

    def add(self, notices: Iterable[EndNotice]) -> list[CatalogChange]:
        """Add the notices of a unit of work, and return their records for the catalog."""
        left = map(self._in_order, notices)
        while some := list(islice(left, BATCH)):
            self._bind(secrets.token_hex(8), some)
        return self.changes()

    def _in_order(self, notice: EndNotice) -> EndNotice:
        """Return a notice with the time of an earlier end of its destination, if this end must be written first."""
        name = notice.destination.destination_id
        before_ms = 0 if notice.members else self._working.inventory.ending.get(name, 0)
        self._note_end(notice)
        return msgspec.structs.replace(notice, after_ms=before_ms) if before_ms else notice

    def _note_end(self, notice: EndNotice) -> None:
        if not (notice.members or notice.written):
            ending, name = self._working.inventory.ending, notice.destination.destination_id
            ending[name] = max(notice.ended_ms, ending.get(name, 0))

    def held_up(self, notice: EndNotice) -> bool:
        """Tell whether the end of the previous incarnation is still to be written."""
        return bool(notice.after_ms) and end_key(notice.destination.destination_id, notice.after_ms) in self.open

    def _bind(self, batch: str, notices: list[EndNotice]) -> None:
        keys = self._batches[batch] = set()
        for notice in notices:
            key = notice.key
            (self.lingering if notice.written else self.open)[key] = notice
            self._batch_of[key] = batch
            keys.add(key)
        self._changed.add(batch)

    def next(self, most: int) -> Iterator[EndNotice]:
        """Yield open notices to examine, and move them to the end of the queue, so that all notices get their turn."""
        for key in list(islice(self.open, most)):
            notice = self.open[key] = self.open.pop(key)
            yield notice

    def replace(self, notice: EndNotice) -> None:
        """Replace a notice by its changed form."""
        key = notice.key
        self._take(key)
        (self.lingering if notice.written else self.open)[key] = notice
        self._note_end(notice)
        self._changed.add(self._batch_of[key])

    def remove(self, notice: EndNotice) -> None:
        """Forget an end that is done; nothing happens for an unknown notice."""
        key = notice.key
        batch = self._batch_of.pop(key, None)
        if batch is not None:
            self._take(key)
            self._batches[batch].discard(key)
            self._changed.add(batch)

    def _take(self, key: str) -> None:
        notice, ending = self.open.pop(key, None), self._working.inventory.ending
        if notice is None:
            self.lingering.pop(key, None)
        elif not notice.members and ending.get(notice.destination.destination_id) == notice.ended_ms:
            del ending[notice.destination.destination_id]

    def changes(self) -> list[CatalogChange]:
        """Put the changed batches into the unit of work, and return their records for the catalog."""
        changes: list[CatalogChange] = []
        for batch in self._changed:
            keys = self._batches[batch]
            record = ends_record(batch, [self.open.get(key) or self.lingering[key] for key in keys])
            if not keys:
                del self._batches[batch]
            self._working.unit.set_field("ends", batch, record[1])
            changes.append(record)
        self._changed.clear()
        return changes
