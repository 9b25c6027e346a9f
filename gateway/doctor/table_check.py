"""Compares the constant tables with the rows that the CQs on the catalog must have there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa

from gateway.doctor.finding import Finding, shown
from gateway.doctor.registry_check import REFILL_HINT
from gateway.model.inventory import Inventory
from gateway.model.membership import Membership
from gateway.model.records import Destination
from gateway.model.table_entries import rows_of, table_entries
from grouping.model.errors import OperationalError
from grouping.model.ids import DestinationId, StreamId
from grouping.store.constant_table import MODES, Entry, Segment
from grouping.store.table_store import TableStore

__all__ = ["SegmentDamaged", "check_segments", "check_tables"]


class SegmentDamaged(OperationalError):
    """A segment of the constant tables in Redis cannot be read, so no gateway can have written it in this form."""


_CheckedRow = tuple[bytes, str, str, str, tuple[int, ...], int | None, int | None]
"""The compared columns of a row: destination, group, SELECT list, mode, offsets up to which it is valid, START and
EXPIRE."""


def check_tables(
    memberships: Mapping[DestinationId, Membership], inventory: Inventory, store: TableStore
) -> Iterator[Finding]:
    """Yield findings about streams whose constant tables lack rows, or have rows that no CQ has.

    Args:
        memberships: The expected destinations, with their members.
        inventory: The inventory in Redis, with the streams, the versions of their tables, and departures.
        store: The store of the constant tables.

    Raises:
        StoreUnavailable: The tables are incomplete, or the gateway has not yet checked them after a loss of Redis.
        SegmentDamaged: A segment cannot be read.
    """
    wanted = _wanted(memberships, inventory)
    epoch = store.epoch()
    for stream_id, stream in inventory.streams.items():
        found = Counter(_found(stream_id, inventory.versions.get(stream_id, 0), epoch or 0, store))
        for code, rows in (("row-missing", wanted[stream_id] - found), ("row-unknown", found - wanted[stream_id])):
            if rows:
                why = "lack" if code == "row-missing" else "have"
                more = "" if code == "row-missing" else " that no CQ has"
                names = [f"d_{row[0].hex()}" for row in rows]
                yield Finding(
                    code,
                    f"stream {stream.name}",
                    f"Its constant tables {why} {shown(names, 'row')}{more}.",
                    REFILL_HINT,
                    "refill Redis",
                )


def _wanted(
    memberships: Mapping[DestinationId, Membership], inventory: Inventory
) -> dict[StreamId, Counter[_CheckedRow]]:
    """Return the expected rows, by stream."""
    rows: dict[StreamId, Counter[_CheckedRow]] = defaultdict(Counter)
    for name in memberships.keys() | inventory.leaving.keys():
        membership, leaving = memberships.get(name), inventory.leaving.get(name)
        destination = _destination(membership, leaving.destination if leaving is not None else None)
        # A timer-based destination has no rows of its own. The rows belong to its store, which is in `memberships` too.
        if not destination.trigger.timed:
            entries = rows_of(destination, table_entries(membership, leaving))
            rows[destination.stream_id].update(map(_row, entries))
    return rows


def _destination(membership: Membership | None, left: Destination | None) -> Destination:
    found = left if membership is None else membership.destination
    assert found is not None, "it has members, or some have left"
    return found


def _row(entry: Entry) -> _CheckedRow:
    block = entry.block
    raw = bytes.fromhex(entry.destination[2:])
    return raw, block.group_id, block.select_id, block.mode, tuple(block.until), entry.start_ms, entry.expire_ms


def _found(stream_id: StreamId, version: int, epoch: int, store: TableStore) -> Iterator[_CheckedRow]:
    if not version:
        return
    check_segments(stream_id, store.pieces(stream_id))
    for segment in store.changes(stream_id, epoch, 0, version) or ():
        for block, table in segment.added.items():
            columns = (table[name].to_pylist() for name in ("destination", "start_ms", "expire_ms"))
            for destination, start_ms, expire_ms in zip(*columns, strict=True):
                until = tuple(block.until)
                yield destination, block.group_id, block.select_id, block.mode, until, start_ms, expire_ms


def check_segments(stream_id: StreamId, segments: Iterable[Segment]) -> None:
    """Check all segments and their buffers. Call this before any segment is used, since Arrow does not check its input.

    Args:
        stream_id: The stream of the segments, for the error.
        segments: The segments, which are decoded during the iteration.

    Raises:
        SegmentDamaged: A segment cannot be read.
    """
    try:
        for segment in segments:
            for block, table in segment.added.items():
                table.validate(full=True)
                table.select(["destination", "number", "partition", "start_ms", "expire_ms"])
                if block.mode not in MODES:
                    raise ValueError(f'its mode is "{block.mode}"')
    except (msgspec.MsgspecError, pa.ArrowException, ValueError, KeyError, OSError) as error:
        detail = f'The segment belongs to stream "{stream_id}": {error}.'
        raise SegmentDamaged("a segment of the constant tables is damaged", detail=detail) from error
