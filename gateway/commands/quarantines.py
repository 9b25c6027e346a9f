"""Quarantines of work units and pauses of groups, for the statements, `cq status` and metrics that show them."""

from __future__ import annotations

from itertools import chain

from gateway.metrics import EVALUATOR_DEAD_LETTERS, QUARANTINED
from gateway.model.dependencies import DependencyKind
from gateway.model.records import instant
from gateway.registry.quarantine_quota import QuarantineQuota
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.settings.settings import Settings
from grouping.store.quarantine import Quarantine, QuarantineStore
from grouping.store.work_units import group_of, parts_of, unit_of

__all__ = ["Quarantines"]

Shown = dict[str, str]


class Quarantines:
    """The quarantined work units (`grouping.store.work_units`) of all streams, as of the last `refresh`."""

    def __init__(self, settings: Settings, working: WorkingCopy, quota: QuarantineQuota) -> None:
        self._store = QuarantineStore(settings)
        self._working = working
        self._quota = quota
        self._known: dict[StreamId, dict[str, Quarantine]] = {}

    def refresh(self, now_ms: int) -> None:
        """Read the evaluator's quarantines, remove those that are over, and update the quota and the metrics.

        Raises:
            OperationalError: Redis does not answer.
        """
        found = self._store.quarantined_in(self._working.inventory.streams)
        self._quota.count(chain.from_iterable(known.values() for known in found.values()), now_ms)
        self._known = {}
        for stream_id, known in found.items():
            live = {unit: state for unit, state in known.items() if self._lives(stream_id, unit)}
            over = [unit for unit, state in known.items() if state.is_over(now_ms)]
            # A quarantine counts against its subscriber's quota if the unit killed workers or was slow (`times` > 0).
            # Such a quarantine is kept even after the CQ was dropped.
            faults = [unit for unit, state in known.items() if unit not in live and not state.times]
            if over := over + self._gone(stream_id, faults):
                self._store.forget(stream_id, over)
            self._known[stream_id] = {unit: state for unit, state in live.items() if state.holds(now_ms)}
            groups = self._working.inventory.groups(stream_id).keys() & set(map(group_of, self._known[stream_id]))
            QUARANTINED.labels(self._working.inventory.streams[stream_id].name).set(len(groups))
        for code, count in self._store.dead_letters().items():
            EVALUATOR_DEAD_LETTERS.labels(code).set(count)

    def _lives(self, stream_id: StreamId, unit: str) -> bool:
        """Tell whether CQs use a work unit."""
        group_id, select_id = parts_of(unit)
        selects = self._working.inventory.users(stream_id, DependencyKind.SELECT)
        return group_id in self._working.inventory.groups(stream_id) and (select_id is None or select_id in selects)

    def _gone(self, stream_id: StreamId, dropped: list[str]) -> list[str]:
        """Return the dropped units whose quarantines can be removed: no micro-batch under way evaluates the units."""
        kept = self._working.kept_plans(stream_id, list(map(group_of, dropped)))
        return [unit for unit in dropped if group_of(unit) not in kept]

    def of_stream(self, stream_id: StreamId) -> dict[str, Shown]:
        """Return a stream's quarantined work units."""
        return {unit: _shown(state) for unit, state in self._known.get(stream_id, {}).items()}

    def of_cq(self, stream_id: StreamId, group_id: GroupId, select_id: SelectId) -> Shown | None:
        """Return the quarantine of a CQ; None if the CQ is not quarantined."""
        known = self._known.get(stream_id, {})
        state = known.get(group_id) or known.get(unit_of(group_id, select_id))
        return None if state is None else _shown(state)

    def pause(self, stream_id: StreamId, group_id: GroupId) -> Shown | None:
        """Return when an operator paused a group; None if the group is not paused."""
        pause = self._working.inventory.pauses.get(stream_id, {}).get(group_id)
        return None if pause is None else {"since": instant(pause.since_ms)}

    def why_not_evaluated(self, stream_id: StreamId, group_id: GroupId, select_id: SelectId) -> str | None:
        """Return, as a sentence, why a CQ is not evaluated; None if it is evaluated."""
        if (state := self.of_cq(stream_id, group_id, select_id)) is not None:
            return f"the CQ is not evaluated until {state['until']}: {state['reason']}"
        if (pause := self.pause(stream_id, group_id)) is not None:
            return f"an operator has paused the CQ's group, since {pause['since']}"
        return None

    def of_group(self, stream_id: StreamId, group_id: GroupId) -> Shown | None:
        """Return a quarantine of a group, or of one of its SELECT lists; None without a quarantine."""
        known = self._known.get(stream_id, {})
        states = [state for unit, state in sorted(known.items()) if group_of(unit) == group_id]
        return next(map(_shown, states), None)


def _shown(state: Quarantine) -> Shown:
    return {"since": instant(state.since_ms), "until": instant(state.until_ms), "reason": state.reason}
