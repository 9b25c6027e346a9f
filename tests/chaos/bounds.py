"""Bounds that production reaches after hours, lowered so that every round of a chaos run reaches them."""

from __future__ import annotations

from types import ModuleType

from tests.chaos.planted import replace, when_imported

__all__ = ["lower"]


def lower() -> None:
    """Have groups that wait put together every second, whatever their size (`gateway/timers/rolling.py`)."""
    when_imported("gateway.timers.rolling", _roll_all)
    when_imported("gateway.timers.timers", _look_often)


def _roll_all(rolling: ModuleType) -> None:
    replace(rolling, "LEAST_BYTES", 1)
    replace(rolling, "REST", 0)
    replace(rolling, "_RATIO", 0)


def _look_often(timers: ModuleType) -> None:
    replace(timers, "_TRIM_MS", 1000)
