"""The ownership of streams: a stream has one evaluator at a time, and only the tasks of this evaluator write for it.

This holds even if two evaluators have contradictory settings. Each evaluator has a lease by its name. For each stream,
a key names the owner: the name and the token of the evaluator that began to evaluate the stream last. Another evaluator
can take the stream only after the owner's token has lost its lease. The key is the fence of all writes for the stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.evaluator_scripts import GIVE_UP
from grouping.store.fence import Fence, LeaseLost
from grouping.store.keys import RedisKeys, role_title

__all__ = ["EvaluatorFences", "Owner", "Ownership"]

# KEYS: owner, lease of the claimer, lease of the owner. ARGV: the claimer, the claimer's token, the owner that the
# claimer has read, the owner's token. Returns 1 if the claimer now has the stream, 0 if the owner still holds its
# lease, -1 if the owner has changed since the claimer read it, -2 if the claimer has no lease.
_CLAIM = """
local owner = redis.call('GET', KEYS[1]) or ''
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return -2 end
if owner == ARGV[1] then return 1 end
if owner ~= ARGV[3] then return -1 end
if owner ~= '' and redis.call('GET', KEYS[3]) == ARGV[4] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
"""
_MINE, _LIVES, _NO_LEASE = 1, 0, -2


class Owner(NamedTuple):
    """An evaluator that has a stream."""

    name: str
    """The evaluator's name; empty for the evaluator without a name."""
    token: str
    """The token with which the process holds the evaluator's lease."""

    @classmethod
    def unpack(cls, body: bytes | None) -> Owner | None:
        """Read the value of `RedisKeys.owner`; None for an empty or missing value.

        Example:
            >>> Owner.unpack(b"fast:host/7/ab"), Owner.unpack(b"")
            (Owner(name='fast', token='host/7/ab'), None)
        """
        name, colon, token = (body or b"").decode().partition(":")
        return cls(name, token) if colon else None

    def pack(self) -> str:
        """Return the owner as Redis has it."""
        return f"{self.name}:{self.token}"

    @property
    def title(self) -> str:
        """The displayed name of the evaluator."""
        return f'evaluator "{self.name}"' if self.name else "unnamed evaluator"


@dataclass(frozen=True, slots=True)
class EvaluatorFences:
    """The fences under which an evaluator and its tasks write. They can be pickled, since tasks get them."""

    keys: RedisKeys
    holder: Owner

    @classmethod
    def of(cls, settings: Settings, token: str) -> EvaluatorFences:
        """Return the fences of the evaluator that the settings name, with the token of its lease."""
        return cls(RedisKeys.of(settings), Owner(settings.evaluator.name, token))

    @property
    def lease(self) -> Fence:
        """The fence of the evaluator's lease, for writes that concern no stream."""
        return Fence(self.keys.fence(role_title("evaluator", self.holder.name)), self.holder.token)

    def stream(self, stream_id: StreamId) -> Fence:
        """Return the fence for writes that concern a stream."""
        return Fence(self.keys.owner(stream_id), self.holder.pack())


class Ownership:
    """Claims and gives up the streams of an evaluator. For one thread."""

    def __init__(self, settings: Settings, fences: EvaluatorFences) -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            fences: The fences under which the evaluator writes.
        """
        self.fences = fences
        """The fences of the evaluator."""
        self._redis = connect(settings)
        self._keys = fences.keys
        self._holder = fences.holder
        self._claim = self._redis.register_script(_CLAIM)

    def claim(self, stream_id: StreamId) -> Owner | None:
        """Take or keep a stream; return None on success, otherwise the live evaluator that has the stream.

        Raises:
            LeaseLost: This evaluator holds no lease.
            StoreUnavailable: Redis does not answer.
        """
        key, mine = self._keys.owner(stream_id), self._holder
        with mapped():
            while True:
                body = self._redis.get(key)
                owner = Owner.unpack(body) or mine
                leases = [self._keys.lease(role_title("evaluator", each.name)) for each in (mine, owner)]
                args = [mine.pack(), mine.token, body or b"", owner.token]
                outcome = self._claim(keys=[key, *leases], args=args)
                if outcome == _NO_LEASE:
                    raise LeaseLost("another evaluator has taken over", detail="The other evaluator holds the lease.")
                if outcome in (_MINE, _LIVES):
                    return owner if outcome == _LIVES else None

    def lost(self, stream_ids: Iterable[StreamId]) -> list[StreamId]:
        """Return the streams that other evaluators have taken. Claim a stream again if Redis has lost its owner.

        Raises:
            LeaseLost: As `claim` does.
            StoreUnavailable: Redis does not answer.
        """
        listed = list(stream_ids)
        if not listed:
            return []
        with mapped():
            bodies = self._redis.mget([self._keys.owner(stream_id) for stream_id in listed])
        mine = self._holder.pack().encode()
        doubted = [stream_id for stream_id, body in zip(listed, bodies, strict=True) if body != mine]
        return [stream_id for stream_id in doubted if self.claim(stream_id) is not None]

    def give_up(self, stream_id: StreamId) -> None:
        """Give up a stream that this evaluator no longer evaluates; if the stream was dropped, remove its keys.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        keys = self._keys
        given = [keys.owner(stream_id), keys.epoch, keys.version, keys.streams, *keys.of_stream(stream_id)]
        with mapped():
            self._redis.eval(GIVE_UP, len(given), *given, self._holder.pack(), stream_id)
