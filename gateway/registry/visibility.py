"""Shortens the visibility of timer-based destinations: the table versions for which they get matches."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gateway.state.catalog_records import timed_record
from gateway.state.work import Change
from gateway.state.working_copy import WorkingCopy
from grouping.digests.cursor import visibility_since
from grouping.model.ids import DestinationId

__all__ = ["shorten_visibility"]


def shorten_visibility(working: WorkingCopy, needed: Mapping[DestinationId, tuple[int, int]]) -> Change:
    """Remove the visibility intervals that ended before the first version that is still needed.

    Args:
        working: The working copy; its unit of work records the change.
        needed: Destination → the epoch and the number of the first version that is still needed.
    """
    loaded = working.load_memberships(needed)
    records = []
    for name, version in needed.items():
        membership = loaded.membership(name)
        if membership is not None:
            visibility = visibility_since(membership.timed.visibility, version)
            note = msgspec.structs.replace(membership.timed, visibility=visibility)
            working.unit.set_timed(name, note)
            records.append(timed_record(name, note))
    return Change(catalog=tuple(records))
