"""Makes the records of `cq.catalog`, from which a lost Redis is filled again; `catalog_replay` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from gateway.kafka import OutgoingRecord
from gateway.model.end_notice import EndNotice
from gateway.model.group_pause import GroupPause
from gateway.model.quota import Quota
from gateway.model.records import CatalogCq, Cq, Destination, TimedNote
from gateway.model.unit import CqKey
from gateway.state.work import CatalogChange
from grouping.model.catalog import Stream
from grouping.model.ids import DestinationId, GroupId, StreamId
from grouping.model.table import Table, View
from grouping.plan.group import GroupPlan, SelectList
from grouping.store.record_keys import CatalogKey

__all__ = [
    "cq_gone",
    "cq_record",
    "ends_record",
    "pause_record",
    "quota_record",
    "definition_record",
    "source_record",
    "timed_record",
    "with_destinations",
]

_encode = msgspec.json.Encoder().encode
_decode_cq = msgspec.json.Decoder(CatalogCq).decode


def cq_record(key: CqKey, cq: Cq, destination: Destination) -> CatalogChange:
    """Return the record of a live CQ."""
    return CatalogKey.cq(*key), _encode(CatalogCq(key.subscriber, cq, destination))


def with_destinations(
    records: Iterable[OutgoingRecord], topic: str, changed: Mapping[DestinationId, Destination]
) -> Iterator[OutgoingRecord]:
    """Yield the given records. A catalog record of a CQ whose destination has changed gets the new destination.

    Args:
        records: Records of any topics.
        topic: The topic of the catalog.
        changed: The destinations that have changed.
    """
    for record in records:
        if record.topic != topic or record.value is None or CatalogKey.parse(record.key).kind != "cq":
            yield record
            continue
        stored = _decode_cq(record.value)
        destination = changed.get(stored.destination.destination_id, stored.destination)
        yield msgspec.structs.replace(record, value=_encode(msgspec.structs.replace(stored, destination=destination)))


def cq_gone(key: CqKey) -> CatalogChange:
    """Return the tombstone of a CQ."""
    return CatalogKey.cq(*key), None


def source_record(source: Stream | Table | View, *, gone: bool = False) -> CatalogChange:
    """Return the record of a stream, table or view, or its tombstone."""
    body = None if gone else _encode(source)
    match source:
        case Stream():
            return CatalogKey.of("stream", source.stream_id), body
        case Table():
            return CatalogKey.of("table", source.table_id), body
        case View():
            return CatalogKey.of("view", source.name.casefold()), body


def definition_record(stream_id: StreamId, name: str, definition: GroupPlan | SelectList | None) -> CatalogChange:
    """Return the record of a plan or a SELECT list; a tombstone if no CQ uses it any more."""
    return CatalogKey.of("part", stream_id, name), None if definition is None else _encode(definition)


def quota_record(subscriber: str, quota: Quota | None) -> CatalogChange:
    """Return the record of a subscriber's own limits; a tombstone if the subscriber has none any more."""
    return CatalogKey.of("quota", subscriber), None if quota is None else _encode(quota)


def pause_record(stream_id: StreamId, group_id: GroupId, pause: GroupPause | None) -> CatalogChange:
    """Return the record of a group's pause; a tombstone if the pause has ended."""
    return CatalogKey.of("pause", stream_id, group_id), None if pause is None else _encode(pause)


def timed_record(destination_id: DestinationId, note: TimedNote | None) -> CatalogChange:
    """Return the record of a timer-based destination's visibility; a tombstone if the destination has ended."""
    return CatalogKey.of("timed", destination_id), None if note is None else _encode(note)


def ends_record(batch: str, notices: list[EndNotice]) -> CatalogChange:
    """Return the record of a batch of notices; a tombstone if no notice is left."""
    return CatalogKey.of("end", batch), _encode(notices) if notices else None
