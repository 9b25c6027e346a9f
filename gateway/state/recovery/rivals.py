"""Prevents two active gateways with the same prefix and different Redis servers.

A lease excludes only gateways with the same Redis. So the active gateway also writes a sign of life to Kafka once a
second (`SignBoard`). A gateway with another Redis first watches the sign. If the sign keeps changing, the gateway
refuses to start. The gateway starts if the sign does not change for some seconds, or if the other gateway's process was
on this machine and has ended. So after the loss of a Redis, the next start takes a few seconds longer.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from gateway.kafka import KafkaUnavailable, SignBoard
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.keys import RedisKeys
from grouping.store.lease import holder_is_dead

__all__ = ["GatewaySign", "OtherRedis", "Rival", "Sign"]

log = logging.getLogger(__name__)

_BEAT_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_LAPSE_SECONDS = 4.0
"""A gateway without a new sign for this time counts as gone; about as long as a lease lasts."""
_BEATS = 3
"""A gateway is certainly alive once its sign has changed this many times.

Fewer changes do not suffice: a gateway that has lost its lease may still write one more sign.
"""


class OtherRedis(OperationalError):
    """Another gateway on the prefix is alive, with another Redis; this gateway must stop."""


class Sign(msgspec.Struct, frozen=True):
    """A gateway's sign of life."""

    redis: str = ""
    """The id of the gateway's Redis, which is stored in that Redis."""
    holder: str = ""
    """The gateway, as the lease names it: ``machine/pid/nonce``."""
    term: int = 0
    """A number that grows from one gateway to the next."""
    beat: int = 0
    """A number that grows with each sign of a gateway."""

    @classmethod
    def decode(cls, text: str) -> Sign:
        """Read a sign; a text in another form gives a sign with an empty `holder`.

        Example:
            >>> Sign.decode('{"redis":"r","holder":"a/1/x","beat":7}').beat, Sign.decode("").holder
            (7, '')
        """
        try:
            return _decode(text or "{}")
        except msgspec.MsgspecError:
            return cls()

    def encode(self) -> str:
        """Return the sign as text."""
        return msgspec.json.encode(self).decode()

    def is_succeeded_by(self, other: Sign) -> bool:
        """Tell whether another sign is of a gateway with another Redis that began after the gateway of this sign.

        The gateway with the higher term began later. If both terms are equal, the greater `holder` counts as later.


        Example:
            >>> own = Sign("r", "a/1/x", 7)
            >>> [own.is_succeeded_by(Sign(redis, "b/2/y", term)) for redis, term in (("r", 8), ("s", 8), ("s", 6))]
            [False, True, False]
        """
        return other.redis != self.redis and (other.term, other.holder) > (self.term, self.holder)


_decode = msgspec.json.Decoder(Sign).decode


class Rival:
    """Another gateway, known by the signs that were seen one after another."""

    def __init__(self, sign: Sign, seconds: float) -> None:
        """Begin with the first sign.

        Args:
            sign: The sign.
            seconds: When the sign was seen, in monotonic seconds.
        """
        self.sign = sign
        """The latest sign."""
        self._changes = 0
        self._changed_at = seconds

    def note(self, sign: Sign, seconds: float) -> None:
        """Note the sign that a later look found.

        Args:
            sign: The sign that was found.
            seconds: When it was found, in monotonic seconds.
        """
        if sign != self.sign:
            self.sign, self._changed_at = sign, seconds
            self._changes += 1

    @property
    def alive(self) -> bool:
        """Whether the gateway is certainly alive."""
        return self._changes >= _BEATS

    def gone(self, seconds: float) -> bool:
        """Tell whether the gateway counts as gone at a moment, in monotonic seconds."""
        return seconds - self._changed_at >= _LAPSE_SECONDS or holder_is_dead(self.sign.holder)


class GatewaySign:
    """Writes this gateway's sign, and watches the signs of other gateways."""

    def __init__(self, settings: Settings, holder: str, stop: threading.Event) -> None:
        """Prepare to connect; connections are made at the first use.

        Args:
            settings: The settings with the addresses of Kafka and Redis.
            holder: This gateway, as the lease names it.
            stop: Ends the waiting and the signs.
        """
        self._redis: Any = connect(settings)
        self._redis_id = RedisKeys.of(settings).redis_id
        self._board = SignBoard(settings)
        self._sign = Sign(holder=holder)
        self._stop = stop

    def refuse_rival(self) -> None:
        """Wait until no gateway with another Redis is alive; return immediately if the last gateway had this Redis.

        Raises:
            OtherRedis: A gateway with another Redis is alive.
            OperationalError: Kafka or Redis did not answer.
        """
        with mapped():
            self._redis.set(self._redis_id, secrets.token_hex(8), nx=True)
            redis_id = self._redis.get(self._redis_id).decode()
        first = Sign.decode(self._board.read())
        self._sign = msgspec.structs.replace(self._sign, redis=redis_id, term=first.term + 1)
        if not first.holder or first.redis == self._sign.redis:
            return
        rival = Rival(first, time.monotonic())
        while not rival.gone(time.monotonic()) and not self._stop.wait(_LOOK_SECONDS):
            rival.note(Sign.decode(self._board.read()), time.monotonic())
            if rival.alive:
                raise OtherRedis(
                    "another gateway runs on the prefix, with another Redis",
                    detail=f"The other gateway is {rival.sign.holder} (machine/process/nonce).",
                    hint="Stop it first, or give this one another prefix (CQ_PREFIX) or the same Redis (CQ_REDIS_URL).",
                )
        if not self._stop.is_set():
            log.warning("the last gateway had another redis, and is gone", extra={"last": rival.sign.holder})

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Write the sign once a second in the block; end the process if a gateway with another Redis takes over."""
        writer = threading.Thread(target=self._show, name="sign", daemon=True)
        writer.start()
        try:
            yield
        finally:
            self._stop.set()
            writer.join(_BEAT_SECONDS)  # Kafka may not answer, and the process ends anyway

    def _show(self) -> None:
        while not self._stop.is_set():
            try:
                seen = Sign.decode(self._board.read())
                if self._sign.is_succeeded_by(seen):
                    log.error("a gateway with another redis has taken over", extra={"other": seen.holder})
                    os._exit(1)
                self._sign = msgspec.structs.replace(self._sign, beat=self._sign.beat + 1)
                self._board.write(self._sign.encode())
            except KafkaUnavailable as error:
                # The client itself reports once a minute that Kafka is away.
                log.debug("the sign of life is not written", extra={"error": str(error), "detail": error.detail})
            self._stop.wait(_BEAT_SECONDS)
        self._board.close()
