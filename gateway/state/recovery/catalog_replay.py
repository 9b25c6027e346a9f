"""Replays `cq.catalog` into the working copy, in order. A record that is already in the copy changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import msgspec

from gateway.kafka import Record
from gateway.model.dependencies import decode_definition
from gateway.model.group_pause import GroupPause
from gateway.model.loaded import Loaded
from gateway.model.quota import Quota
from gateway.model.records import CatalogCq, TimedNote
from gateway.model.unit import CqKey
from gateway.state.commit_mark import CatalogUnreadable, CommitMark
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.model.ids import DestinationId, StreamId
from grouping.model.table import Table, View
from grouping.plan.group import GroupPlan, SelectList
from grouping.store.record_keys import CatalogKey

__all__ = ["REPLAYED_AT_ONCE", "CatalogReplay", "last_mark"]

REPLAYED_AT_ONCE = 5000
"""Records per unit of work."""
_Any = TypeVar("_Any")


class CatalogReplay:
    """Applies catalog records to a working copy."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self._definitions: dict[str, GroupPlan | SelectList] = {}
        self._timed: dict[DestinationId, TimedNote] = {}
        self._begun: frozenset[str] = frozenset()
        """The ids of the streams that `begin` has added."""
        self.mark: CommitMark | None = None
        """The mark of the last commit among the records; None without a mark."""
        self.following = 0
        """The offset after the last record that was read."""

    def begin(self, records: Iterable[Record]) -> None:
        """Add all streams of a whole catalog, as their last records declare them; `run` must follow.

        The record of a stream may come after the records of the stream's CQs: GRANT or ALTER STREAM writes the record
        again, and the compaction of the topic removes the earlier record. A stream that the catalog removes is added
        too, since its CQs may be in the catalog before they are removed.

        Args:
            records: All records of the catalog, in order.

        Raises:
            CatalogUnreadable: This version does not know the form of a record.
        """
        last: dict[str, Record] = {}
        for record in records:
            key = CatalogKey.parse(record.key)
            if key.kind == "stream" and record.value is not None:
                last[key.text] = record
        for record in last.values():
            with _readable([record]):
                self._working.unit.sources.add_stream(msgspec.json.decode(record.value or b"", type=Stream))
        self._begun = frozenset(last)

    def run(self, records: Iterable[Record]) -> bool:
        """Apply records, and return whether a CQ, stream, table or view has changed.

        Raises:
            CatalogUnreadable: This version does not know the form of a record.
            OperationalError: A server does not answer.
        """
        new = bool(self._begun)
        for chunk in _chunks(records):
            with _readable(chunk):
                new |= self._apply(chunk)
            self.mark = last_mark(chunk) or self.mark
            self.following = chunk[-1].offset + 1
        self._apply_timed()
        return new

    def _apply(self, chunk: list[Record]) -> bool:
        working, new = self._working, False
        records = [_split(record) for record in chunk]
        cqs = [_decode_cq(key, value) for key, value in records if key.kind == "cq"]
        loaded = working.load((key for key, _ in cqs), [record.destination for _, record in cqs if record is not None])
        next_cq = iter(cqs)
        for key, value in records:
            if key.kind == "cq":
                new |= self._apply_cq(loaded, *next(next_cq))
            else:
                new |= self._apply_other(key, value)
        working.commit()
        return new

    def _apply_other(self, key: CatalogKey, value: bytes | None) -> bool:
        """Apply a record that is not a CQ's; return whether a stream, table or view was added, changed or removed."""
        working, name = self._working, key.text
        match key.kind:
            case "stream" if value is None and name in working.inventory.streams:
                working.unit.sources.remove_stream(StreamId(name))
                return True
            case "stream" if value is not None and name not in self._begun:
                return self._apply_stream(msgspec.json.decode(value, type=Stream))
            case "table":
                return self._apply_table(name, value)
            case "view":
                return self._apply_view(name, value)
            case "part" if value is not None:
                _, item_id = key.read_part()
                self._definitions[item_id] = decode_definition(value)
            case "end":
                working.unit.set_field("ends", name, value)
            case "quota":
                working.unit.set_quota(name, None if value is None else msgspec.json.decode(value, type=Quota))
            case "pause":
                pause = None if value is None else msgspec.json.decode(value, type=GroupPause)
                working.unit.set_pause(*key.read_pause(), pause)
            case "secret":
                working.unit.set_field("secrets", name, value)
            case "timed" if value is None:
                self._timed.pop(DestinationId(name), None)
            case "timed" if value is not None:
                self._timed[DestinationId(name)] = msgspec.json.decode(value, type=TimedNote)
        return False

    def _apply_table(self, table_id: str, value: bytes | None) -> bool:
        if value is None:
            known = table_id in self._working.inventory.tables
            self._working.unit.sources.remove_table(table_id)
            return known
        table = msgspec.json.decode(value, type=Table)
        new = self._working.inventory.tables.get(table_id) != table
        self._working.unit.sources.put_table(table)
        return new

    def _apply_view(self, name: str, value: bytes | None) -> bool:
        if value is None:
            known = name in self._working.inventory.views
            self._working.unit.sources.remove_view(name)
            return known
        view = msgspec.json.decode(value, type=View)
        new = self._working.inventory.views.get(name) != view
        self._working.unit.sources.add_view(view)
        return new

    def _apply_stream(self, stream: Stream) -> bool:
        have = self._working.inventory.streams.get(stream.stream_id)
        if have == stream:
            return False
        if have is None:
            self._working.unit.sources.add_stream(stream)
        else:
            self._working.unit.sources.replace_stream(stream)
        return True

    def _apply_timed(self) -> None:
        """Restore the notes of timer-based destinations.

        The notes name versions of the constant tables that existed before the loss. The replay makes new versions, so
        it cannot compute the notes.
        """
        for chunk in _chunks(self._timed):
            self._working.load_memberships(chunk)
            for name in chunk:
                self._working.unit.set_timed(name, self._timed[name])
            self._working.commit()

    def _apply_cq(self, loaded: Loaded, key: CqKey, record: CatalogCq | None) -> bool:
        have = loaded.cq(key)
        if have == (record.cq if record is not None else None):
            return False
        if record is None:
            self._working.unit.remove(key)
        else:
            destination = record.destination
            names = (destination.group_id, destination.select_id)
            needed = [self._definitions[name] for name in names if name in self._definitions]
            self._working.unit.put(key, record.cq, destination, *needed)
        return True


