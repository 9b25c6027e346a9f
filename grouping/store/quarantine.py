"""Quarantine: the parts of a stream's queries that are left out, and why. The evaluator writes, the gateway shows it.

A *share* is what can be left out by itself: a group (``g_…``), or one SELECT list of a group (``g_…/s_…``), for a group
may have very many CQs, and what one of them publishes is no fault of the others. A share that is convicted is a
*strike* against its founder; of a subscriber with too many the gateway has everything *withheld* that only it uses.
All of this is lost with Redis: what is at fault is then found anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from grouping.model.ids import GroupId, SelectId, StreamId, Subscriber
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.fence import transaction
from grouping.store.founders import Founder
from grouping.store.keys import RedisKeys
from grouping.store.ownership import EvaluatorFences

__all__ = [
    "KILLED",
    "NOBODY",
    "SLOW",
    "TRIES",
    "Quarantine",
    "QuarantineStore",
    "Trial",
    "WITHHELD",
    "convicted",
    "group_of",
    "parts_of",
    "share_of",
]

KILLED = "it ended the worker that evaluated it"
"""Why a share is left out that killed workers."""
SLOW = "it took too much CPU time"
"""Why a share is left out whose evaluation was stopped midway."""
WITHHELD = "too much that its subscriber made was quarantined within the hour"
"""Why a share is left out that did no harm itself."""

NOBODY = Subscriber("")
"""The founder of a share of whom nothing is known."""

TRIES = 3
"""Deaths of workers at one batch after which its shares are evaluated apart."""
_FIRST_MS = 60_000
"""How long a share is left out that is convicted for the first time, and how long a fault is shown."""
_LONGEST_MS = 3_600_000
"""How long a share is left out at most, before it is tried again; and how long it is remembered after that."""


def share_of(group_id: GroupId, select_id: SelectId) -> str:
    """Return the share that is one SELECT list of a group."""
    return f"{group_id}/{select_id}"


def group_of(share: str) -> GroupId:
    """Return the group that a share is or belongs to."""
    return GroupId(share.partition("/")[0])


def parts_of(share: str) -> tuple[str, str | None]:
    """Return the group, and the SELECT list where a share is but one of it.

    Example:
        >>> parts_of(share_of("g_1", "s2")), parts_of("g_1")
        (('g_1', 's2'), ('g_1', None))
    """
    group_id, _, select_id = share.partition("/")
    return group_id, select_id or None


class Quarantine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a share is not evaluated; times in epoch milliseconds."""

    since_ms: int
    until_ms: int
    """When it is tried again; of a share that only raises, and is tried with every batch, when it counts as mended."""
    reason: str
    deaths: int = 0
    """How often it was convicted, of having killed workers or of having been too slow; 0 where it only raises."""
    founder: Subscriber = NOBODY
    """Against whom the conviction counts; empty where it is not known, or several were convicted together."""

    @classmethod
    def of_fault(cls, reason: str, now_ms: int, before: Quarantine | None) -> Quarantine:
        """Return the state of a share that has raised, and of which this was known."""
        if before is None:
            return cls(now_ms, now_ms + _FIRST_MS, reason)
        since = before.since_ms if before.holds(now_ms) else now_ms
        return cls(since, max(now_ms + _FIRST_MS, before.until_ms), reason, before.deaths, before.founder)

    @classmethod
    def of_conviction(
        cls, now_ms: int, before: Quarantine | None, reason: str = KILLED, founder: Subscriber = NOBODY
    ) -> Quarantine:
        """Return the state of a share that killed workers, or was too slow: each time left out for twice as long."""
        deaths = 1 if before is None else before.deaths + 1
        since = before.since_ms if before is not None and before.deaths else now_ms
        pause = min(_FIRST_MS << min(deaths - 1, 16), _LONGEST_MS)
        return cls(since, now_ms + pause, reason, deaths, founder)

    def holds(self, now_ms: int) -> bool:
        """Tell whether the share still counts as not evaluated."""
        return now_ms < self.until_ms

    def leaves_out(self, now_ms: int) -> bool:
        """Tell whether the share is not even tried."""
        return self.deaths > 0 and self.holds(now_ms)

    @property
    def over_ms(self) -> int:
        """When it can be forgotten: a share that was convicted may do it again for a while."""
        return self.until_ms + (_LONGEST_MS if self.deaths else 0)

    def is_over(self, now_ms: int) -> bool:
        """Tell whether it can be forgotten."""
        return now_ms >= self.over_ms


class Trial(msgspec.Struct, frozen=True, omit_defaults=True):
    """The trial of a batch at which workers died; a stream has one until the batch is committed."""

    deaths: int = 0
    suspects: tuple[str, ...] = ()
    """The shares of which one was in hand at the last death; none while it may have been any."""

    hung: bool = False
    """Whether a worker may have died because it hung: another such death is not waited for."""

    @property
    def careful(self) -> bool:
        """Whether shares are evaluated apart, each noted before it is."""
        return self.hung or self.deaths >= TRIES

    def after_death(self, in_hand: Iterable[str], *, hung: bool = False) -> Trial:
        """Return the trial after one more death.

        Args:
            in_hand: The shares that the worker had noted; none while it noted nothing, or was at none of them.
            hung: Whether the worker may have hung.
        """
        return Trial(self.deaths + 1, tuple(in_hand), self.hung or hung)


def convicted(trial: Trial, in_hand: Collection[str], known: Mapping[str, Quarantine]) -> Collection[str]:
    """Return the shares that are at fault, none while that is not certain.

    One that was in hand alone at two deaths in a row, since a worker may be killed by anybody once; for one that was
    convicted before, once is enough. The groups of a join that kills are at fault together: suspects are divided
    unless it is their join that is being made, so only then several are in hand again.

    Args:
        trial: What was known before this death.
        in_hand: The shares that were in hand at it.
        known: What is known of the stream's shares.
    """
    before = known.get(next(iter(in_hand))) if len(in_hand) == 1 else None
    again = set(trial.suspects) == set(in_hand)
    return in_hand if again or (before is not None and before.deaths) else ()


