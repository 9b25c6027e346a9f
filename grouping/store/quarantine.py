"""Quarantine: which work units of a stream are left out, and why. The evaluator writes quarantines, the gateway reads.

docs/design/039-quarantine.md has the rules. If Redis loses its data, quarantines are lost too, and the evaluator must
find the faulty units again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from grouping.model.ids import StreamId, Subscriber
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.fence import transaction
from grouping.store.keys import RedisKeys
from grouping.store.ownership import EvaluatorFences
from grouping.store.work_units import KILLED, parts_of

__all__ = [
    "SEVERAL",
    "CulpritSearch",
    "Quarantine",
    "QuarantineStore",
    "culprits",
    "part_of_budget",
    "sole_user",
    "sole_user_text",
    "stopped_units",
]

SEVERAL = Subscriber("")
"""The value in place of a sole user if several subscribers use or have used the unit, or if its users are unknown."""

_FIRST_MS = 60_000
"""Length of the first quarantine of a unit, in milliseconds. An error of a unit is shown for the same time."""
_LONGEST_MS = 3_600_000
"""Length of the longest quarantine, in milliseconds. A quarantine is remembered for the same time after its end."""


def sole_user_text(subscriber: Subscriber) -> str:
    """Return the text in Redis for the sole user of a group or SELECT list, or for `SEVERAL`."""
    return f"={subscriber}" if subscriber else "+"


def sole_user(text: bytes) -> Subscriber:
    """Read the text of a sole user. For several users, earlier versions wrote ``+`` or ``&`` before the users' names.

    Example:
        >>> sole_user(b"=alice"), sole_user(b"+alice"), sole_user(sole_user_text("bob").encode())
        ('alice', '', 'bob')
    """
    return Subscriber(text[1:].decode()) if text[:1] == b"=" else SEVERAL


class Quarantine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The quarantine of a work unit, with its reason; times in epoch milliseconds."""

    since_ms: int
    until_ms: int
    """The end of the quarantine. A unit that only raised errors is still evaluated in every batch; without a further
    error, the unit is healthy again from this time on.
    """
    reason: str
    times: int = msgspec.field(default=0, name="deaths")
    """How often the unit was quarantined for killing workers or for being slow; 0 if it only raised errors."""
    user: Subscriber = msgspec.field(default=SEVERAL, name="founder")
    """The sole user of the unit when the quarantine began."""

    @classmethod
    def of_fault(cls, reason: str, now_ms: int, before: Quarantine | None) -> Quarantine:
        """Return the state of a unit that has raised an error.

        Args:
            reason: The error, as a text.
            now_ms: The present time.
            before: The previous state of the unit; None without one.
        """
        if before is None:
            return cls(now_ms, now_ms + _FIRST_MS, reason)
        since = before.since_ms if before.holds(now_ms) else now_ms
        return cls(since, max(now_ms + _FIRST_MS, before.until_ms), reason, before.times, before.user)

    @classmethod
    def begun(
        cls, now_ms: int, before: Quarantine | None, reason: str = KILLED, user: Subscriber = SEVERAL
    ) -> Quarantine:
        """Return the quarantine of a unit that killed workers or was too slow.

        Each quarantine is twice as long as the previous quarantine of the unit, up to an hour.

        Args:
            now_ms: The present time.
            before: The previous state of the unit; None without one.
            reason: A reason of `grouping.store.work_units`.
            user: The sole user of the unit.
        """
        times = 1 if before is None else before.times + 1
        since = before.since_ms if before is not None and before.times else now_ms
        length = min(_FIRST_MS << min(times - 1, 16), _LONGEST_MS)
        return cls(since, now_ms + length, reason, times, user)

    def holds(self, now_ms: int) -> bool:
        """Tell whether the unit still counts as faulty."""
        return now_ms < self.until_ms

    def leaves_out(self, now_ms: int) -> bool:
        """Tell whether batches leave the unit out. Units that only raised errors are not left out."""
        return self.times > 0 and self.holds(now_ms)

    @property
    def over_ms(self) -> int:
        """The time from which on the state can be forgotten."""
        return self.until_ms + (_LONGEST_MS if self.times else 0)

    def is_over(self, now_ms: int) -> bool:
        """Tell whether the state can be forgotten."""
        return now_ms >= self.over_ms


