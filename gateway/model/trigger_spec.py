"""Triggers as destinations keep them: with the phase of their ticks."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property

import msgspec

from grouping.model.panes import PaneBound
from grouping.model.trigger import ChangeBased, CronBased, Throttle, TimerBased, Trigger

__all__ = ["CHANGE_BASED", "TriggerSpec"]


class TriggerSpec(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, dict=True):
    """A trigger with its phase: CQs with equal triggers and phases fire at the same instants."""

    every_ms: int = 0
    """EVERY, in milliseconds; 0 for change-based and cron."""
    phase_ms: int = 0
    """The phase of the ticks, in milliseconds: START modulo EVERY. Without START, the time at which the command was
    first tried takes the place of START, and the phase is rounded up to a multiple of EVERY / 100."""
    cron: str = ""
    zone: str = ""
    over_ms: int = 0
    """OVER LAST, in milliseconds; 0 if a digest has only the matches since the previous tick."""
    at_most: tuple[int, int, tuple[str, ...]] | None = None
    """AT MOST: the number of results, the interval in milliseconds, and the columns of BY; None without AT MOST."""

    @classmethod
    def of(cls, trigger: Trigger, start_ms: int | None, asked_ms: int) -> TriggerSpec:
        """Make the spec of a trigger.

        Args:
            trigger: The trigger.
            start_ms: START, epoch milliseconds; None without a START.
            asked_ms: When the command was first tried, epoch milliseconds; without START, this time gives the phase.

        Example:
            >>> TriggerSpec.of(TimerBased(timedelta(seconds=10)), None, 23_040).phase_ms
            3100
        """
        match trigger:
            case ChangeBased(throttle):
                if throttle is None:
                    return CHANGE_BASED
                return cls(at_most=(throttle.most, throttle.every_ms, throttle.columns))
            case TimerBased(every, over):
                every_ms = round(every.total_seconds() * 1000)
                over_ms = 0 if over is None else round(over.total_seconds() * 1000)
                phase_ms = _shared_phase(asked_ms, every_ms) if start_ms is None else start_ms % every_ms
                return cls(every_ms, phase_ms, over_ms=over_ms)
            case CronBased(cron, zone):
                return cls(cron=" ".join(cron.split()), zone=zone)

    @property
    def trigger(self) -> Trigger:
        """The trigger without its phase."""
        if self.every_ms:
            over = timedelta(milliseconds=self.over_ms) if self.over_ms else None
            return TimerBased(timedelta(milliseconds=self.every_ms), over)
        return CronBased(self.cron, self.zone) if self.cron else ChangeBased(self.throttle)

    @cached_property
    def throttle(self) -> Throttle | None:
        """AT MOST; None without this clause."""
        if self.at_most is None:
            return None
        most, every_ms, columns = self.at_most
        return Throttle(most, timedelta(milliseconds=every_ms), columns)

    @cached_property
    def timed(self) -> bool:
        """Whether matches wait for a tick."""
        return bool(self.every_ms or self.cron)

    @property
    def bound(self) -> PaneBound:
        """The instants at which the timer may fire, as period and phase; cron may fire at every whole minute.

        Example:
            >>> TriggerSpec(every_ms=300_000, phase_ms=61_250).bound, TriggerSpec(cron="0 8 * * *").bound
            ((300000, 61250), (60000, 0))
        """
        return (self.every_ms, self.phase_ms) if self.every_ms else (_MINUTE_MS, 0)

    def anchor_ms(self, accepted_ms: int) -> int:
        """Return the instant from which EVERY is counted for a CQ without START; all ticks of the CQ are later.

        If an instant with the phase comes at most EVERY / 100 after the acceptance, the result is this instant;
        otherwise the result is the time of the acceptance.

        Example:
            >>> trigger = TriggerSpec(every_ms=10_000, phase_ms=3_100)
            >>> trigger.anchor_ms(23_040), trigger.anchor_ms(24_000)
            (23100, 24000)
        """
        ahead_ms = (self.phase_ms - accepted_ms) % self.every_ms if self.every_ms else 0
        return accepted_ms + ahead_ms if ahead_ms <= self.every_ms // _ANCHORS else accepted_ms


_ANCHORS = 100
"""The approximate largest number of phases of CQs with the same EVERY and without START. With few phases, many CQs
share ticks and panes."""


def _shared_phase(asked_ms: int, every_ms: int) -> int:
    """Return the phase of an instant, rounded up to hundredths of the interval."""
    step = max(every_ms // _ANCHORS, 1)
    return min(-(-(asked_ms % every_ms) // step) * step, every_ms) % every_ms


CHANGE_BASED = TriggerSpec()
"""The trigger of nearly all destinations: a single object, so that `timed` is computed once."""

_MINUTE_MS = 60_000
