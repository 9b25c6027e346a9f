"""The trigger of a CQ: when its results are published, and how many of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["ChangeBased", "CronBased", "Throttle", "TimerBased", "Trigger"]


@dataclass(frozen=True, slots=True)
class Throttle:
    """AT MOST n EVERY interval [BY columns]: how many equal results a destination gets in an interval."""

    most: int
    every: timedelta
    columns: tuple[str, ...] = ()
    """Columns of the SELECT list: results with equal values in them share an interval. Empty without BY; all results of
    the destination then share an interval."""

    @property
    def every_ms(self) -> int:
        """The length of an interval, in milliseconds."""
        return self.every // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class ChangeBased:
    """Results are published as soon as an event matches."""

    throttle: Throttle | None = None
    """AT MOST; None without this clause, so that each result is published."""


@dataclass(frozen=True, slots=True)
class TimerBased:
    """Matches are collected, and published at the ticks START + k × every."""

    every: timedelta
    over: timedelta | None = None
    """OVER LAST: the length of the window before each tick, a multiple of `every`; None without OVER LAST."""


@dataclass(frozen=True, slots=True)
class CronBased:
    """Matches are collected, and published at the times of a cron expression."""

    cron: str
    zone: str = "UTC"


Trigger = ChangeBased | TimerBased | CronBased
