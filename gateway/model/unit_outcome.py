"""Computes, from the changes of a whole unit, the segments of the constant tables and the visibility intervals."""

from __future__ import annotations

import msgspec

from gateway.model.records import Destination, TimedNote, feed_of
from gateway.model.table_entries import rows_of
from gateway.model.unit import Unit
from grouping.digests.cursor import VisibilityInterval
from grouping.model.ids import DestinationId, StreamId
from grouping.store.constant_table import Entry, Segment

__all__ = ["ended_note", "ended_version", "note_visibility", "segments"]


def segments(unit: Unit) -> dict[StreamId, Segment]:
    """Return the unit's changes of the constant tables, by stream."""
    removed: dict[StreamId, list[DestinationId]] = {}
    added: dict[StreamId, list[Entry]] = {}
    for name, (destination, _) in unit.touched.items():
        if destination.trigger.timed:
            continue
        before, after, membership = unit.entries_before[name], unit.entries(name), unit.memberships[name]
        moved = name in unit.moved_edges or (membership and membership.moved_bounds)
        if before == after and not moved:
            continue
        # A store may have a hundred thousand readers, so their bounds are packed only for a store that has changed.
        bounds = membership.packed_bounds if membership else b""
        if before.windows:
            removed.setdefault(destination.stream_id, []).append(name)
        added.setdefault(destination.stream_id, []).extend(rows_of(destination, after, bounds))
    touched = (removed.keys() | added.keys() | unit.bumped) & unit.inventory.streams.keys()
    return {name: Segment.of(removed.get(name, ()), added.get(name, ())) for name in touched}


def ended_version(unit: Unit, destination: Destination) -> int:
    """Return the first version of the constant tables without a destination that ends with this unit.

    Micro-batches with this version or a later one cannot write to the destination.
    """
    seen = unit.touched[destination.destination_id][1] or unit.touched[feed_of(destination).destination_id][1]
    return unit.inventory.versions[destination.stream_id] + bool(seen)


def ended_note(unit: Unit, destination: Destination) -> TimedNote:
    """Return the note of a timer-based destination that this unit ends.

    The destination sees no matches that are found with this unit's version of the constant tables or a later one.
    """
    note = unit.ended_notes[destination.destination_id]
    if not note.visibility:
        return note
    last: VisibilityInterval = (unit.inventory.epoch, ended_version(unit, destination), [])
    return msgspec.structs.replace(note, visibility=(*note.visibility, last))


def note_visibility(unit: Unit, now_ms: int) -> dict[DestinationId, TimedNote | None]:
    """Begin a visibility interval for each timer-based destination whose visible windows the unit has changed.

    All timers that read a store share its matches. Whether a timer sees a match depends on the version with which the
    match was found. So a change of visibility makes a new version, even if the constant table does not change.

    Args:
        unit: A unit whose changes are all made.
        now_ms: The present, epoch milliseconds.

    Returns:
        Changed destination → its new note; None if the destination has ended.
    """
    changed: dict[DestinationId, TimedNote | None] = {}
    for name in unit.touched_timed:
        destination, before = unit.touched[name]
        membership = unit.memberships[name]
        after = membership.seen if membership is not None else []
        if before == after and (membership is None or membership.timed.visibility or not after):
            continue
        unit.bumped.add(destination.stream_id)
        changed[name] = None
        if membership is not None:
            interval = (unit.inventory.epoch, unit.inventory.versions[destination.stream_id] + 1, after)
            # Digests of a table's rows read no stored matches, so they need no earlier interval.
            earlier = () if destination.of_rows else membership.timed.visibility
            visibility = (*earlier, interval)
            last_expire_ms = 0 if after else unit.last_expiries.get(name, 0)
            membership.timed = msgspec.structs.replace(
                membership.timed, visibility=visibility, changed_ms=now_ms, last_expire_ms=last_expire_ms
            )
            changed[name] = membership.timed
    return changed
