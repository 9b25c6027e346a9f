"""The limit on separate windows (START to EXPIRE) of the CQs that share a destination.

Overlapping windows are merged, and each separate window is a row of the constant table. Every change of the destination
writes all its rows, and every event is compared with these rows. So ten thousand CQs with windows of a second, one
after the other, would be too expensive.
"""

from __future__ import annotations

from gateway.model.loaded import Loaded
from gateway.model.membership import union
from gateway.model.records import Destination, joined_with
from gateway.model.unit import Unit
from gateway.state.working_copy import WorkingCopy
from grouping.digests.cursor import Window
from grouping.model.errors import InputError
from grouping.model.ids import DestinationId

__all__ = ["MOST_TIMES", "TimesSeen"]

MOST_TIMES = 1_000


class TimesSeen:
    """Counts the separate windows of destinations, including the windows added by the present unit of work."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self._unit: Unit | None = None
        self._known: dict[DestinationId, list[Window]] = {}
        """Destination → its windows, including windows that the unit has added. Windows that the unit has removed may
        still be included."""

    def check(self, loaded: Loaded, window: Window, destination: Destination) -> None:
        """Check that a CQ may join a destination.

        Args:
            loaded: The destination, as loaded.
            window: The CQ's START and EXPIRE.
            destination: The destination that the CQ joins.

        Raises:
            InputError: quota-exceeded.
        """
        if window[0] is None:
            return  # all windows without START overlap, so together they add at most one window
        unit = self._working.unit
        if unit is not self._unit:
            self._unit, self._known = unit, {}
        for joined in joined_with(destination):
            name, membership = joined.destination_id, loaded.membership(joined.destination_id)
            if membership is None or len(membership.windows) < MOST_TIMES:
                continue
            known = self._known.get(name)
            times = union([*(membership.seen if known is None else known), window])
            if len(times) > MOST_TIMES and known is not None:
                times = union([*membership.seen, window])
            if len(times) > MOST_TIMES:
                raise InputError(
                    "the CQs that share the destination have too many separate START/EXPIRE windows",
                    code="quota-exceeded",
                    detail=f"There would be {len(times):,} separate windows; the limit is {MOST_TIMES:,}.",
                    hint="Use the START and EXPIRE of another CQ, or select other columns, which gives the CQ a "
                    "destination of its own.",
                )
            self._known[name] = times