class QuarantineStore:
    """Quarantines and trials in Redis. One instance per process and thread."""

    def __init__(self, settings: Settings, fences: EvaluatorFences | None = None) -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            fences: Those under which the evaluator writes: whatever writes may raise `LeaseLost`. None for the
                gateway.
        """
        self._keys = RedisKeys.of(settings)
        self._fences = fences
        self._redis = connect(settings)

    def quarantined(self, stream_id: StreamId) -> dict[str, Quarantine]:
        """Return the quarantines of a stream by share, including those that are over."""
        return self.quarantined_in([stream_id])[stream_id]

    def quarantined_in(self, stream_ids: Collection[StreamId]) -> dict[StreamId, dict[str, Quarantine]]:
        """Return by stream and share what is known, all at once."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for stream_id in stream_ids:
                pipeline.hgetall(self._keys.quarantine(stream_id))
            found = pipeline.execute()
        return {
            stream_id: {share.decode(): msgspec.json.decode(body, type=Quarantine) for share, body in bodies.items()}
            for stream_id, bodies in zip(stream_ids, found, strict=True)
        }

    def put(self, stream_id: StreamId, shares: Mapping[str, Quarantine]) -> None:
        """Note what is known of some shares now."""
        bodies = {share: msgspec.json.encode(state) for share, state in shares.items()}
        with mapped():
            self._transaction(stream_id).hset(self._keys.quarantine(stream_id), mapping=bodies).execute()

    def _transaction(self, stream_id: StreamId) -> Any:
        return transaction(self._redis, None if self._fences is None else self._fences.stream(stream_id))

    def founders(self, stream_id: StreamId, shares: Collection[str]) -> dict[str, Subscriber]:
        """Return by share who founded it, of those of which it is known: the group, or the SELECT list if it is one."""
        wanted = [select_id or group_id for group_id, select_id in map(parts_of, shares)]
        with mapped():
            bodies = self._redis.hmget(self._keys.founders(stream_id), wanted) if wanted else []
        found = zip(shares, bodies, strict=True)
        return {share: Founder.unpack(body).subscriber for share, body in found if body is not None}

    def withheld(self, stream_id: StreamId) -> frozenset[str]:
        """Return the ids of the groups and SELECT lists that are left out for the harm of others of their subscriber.

        Such an id is of a group, and then of all its shares, or of a SELECT list, whatever group it is used in.
        """
        with mapped():
            body = self._redis.get(self._keys.withheld(stream_id))
        return frozenset(msgspec.json.decode(body, type=list[str]) if body else ())

    def withhold(self, stream_id: StreamId, ids: Collection[str]) -> None:
        """Have groups and SELECT lists withheld from now on, and no others; the gateway's alone."""
        key = self._keys.withheld(stream_id)
        with mapped():
            if ids:
                self._redis.set(key, msgspec.json.encode(sorted(ids)))
            else:
                self._redis.delete(key)

    def forget(self, stream_id: StreamId, shares: Iterable[str]) -> None:
        """Drop what is known of some shares."""
        with mapped():
            self._redis.hdel(self._keys.quarantine(stream_id), *shares)

    def trial(self, stream_id: StreamId) -> Trial:
        """Return what is known of the batch that comes next."""
        with mapped():
            body = self._redis.get(self._keys.trial(stream_id))
        return msgspec.json.decode(body, type=Trial) if body else Trial()

    def set_trial(self, stream_id: StreamId, trial: Trial) -> None:
        """Note what is known of the batch that comes next; what was in hand is told by that."""
        with mapped():
            pipeline = self._transaction(stream_id)
            pipeline.set(self._keys.trial(stream_id), msgspec.json.encode(trial))
            pipeline.delete(self._keys.in_hand(stream_id))
            pipeline.execute()

    def end_trial(self, stream_id: StreamId) -> None:
        """Note that the batch is committed."""
        with mapped():
            self._transaction(stream_id).delete(self._keys.trial(stream_id), self._keys.in_hand(stream_id)).execute()

    def batch_under_way(self, stream_id: StreamId) -> bool:
        """Tell whether a batch was begun and not committed."""
        with mapped():
            return bool(self._redis.exists(self._keys.pins(stream_id)))

    def hold(self, stream_id: StreamId, task: int, shares: Iterable[str]) -> None:
        """Note the shares that a task of the batch has in hand now."""
        with mapped():
            encoded = msgspec.json.encode(list(shares))
            self._transaction(stream_id).hset(self._keys.in_hand(stream_id), str(task), encoded).execute()

    def in_hand(self, stream_id: StreamId) -> dict[int, list[str]]:
        """Return by task the shares that it had in hand last."""
        with mapped():
            bodies = self._redis.hgetall(self._keys.in_hand(stream_id))
        return {int(task): msgspec.json.decode(body, type=list[str]) for task, body in bodies.items()}

    def count_dead_letters(self, counts: Mapping[str, int]) -> None:
        """Add dead letters by code."""
        with mapped():
            pipeline = transaction(self._redis, None if self._fences is None else self._fences.lease)
            for code, count in counts.items():
                pipeline.hincrby(self._keys.dead_letters, code, count)
            pipeline.execute()

    def dead_letters(self) -> dict[str, int]:
        """Return how many dead letters the evaluator has written, by code, since Redis was filled."""
        with mapped():
            counts = self._redis.hgetall(self._keys.dead_letters)
        return {code.decode(): int(count) for code, count in counts.items()}
