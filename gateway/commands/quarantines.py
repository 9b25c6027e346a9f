"""Quarantines of groups and SELECT lists, and pauses of groups, as statements, `cq status` and metrics show them."""

from __future__ import annotations

from gateway.metrics import BARRED, EVALUATOR_DEAD_LETTERS, QUARANTINED
from gateway.model.dependencies import DependencyKind
from gateway.model.records import instant
from gateway.registry.strikes import Strikes
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.settings.settings import Settings
from grouping.store.quarantine import Quarantine, QuarantineStore, group_of, parts_of, share_of

__all__ = ["Quarantines"]

Shown = dict[str, str]


class Quarantines:
    """The quarantined shares (`grouping.store.quarantine`) of all streams, as of the last look."""

    def __init__(self, settings: Settings, working: WorkingCopy, strikes: Strikes) -> None:
        self._store = QuarantineStore(settings)
        self._working = working
        self._strikes = strikes
        self._known: dict[StreamId, dict[str, Quarantine]] = {}
        self._withheld: dict[StreamId, dict[str, Quarantine]] = {}

    def reload(self) -> None:
        """Forget what was written to a Redis that may have fallen back since."""
        self._withheld.clear()

    def look(self, now_ms: int) -> None:
        """Read what the evaluator told, forget what is over, count, and say what is to be withheld.

        Raises:
            OperationalError: Redis does not answer.
        """
        found = self._store.quarantined_in(self._working.inventory.streams)
        self._strikes.count(found, now_ms)
        self._known = {}
        for stream_id, known in found.items():
            live = {share: state for share, state in known.items() if self._lives(stream_id, share)}
            over = [share for share, state in known.items() if state.is_over(now_ms)]
            # What was convicted is a strike against its founder also when it is gone.
            harmless = [share for share, state in known.items() if share not in live and not state.deaths]
            if over := over + self._gone(stream_id, harmless):
                self._store.forget(stream_id, over)
            self._known[stream_id] = {share: state for share, state in live.items() if state.holds(now_ms)}
            self._withhold(stream_id)
            live_groups, shown = self._working.inventory.groups(stream_id), self.of_stream(stream_id)
            groups = live_groups.keys() & set(map(group_of, shown))
            QUARANTINED.labels(self._working.inventory.streams[stream_id].name).set(len(groups))
        BARRED.set(len(self._strikes.barred))
        for code, count in self._store.dead_letters().items():
            EVALUATOR_DEAD_LETTERS.labels(code).set(count)

    def _withhold(self, stream_id: StreamId) -> None:
        """Have workers know what a stream is to be evaluated without, where that has changed."""
        withheld, before = self._strikes.withheld(stream_id), self._withheld.get(stream_id)
        if before is None or withheld.keys() != before.keys():
            self._store.withhold(stream_id, withheld)
        self._withheld[stream_id] = withheld

    def _lives(self, stream_id: StreamId, share: str) -> bool:
        """Tell whether CQs use what a share is."""
        group_id, select_id = parts_of(share)
        selects = self._working.inventory.users(stream_id, DependencyKind.SELECT)
        return group_id in self._working.inventory.groups(stream_id) and (select_id is None or select_id in selects)

    def _gone(self, stream_id: StreamId, dropped: list[str]) -> list[str]:
        """Return those of which no batch under way has the group any more: until then workers must know of them."""
        kept = self._working.kept_plans(stream_id, list(map(group_of, dropped)))
        return [share for share in dropped if group_of(share) not in kept]

    def of_stream(self, stream_id: StreamId) -> dict[str, Shown]:
        """Return a stream's quarantined shares, and by its id whatever else is withheld."""
        known = self._known.get(stream_id, {})
        guilty = {select_id or group_id for group_id, select_id in map(parts_of, known)}
        held = {item_id: state for item_id, state in self._held(stream_id).items() if item_id not in guilty}
        return {share: _shown(state) for share, state in (held | known).items()}

    def _held(self, stream_id: StreamId) -> dict[str, Quarantine]:
        return self._withheld.get(stream_id, {})

    def of_cq(self, stream_id: StreamId, group_id: GroupId, select_id: SelectId) -> Shown | None:
        """Return why a CQ is not evaluated, None when it is."""
        known, held = self._known.get(stream_id, {}), self._held(stream_id)
        state = known.get(group_id) or known.get(share_of(group_id, select_id))
        state = state or held.get(group_id) or held.get(select_id)
        return None if state is None else _shown(state)

    def pause(self, stream_id: StreamId, group_id: GroupId) -> Shown | None:
        """Return since when an operator has a group rest, None where it does not."""
        pause = self._working.inventory.pauses.get(stream_id, {}).get(group_id)
        return None if pause is None else {"since": instant(pause.since_ms)}

    def withheld(self, stream_id: StreamId, group_id: GroupId, select_id: SelectId) -> str | None:
        """Return in words why a CQ is not evaluated, None when it is."""
        if (state := self.of_cq(stream_id, group_id, select_id)) is not None:
            return f"the CQ is not evaluated until {state['until']}: {state['reason']}"
        if (pause := self.pause(stream_id, group_id)) is not None:
            return f"an operator has paused the CQ's group, since {pause['since']}"
        return None

    def of_group(self, stream_id: StreamId, group_id: GroupId) -> Shown | None:
        """Return why a group, or a SELECT list of it, is not evaluated, None when all of it is."""
        known = self._known.get(stream_id, {})
        states = [state for share, state in sorted(known.items()) if group_of(share) == group_id]
        states += filter(None, [self._held(stream_id).get(group_id)])
        return next(map(_shown, states), None)


def _shown(state: Quarantine) -> Shown:
    return {"since": instant(state.since_ms), "until": instant(state.until_ms), "reason": state.reason}