def last_mark(records: Iterable[Record]) -> CommitMark | None:
    """Return the mark of the last commit among records of the catalog.

    Raises:
        CatalogUnreadable: A later version of the product wrote the mark.
    """
    bodies = [record.value for record in records if record.key == CatalogKey.of("commit")]
    return CommitMark.decode(bodies[-1]) if bodies and bodies[-1] is not None else None


def _chunks(items: Iterable[_Any]) -> Iterator[list[_Any]]:
    left = iter(items)
    while chunk := list(islice(left, REPLAYED_AT_ONCE)):
        yield chunk


@contextmanager
def _readable(records: Sequence[Record]) -> Iterator[None]:
    """Raise `CatalogUnreadable` if this version does not know the form of one of the records."""
    try:
        yield
    except msgspec.MsgspecError as error:
        raise CatalogUnreadable(
            "the catalog holds a record that this version cannot read",
            detail=f"The record is one of {len(records)} records from offset {records[0].offset} on: {error}.",
            hint="Start the version that wrote the record, or a later version.",
        ) from error


def _split(record: Record) -> tuple[CatalogKey, bytes | None]:
    return CatalogKey.parse(record.key), record.value


def _decode_cq(key: CatalogKey, value: bytes | None) -> tuple[CqKey, CatalogCq | None]:
    return CqKey(*key.read_cq()), None if value is None else _RECORD.decode(value)


_RECORD = msgspec.json.Decoder(CatalogCq)
