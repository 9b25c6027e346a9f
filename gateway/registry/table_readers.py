"""Which groups join a table: an index that is made when it is first asked for, and follows the groups from then on."""

from __future__ import annotations

from gateway.state.working_copy import WorkingCopy
from grouping.model.group import GroupPlan
from grouping.model.ids import GroupId, StreamId

__all__ = ["TableReaders"]


class TableReaders:
    """The groups over joins, by the tables that these join."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self._groups: dict[str, set[tuple[StreamId, GroupId]]] | None = None
        """By table id, groups that are gone among them until somebody asks; None before the first question."""

    def add(self, plan: GroupPlan) -> None:
        """Take in the plan of a new group."""
        if self._groups is not None and plan.computation is not None:
            for join in plan.computation.joins:
                self._groups.setdefault(join.table_id, set()).add((plan.stream_id, plan.group_id))

    def cqs(self, table_id: str) -> int:
        """Return how many CQs join a table."""
        return sum(self.groups(table_id).values())

    def groups(self, table_id: str) -> dict[tuple[StreamId, GroupId], int]:
        """Return the groups over a table, each with how many CQs it has."""
        inventory = self._working.inventory
        if self._groups is None:
            self._groups = {}
            for stream_id in inventory.streams:
                for plan in self._working.plans(stream_id, inventory.groups(stream_id)).values():
                    self.add(plan)
        known = self._groups.get(table_id, set())
        live = {each: count for each in known if (count := inventory.groups(each[0]).get(each[1]))}
        known.intersection_update(live)
        return live
