"""How many times apart from each other the CQs of one destination may see: each is a row of the constant table.

START and EXPIRE of CQs that share a destination overlap mostly, and then they are one time. Ten thousand CQs of one
second each would be as many rows, which each change of the destination writes anew and each event is compared with.
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
    """The times that destinations see, as far as a unit of work adds to them."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self._unit: Unit | None = None
        self._known: dict[DestinationId, list[Window]] = {}
        """Windows by destination in the present unit; CQs removed by the unit are still included."""

    def check(self, loaded: Loaded, window: Window, destination: Destination) -> None:
        """Check that a CQ may join a destination.

        Args:
            loaded: Has the destination.
            window: The CQ's START and EXPIRE.
            destination: Where the CQ is to be.

        Raises:
            InputError: quota-exceeded.
        """
        if window[0] is None:
            return  # without START it sees the times before the others', and so adds at most one
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
                    "the CQs that share the destination see too many different times",
                    code="quota-exceeded",
                    detail=f"They would see {len(times):,} times apart from each other; the limit is {MOST_TIMES:,}.",
                    hint="Give it the START and EXPIRE of others, or let it see other columns.",
                )
            self._known[name] = times
