"""A gateway that comes back has forgotten how far digests were served."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tests.chaos.planted import when_imported

__all__ = ["plant"]


def plant() -> None:
    """Plant it."""
    when_imported("gateway.timers.state", _change)


def _change(state: ModuleType) -> None:
    begin = state.TimerState.__init__

    def begin_anew(self: Any, working: Any) -> None:
        begin(self, working)
        self._redis.delete(working.key("cursors"))

    state.TimerState.__init__ = begin_anew
