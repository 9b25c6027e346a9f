"""The CQs and destinations that were read for a unit of work, passed as an argument to methods that need them."""

from __future__ import annotations

from gateway.model.membership import Membership
from gateway.model.records import Cq, Destination
from gateway.model.unit import CqKey, Unit
from grouping.model.ids import DestinationId

__all__ = ["Loaded"]


class Loaded:
    """CQs and destinations of a unit of work, with the changes of the unit so far.

    Methods raise KeyError for a CQ or a destination that was not loaded.
    """

    __slots__ = ("_unit",)

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def cq(self, key: CqKey) -> Cq | None:
        """Return a CQ; None if it does not exist."""
        return self._unit.cqs[key]

    def existing(self, key: CqKey) -> Cq:
        """Return a CQ that must exist, because its name was listed."""
        cq = self._unit.cqs[key]
        assert cq is not None, "its name was listed"
        return cq

    def membership(self, destination_id: DestinationId) -> Membership | None:
        """Return a destination with its members; None if it does not exist."""
        return self._unit.memberships[destination_id]

    def membership_of(self, cq: Cq) -> Membership:
        """Return the destination of a CQ, with its members."""
        membership = self._unit.memberships[cq.destination_id]
        assert membership is not None, "a CQ has a destination"
        return membership

    def destination_of(self, cq: Cq) -> Destination:
        """Return the destination of a CQ's results."""
        return self.membership_of(cq).destination

    def requested(self, destination_id: DestinationId) -> Destination:
        """Return a requested destination with the fields that it gets if it is created now (`Placement.place`)."""
        return self._unit.requested[destination_id]
