"""Names of work units, and the reasons to leave out a unit.

A *work unit* is the smallest part of a stream's queries that can be left out by itself: a group (``g_…``), or one
SELECT list of a group (``g_…/s_…``). A group may have very many CQs, so a SELECT list that fails must not stop the
group's other lists.
"""

from __future__ import annotations

from grouping.model.ids import GroupId, SelectId

__all__ = ["FULL", "KILLED", "SLOW", "SLOW_DIGESTS", "group_of", "parts_of", "unit_of"]

KILLED = "it ended the worker that evaluated it"
"""The reason for a unit that killed workers."""
FULL = "the state of its computation is larger than CQ_LIMITS_STATE_MEGABYTES in a worker"
"""The reason for all groups over a computation whose state is too large."""
SLOW = "it took too much CPU time"
"""The reason for a unit that was stopped during its evaluation."""
SLOW_DIGESTS = "its HAVING or its SELECT list took too much CPU time"
"""The reason for a unit that was stopped while the gateway made its digests."""


def unit_of(group_id: GroupId, select_id: SelectId) -> str:
    """Return the work unit of a SELECT list of a group."""
    return f"{group_id}/{select_id}"


def group_of(unit: str) -> GroupId:
    """Return the group of a work unit: the unit itself, or the group of its SELECT list."""
    return GroupId(unit.partition("/")[0])


def parts_of(unit: str) -> tuple[str, str | None]:
    """Return the group and the SELECT list of a work unit. The SELECT list is None for a unit that is a whole group.

    Example:
        >>> parts_of(unit_of("g_1", "s2")), parts_of("g_1")
        (('g_1', 's2'), ('g_1', None))
    """
    group_id, _, select_id = unit.partition("/")
    return group_id, select_id or None
