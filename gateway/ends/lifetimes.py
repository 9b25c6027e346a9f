"""EXPIRE: removes a CQ after its EXPIRE, once all events that were published before the EXPIRE are evaluated."""

from __future__ import annotations

from functools import partial

from gateway.kafka import Topics
from gateway.model.records import Destination
from gateway.registry.registry import Registry
from gateway.state.work import Change
from gateway.state.working_copy import WorkingCopy
from gateway.timers.timers import Timers
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.plan.group import GroupPlan
from grouping.settings.evaluator_settings import EvaluatorSettings

__all__ = ["Lifetimes", "settled_ms"]

_CHUNK = 8000
_MARK_MS = 10_000
"""How long the evaluator may take to write results after the clock has moved the watermark of an idle partition."""


class Lifetimes:
    """Removes expired CQs, some thousands in a unit of work."""

    def __init__(
        self, limits: EvaluatorSettings, working: WorkingCopy, registry: Registry, timers: Timers, topics: Topics
    ) -> None:
        self._limits = limits
        self._working = working
        self._topics = topics
        self._registry = registry
        self._timers = timers
        self._skip = 0
        self.busy = False
        """Whether more CQs may be due than the last step has removed."""

    def step(self, now_ms: int) -> Change:
        """Remove expired CQs within the unit of work, and return the change."""
        due = self._working.expiring(now_ms, self._skip, _CHUNK)
        if not due:
            self._skip, self.busy = 0, False
            return Change()
        change = self._registry.expire(self._working.load(due), due, partial(self._settled_ms, self._evaluated()))
        removed = len(change.notices)
        # CQs that could not be removed yet, because their stream lags, stay first in the list in Redis. The next step
        # skips these CQs if the list may be longer than a chunk; otherwise the next step tries them again.
        self._skip = self._skip + len(due) - removed if len(due) == _CHUNK else 0
        self.busy = removed > 0 and len(due) == _CHUNK
        return change

    def _settled_ms(self, evaluated: dict[StreamId, int], destination: Destination) -> int:
        at_ms = evaluated[destination.stream_id]
        if destination.edges is None:
            return at_ms
        stream = self._working.inventory.streams[destination.stream_id]
        plan = self._working.plan(destination.stream_id, destination.group_id)
        return settled_ms(at_ms, stream, plan, self._limits)

    def _evaluated(self) -> dict[StreamId, int]:
        """Return, for each stream, the instant up to which all its events are evaluated.

        The instant is 0 if the topic has new partitions that the stream does not have yet, since no event of these
        partitions is evaluated.
        """
        streams = self._working.inventory.streams
        forms = self._topics.forms(stream.topic for stream in streams.values())
        evaluated = dict.fromkeys(streams, 0)
        for stream_id, stream in streams.items():
            form = forms.get(stream.topic)
            if form is None or form.partitions <= len(stream.start_offsets):
                evaluated[stream_id] = self._timers.evaluated_ms(stream_id)
        return evaluated


def settled_ms(evaluated_ms: int, stream: Stream, plan: GroupPlan, limits: EvaluatorSettings) -> int:
    """Return the instant, in epoch milliseconds, up to which all results of a group are written.

    A result that waits for the watermark is written some time after its event is evaluated. In an idle partition, the
    result is written only after the clock has moved the watermark.

    Args:
        evaluated_ms: The instant up to which all published events of the stream are evaluated.
        stream: The stream.
        plan: The group.
        limits: The evaluator's settings, with the default delay and the default idle time of streams.
    """
    if plan.timed is None:
        return evaluated_ms
    time = stream.event_time
    waited_ms = time.delay_or(limits.watermark_delay_seconds) + time.idle_or(limits.idle_seconds)
    return evaluated_ms - waited_ms - _MARK_MS
