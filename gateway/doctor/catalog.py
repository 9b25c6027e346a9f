"""The expected state, read from `cq.catalog`. For each key, the last record gives the state."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.kafka import LogReader
from gateway.model.end_notice import EndNotice
from gateway.model.group_pause import GroupPause
from gateway.model.membership import Membership
from gateway.model.quota import Quota
from gateway.model.records import CatalogCq, joined_with
from gateway.model.unit import CqKey
from grouping.model.catalog import Stream
from grouping.model.ids import DestinationId
from grouping.model.table import Table, View
from grouping.settings.settings import Settings
from grouping.store.record_keys import CatalogKey

__all__ = ["CatalogState", "read_catalog"]

_KINDS: dict[str, Any] = {"stream": Stream, "table": Table, "view": View, "quota": Quota, "pause": GroupPause}


class CatalogState:
    """The CQs, sources, ends under way and secrets on the catalog."""

    def __init__(self) -> None:
        self.cqs: dict[CqKey, CatalogCq] = {}
        """Subscriber and folded name → CQ."""
        self.sources: dict[str, dict[str, Any]] = {kind: {} for kind in _KINDS}
        """Kind → rest of the record's key → stream, table, view, quota or pause."""
        self.ends: dict[str, list[EndNotice]] = {}
        """Rest of the record's key → the record's notices: ends and leaves that are not completed yet."""
        self.secrets: dict[str, bytes] = {}
        """Name → secret."""

    def take(self, key: CatalogKey, value: bytes | None) -> None:
        """Take in a record. The records must come in the order of the log."""
        if key.kind == "cq":
            name = CqKey(*key.read_cq())
            if value is None:
                self.cqs.pop(name, None)
            else:
                self.cqs[name] = msgspec.json.decode(value, type=CatalogCq)
        elif key.kind == "end":
            _put(self.ends, key.text, None if value is None else msgspec.json.decode(value, type=list[EndNotice]))
        elif key.kind == "secret":
            _put(self.secrets, key.text, value)
        elif key.kind in _KINDS:
            source = None if value is None else msgspec.json.decode(value, type=_KINDS[key.kind])
            _put(self.sources[key.kind], key.text, source)

    def memberships(self) -> dict[DestinationId, Membership]:
        """Return the destinations and stores with their members.

        `Membership.number` is 0 for all of them, because the catalog does not have these numbers.
        """
        found: dict[DestinationId, Membership] = {}
        for record in self.cqs.values():
            for destination in joined_with(record.destination):
                membership = found.get(destination.destination_id)
                if membership is None:
                    membership = found[destination.destination_id] = Membership(destination, 0, {})
                membership.count(record.cq, 1, record.destination.trigger)
        return found


def _put(known: dict[str, Any], name: str, value: object | None) -> None:
    if value is None:
        known.pop(name, None)
    else:
        known[name] = value


def read_catalog(settings: Settings) -> CatalogState:
    """Read the whole catalog. With a million CQs, this takes some seconds and about a gigabyte of memory.

    Raises:
        OperationalError: Kafka does not answer.
        msgspec.MsgspecError: This version of the product cannot read a record.
    """
    state, reader = CatalogState(), LogReader(settings)
    try:
        for record in reader.since(settings.topics.catalog, {0: 0}):
            state.take(CatalogKey.parse(record.key), record.value)
    finally:
        reader.close()
    return state
