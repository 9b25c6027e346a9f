"""Notes in Redis in which gateway and evaluator report their own state, for observers on other machines."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import msgspec

from grouping.process.log_lines import last_error
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.keys import LeaseTaker, RedisKeys, role_title

__all__ = ["RoleNote", "RoleNotes"]

_LASTS_SECONDS = 10
"""How long a note lasts. Roles write their notes every second."""


class RoleNote(msgspec.Struct, frozen=True):
    """The state of a role, as in its status file."""

    state: str
    host: str
    pid: int
    since_ms: int
    """When the process began to write notes, in epoch milliseconds."""
    noted_ms: int = msgspec.field(name="told_ms")
    """When the note was written, by the clock of the role's machine, in epoch milliseconds."""
    last_error: dict[str, str] | None = None
    more: dict[str, Any] = {}
    """Further facts: `streams` and `tables` by name, and the address of the role's metrics."""


class RoleNotes:
    """Writes the notes of one role, and reads the notes of both."""

    def __init__(self, settings: Settings) -> None:
        """Connect."""
        self._keys = RedisKeys.of(settings)
        self._redis = connect(settings)
        self._since_ms = _now_ms()

    def tell(self, role: LeaseTaker, state: str, more: dict[str, Any], name: str = "") -> None:
        """Write the state of this process.

        Args:
            role: The role of this process.
            state: The state.
            more: Further facts (`RoleNote.more`).
            name: The evaluator's name.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        note = RoleNote(state, socket.gethostname(), os.getpid(), self._since_ms, _now_ms(), last_error(), more)
        with mapped():
            self._redis.set(self._keys.role_note(role_title(role, name)), msgspec.json.encode(note), ex=_LASTS_SECONDS)

    def read(self, role: LeaseTaker, name: str = "") -> RoleNote | None:
        """Return a role's last note; None if the note has lapsed, or if this version cannot read it.

        Args:
            role: The role.
            name: The evaluator's name.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            body = self._redis.get(self._keys.role_note(role_title(role, name)))
        try:
            return None if body is None else msgspec.json.decode(body, type=RoleNote)
        except msgspec.MsgspecError:
            return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