def stopped_units(states: Iterable[Quarantine]) -> Counter[Subscriber]:
    """Return, by subscriber, how many units that only this subscriber uses were quarantined in the last hour."""
    return Counter(state.user for state in states if state.times and state.user)


def part_of_budget(stopped: int) -> float:
    """Return the part of a unit's CPU budget that is left to a user with this number of stopped units.

    If several units of a user are quarantined within an hour, the n-th of them had 1/n² of the budget. So all of them
    together took less than twice the budget of one unit.

    Example:
        >>> part_of_budget(0), part_of_budget(1)
        (1.0, 0.25)
    """
    return 1 / (1 + stopped) ** 2


class CulpritSearch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The search for the work unit that kills workers in a batch; the search ends when the batch is committed."""

    deaths: int = 0
    suspects: tuple[str, ...] = ()
    """The units that were marked at the last death of a worker; empty while any unit may be at fault."""

    @property
    def careful(self) -> bool:
        """Whether the suspects are evaluated one at a time, and each of them is marked before its evaluation."""
        return self.deaths > 0

    def after_death(self, marked: Iterable[str]) -> CulpritSearch:
        """Return the search after one more death.

        Args:
            marked: The units that the worker had marked when it died.
        """
        return CulpritSearch(self.deaths + 1, tuple(marked))


def culprits(search: CulpritSearch, marked: Collection[str], known: Mapping[str, Quarantine]) -> Collection[str]:
    """Return the work units that are at fault; empty while this is not certain.

    A single death of a worker may have any cause. So units are at fault only if the same units were marked at two
    deaths in a row. Several units can be at fault together only if they share a computation, since all other suspects
    are evaluated one at a time after a death. If a single unit is marked and has had a quarantine before, one death is
    enough.

    Args:
        search: The search before this death.
        marked: The units that were marked at the death.
        known: The quarantines of the stream, by work unit.
    """
    before = known.get(next(iter(marked))) if len(marked) == 1 else None
    again = set(search.suspects) == set(marked)
    return marked if again or (before is not None and before.times) else ()


class QuarantineStore:
    """Quarantines and searches for culprits in Redis. Use an instance per process and thread."""

    def __init__(self, settings: Settings, fences: EvaluatorFences | None = None) -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            fences: The evaluator's fences, with which every write may raise `LeaseLost`. None for the gateway.
        """
        self._keys = RedisKeys.of(settings)
        self._fences = fences
        self._redis = connect(settings)

    def quarantined(self, stream_id: StreamId) -> dict[str, Quarantine]:
        """Return the quarantines of a stream by work unit, including quarantines that have ended."""
        return self.quarantined_in([stream_id])[stream_id]

    def quarantined_in(self, stream_ids: Collection[StreamId]) -> dict[StreamId, dict[str, Quarantine]]:
        """Return the quarantines of several streams, by stream and work unit."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for stream_id in stream_ids:
                pipeline.hgetall(self._keys.quarantine(stream_id))
            found = pipeline.execute()
        return {
            stream_id: {unit.decode(): msgspec.json.decode(body, type=Quarantine) for unit, body in bodies.items()}
            for stream_id, bodies in zip(stream_ids, found, strict=True)
        }

    def put(self, stream_id: StreamId, units: Mapping[str, Quarantine]) -> None:
        """Write the quarantines of some work units."""
        bodies = {unit: msgspec.json.encode(state) for unit, state in units.items()}
        with mapped():
            self._transaction(stream_id).hset(self._keys.quarantine(stream_id), mapping=bodies).execute()

    def _transaction(self, stream_id: StreamId) -> Any:
        return transaction(self._redis, None if self._fences is None else self._fences.stream(stream_id))

    def sole_users(self, stream_id: StreamId) -> dict[str, Subscriber]:
        """Return the sole user of each group and SELECT list of a stream, by id; `SEVERAL` for several users."""
        with mapped():
            found = self._redis.hgetall(self._keys.sole_users(stream_id))
        return {item_id.decode(): sole_user(text) for item_id, text in found.items()}

    def sole_user_of(self, stream_id: StreamId, units: Collection[str]) -> Subscriber:
        """Return the sole user of a single work unit; `SEVERAL` for several units, such as all groups over a join."""
        if len(units) != 1:
            return SEVERAL
        group_id, select_id = parts_of(next(iter(units)))
        with mapped():
            text = self._redis.hget(self._keys.sole_users(stream_id), select_id or group_id)
        return SEVERAL if text is None else sole_user(text)

    def forget(self, stream_id: StreamId, units: Iterable[str]) -> None:
        """Remove the quarantines of some work units."""
        with mapped():
            self._redis.hdel(self._keys.quarantine(stream_id), *units)

    def search(self, stream_id: StreamId) -> CulpritSearch:
        """Return the search as it stands for the next batch."""
        with mapped():
            body = self._redis.get(self._keys.trial(stream_id))
        return msgspec.json.decode(body, type=CulpritSearch) if body else CulpritSearch()

    def set_search(self, stream_id: StreamId, search: CulpritSearch) -> None:
        """Write the search for the next batch, and remove the marks that this search has taken into account."""
        with mapped():
            pipeline = self._transaction(stream_id)
            pipeline.set(self._keys.trial(stream_id), msgspec.json.encode(search))
            pipeline.delete(self._keys.in_hand(stream_id))
            pipeline.execute()

    def end_search(self, stream_id: StreamId) -> None:
        """End the search, since the batch is committed."""
        with mapped():
            self._transaction(stream_id).delete(self._keys.trial(stream_id), self._keys.in_hand(stream_id)).execute()

    def batch_under_way(self, stream_id: StreamId) -> bool:
        """Tell whether a batch has begun and is not committed."""
        with mapped():
            return bool(self._redis.exists(self._keys.pins(stream_id)))

    def mark(self, stream_id: StreamId, task: int, units: Iterable[str]) -> None:
        """Write the work units that a task of the batch evaluates now."""
        with mapped():
            encoded = msgspec.json.encode(list(units))
            self._transaction(stream_id).hset(self._keys.in_hand(stream_id), str(task), encoded).execute()

    def marked(self, stream_id: StreamId) -> dict[int, list[str]]:
        """Return the work units that each task marked last, by task."""
        with mapped():
            bodies = self._redis.hgetall(self._keys.in_hand(stream_id))
        return {int(task): msgspec.json.decode(body, type=list[str]) for task, body in bodies.items()}

    def count_dead_letters(self, counts: Mapping[str, int]) -> None:
        """Add the numbers of new dead letters, by code."""
        self._add(self._keys.dead_letters, counts)

    def count_misfits(self, stream_id: StreamId, counts: Mapping[str, int]) -> None:
        """Add the numbers of values of a lenient stream that did not fit their columns, by column."""
        self._add(self._keys.misfits(stream_id), counts)

    def _add(self, key: str, counts: Mapping[str, int]) -> None:
        with mapped():
            pipeline = transaction(self._redis, None if self._fences is None else self._fences.lease)
            for field, count in counts.items():
                pipeline.hincrby(key, field, count)
            pipeline.execute()

    def dead_letters(self) -> dict[str, int]:
        """Return how many dead letters the evaluator has written, by code, since Redis was filled."""
        with mapped():
            counts = self._redis.hgetall(self._keys.dead_letters)
        return {code.decode(): int(count) for code, count in counts.items()}
