"""Strikes: each group or SELECT list that was quarantined counts against its founder, and too many have consequences.

A share of the queries that kills workers, or takes too much CPU time, holds up its stream until it is found. Who made
several of them within the hour makes no new ones, and on streams that others use too, everything that only this
subscriber uses is withheld, whether it has done harm or not: so the others wait for a few of them, and not for
hundreds. A strike ends by time alone, or DROP and CREATE in turns would bring the next ones. Two who use the same count
as one where both are barred, or where the founder shared with the other one as many of its convicted shares.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from gateway.model.dependencies import DependencyKind
from gateway.model.records import Destination, instant
from gateway.state.working_copy import WorkingCopy
from grouping.model.errors import InputError
from grouping.model.ids import StreamId, Subscriber
from grouping.settings.settings import Settings
from grouping.store.founders import Founder
from grouping.store.quarantine import NOBODY, WITHHELD, Quarantine, parts_of

__all__ = ["Strikes"]


class Strikes:
    """The strikes of all subscribers, as of the last count."""

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        self._limits = settings.limits
        self._working = working
        self.barred: dict[Subscriber, Quarantine] = {}
        """Who has too many: since and until when."""
        self._partners: set[tuple[Subscriber, Subscriber]] = set()
        """Who is barred, and with whom alone it shared as many of what was quarantined."""
        self._others: dict[tuple[StreamId, str], Subscriber] = {}
        """By stream and share that was quarantined: the only one besides its founder, also once both dropped it."""

    def count(self, known: Mapping[StreamId, Mapping[str, Quarantine]], now_ms: int) -> None:
        """Count the quarantines that are known, by stream and share; those of shares that are gone as well."""
        strikes: defaultdict[Subscriber, list[Quarantine]] = defaultdict(list)
        shared: Counter[tuple[Subscriber, Subscriber]] = Counter()
        others = {}
        for stream_id, shares in known.items():
            for share, state in shares.items():
                if state.deaths and state.founder and not state.is_over(now_ms):
                    strikes[state.founder].append(state)
                    other = others[stream_id, share] = self._other(stream_id, share)
                    shared[state.founder, other] += 1
        self.barred, self._partners, self._others = {}, set(), others
        for subscriber, states in strikes.items():
            limit = self._working.inventory.limit(subscriber, "quarantined", self._limits)
            if limit and len(states) >= limit:
                since_ms = sorted(state.since_ms for state in states)[limit - 1]
                until_ms = sorted(state.over_ms for state in states)[-limit]
                self.barred[subscriber] = Quarantine(since_ms, until_ms, WITHHELD)
                self._partners |= {pair for pair, times in shared.items() if pair[0] == subscriber and times >= limit}

    def _other(self, stream_id: StreamId, share: str) -> Subscriber:
        """Return the only subscriber besides its founder who uses a share, or used it before it was dropped."""
        group_id, select_id = parts_of(share)
        founder = self._working.inventory.founders.get(stream_id, {}).get(select_id or group_id)
        return self._others.get((stream_id, share), NOBODY) if founder is None else founder.other

    def check(self, subscriber: Subscriber, destination: Destination) -> None:
        """Check that a subscriber may have a destination made.

        Raises:
            InputError: ``quota-exceeded``: it has too many strikes, and the group or the SELECT list would be new.
        """
        stay = self.barred.get(subscriber)
        if stay is None:
            return
        inventory, stream_id = self._working.inventory, destination.stream_id
        known_group = destination.group_id in inventory.groups(stream_id)
        if known_group and destination.select_id in inventory.users(stream_id, DependencyKind.SELECT):
            return
        limit = inventory.limit(subscriber, "quarantined", self._limits)
        raise InputError(
            f'subscriber "{subscriber}" makes no new groups or SELECT lists for now',
            code="quota-exceeded",
            detail=f"{limit} or more that it made were quarantined within the hour: they ended the workers that "
            f"evaluated them, or took too much CPU time. This lasts until {instant(stay.until_ms)}.",
            hint="DESCRIBE CQ tells which of your CQs are not evaluated, and why: drop these.",
        )

    def withheld(self, stream_id: StreamId) -> dict[str, Quarantine]:
        """Return by its id each group and SELECT list of a stream that is to be left out; none where nobody waits."""
        founders = self._working.inventory.founders.get(stream_id, {})
        if not self.barred or len({founder if founder.alone else None for founder in founders.values()}) < 2:
            return {}
        own = {item_id: self.barred.get(who.subscriber) for item_id, who in founders.items() if self._is_own(who)}
        return {item_id: stay for item_id, stay in own.items() if stay is not None}

    def _is_own(self, founder: Founder) -> bool:
        """Tell whether nobody uses what one has founded but itself and those who count as itself."""
        if founder.alone or not founder.other:
            return founder.alone
        return founder.other in self.barred or (founder.subscriber, founder.other) in self._partners
