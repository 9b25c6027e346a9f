"""The quota of quarantines: after too many, a subscriber cannot create new groups or SELECT lists for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gateway.model.dependencies import DependencyKind
from gateway.model.records import Destination, instant
from gateway.state.working_copy import WorkingCopy
from grouping.model.errors import InputError
from grouping.model.ids import Subscriber
from grouping.settings.settings import Settings
from grouping.store.quarantine import Quarantine

__all__ = ["QuarantineQuota"]


class QuarantineQuota:
    """Counts each subscriber's quarantines; a quarantine counts for an hour after its end, even after a DROP."""

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        self._limits = settings.limits
        self._working = working
        self._over_ms: dict[Subscriber, list[int]] = {}
        """Subscriber → the instants at which its quarantines stop counting, in ascending order."""

    def count(self, known: Iterable[Quarantine], now_ms: int) -> None:
        """Replace the counts by the present quarantines of all streams."""
        over_ms = defaultdict(list)
        for state in known:
            if state.times and state.user and not state.is_over(now_ms):
                over_ms[state.user].append(state.over_ms)
        self._over_ms = {user: sorted(times) for user, times in over_ms.items()}

    def check(self, subscriber: Subscriber, destination: Destination) -> None:
        """Check that a subscriber has quota for the group and SELECT list of a destination.

        Raises:
            InputError: ``quota-exceeded``: the group or the SELECT list would be new, and the quota is used up.
        """
        over_ms = self._over_ms.get(subscriber, [])
        limit = self._working.inventory.limit(subscriber, "quarantined", self._limits)
        if not limit or len(over_ms) < limit:
            return
        inventory, stream_id = self._working.inventory, destination.stream_id
        known_group = destination.group_id in inventory.groups(stream_id)
        if known_group and destination.select_id in inventory.users(stream_id, DependencyKind.SELECT):
            return
        raise InputError(
            f'subscriber "{subscriber}" can create no new groups or SELECT lists for now',
            code="quota-exceeded",
            detail=f"{len(over_ms)} groups and SELECT lists of the subscriber were quarantined within the hour: they "
            f"killed workers, took too much CPU time, or had too large a state. The limit is {limit}. "
            f"New groups are refused until {instant(over_ms[-limit])}.",
            hint="Drop the quarantined CQs. DESCRIBE CQ shows whether a CQ is quarantined, and why.",
        )
