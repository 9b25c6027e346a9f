"""The lease: only its holder may run and write, as the single gateway of a prefix or the single evaluator of a name."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from grouping.settings.settings import Settings
from grouping.store.connection import PrimaryUnknown, check_primary, connect, mapped
from grouping.store.fence import Fence
from grouping.store.keys import LeaseTaker, RedisKeys, role_title

__all__ = ["LIFETIME_MS", "Lease", "holder_is_dead"]

LIFETIME_MS: Mapping[LeaseTaker, int] = {"gateway": 3_000, "evaluator": 8_000}
"""Lifetime of a lease without renewal, in milliseconds. When the holder has died, a standby waits at most this time.
The lease of an evaluator lasts longer, since an evaluator that cannot renew its lease needs time to end its JVM.
"""

# KEYS: lease, fence. ARGV: token, lifetime in ms.
_ACQUIRE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if redis.call('GET', KEYS[2]) ~= ARGV[1] then redis.call('SET', KEYS[2], ARGV[1]) end
return 1
"""

# KEYS: lease. ARGV: token.
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class Lease:
    """The right to be the gateway of a prefix, or the evaluator of a given name of the prefix.

    A lease lapses if it is not renewed in time; a holder that cannot renew must stop at once. If the holder is a dead
    process of this machine, its successor does not wait. Each lease has a *fence*: a second key that names the last
    holder, even after the lease has lapsed. So a suspended holder that wakes up can write nothing.

    The `Lock` of redis-py does not suffice. Transactions cannot depend on a `Lock`. Also, a `Lock` does not name its
    holder, so a successor could not find out that the holder is dead.
    """

    def __init__(self, settings: Settings, role: LeaseTaker, name: str = "") -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            role: The role that the lease is for.
            name: The evaluator's name; empty for the evaluator without a name, and for the gateway.
        """
        self._redis = connect(settings)
        keys = RedisKeys.of(settings)
        self.key = keys.lease(role_title(role, name))
        """The lease's key in Redis."""
        self._fence = keys.fence(role_title(role, name))
        self.lifetime_ms = LIFETIME_MS[role]
        self.token = f"{_machine()}/{os.getpid()}/{secrets.token_hex(4)}"
        """The token of this process, in the form that `holder` returns."""

    def acquire(self) -> bool:
        """Take or renew the lease; return False if another process holds it.

        Raises:
            StoreUnavailable: Redis does not answer, or the server that answered is no longer the primary.
        """
        with mapped():
            taken = self._take()
            if not taken and (holder := self.holder()) is not None and holder_is_dead(holder):
                self._redis.eval(_RELEASE, 1, self.key, holder)
                taken = self._take()
        if taken:
            with suppress(PrimaryUnknown):  # Sentinels may not have promoted a server yet
                check_primary(self._redis)
        return taken

    def _take(self) -> bool:
        return bool(self._redis.eval(_ACQUIRE, 2, self.key, self._fence, self.token, self.lifetime_ms))

    def holder(self) -> str | None:
        """Return the holder of the lease, as ``machine/pid/nonce``."""
        with mapped():
            holder = self._redis.get(self.key)
        return holder.decode() if holder else None

    def remaining_ms(self) -> int:
        """Return the milliseconds until the lease lapses; 0 without a holder."""
        with mapped():
            return max(int(self._redis.pttl(self.key)), 0)

    def release(self) -> None:
        """Give the lease back."""
        with mapped():
            self._redis.eval(_RELEASE, 1, self.key, self.token)

    @property
    def fence(self) -> Fence:
        """The fence of the lease, with this process's token."""
        return Fence(self._fence, self.token)

    def transaction(self, client: Any) -> Any:
        """Return a pipeline whose commands Redis carries out in one transaction, unless another process has the lease.

        The pipeline's `execute` takes one round trip, and raises `LeaseLost` if another process has taken the lease.
        """
        return self.fence.transaction(client)


def _machine() -> str:
    """Return the machine's name, the id of its boot, and the namespace of process numbers.

    The namespace is needed because two containers may have the same name, and each of them has a process 1.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]
        return f"{socket.gethostname()}-{boot}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return socket.gethostname()


def holder_is_dead(holder: str) -> bool:
    """Tell whether a holder, as `Lease.holder` returns it, is known to be a process of this machine that has ended.

    Example:
        >>> holder_is_dead("elsewhere/7/0a1b2c3d")
        False
    """
    machine, pid, _ = holder.split("/")
    if machine != _machine():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
