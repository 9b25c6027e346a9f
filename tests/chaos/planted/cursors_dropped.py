"""A fired tick is not noted: the next digest begins at the same place again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from tests.chaos.planted import replace, when_imported

__all__ = ["plant"]


def plant() -> None:
    """Plant the fault."""
    when_imported("gateway.state.timer_state", _change)


def _change(state: ModuleType) -> None:
    settle = state.TimerState.settle

    def forget(
        self: Any, stream_id: str, ticks: Mapping[str, int], idle: Iterable[str], cursors: Mapping[str, Any]
    ) -> None:
        settle(self, stream_id, ticks, idle, {})

    replace(state.TimerState, "settle", forget)
