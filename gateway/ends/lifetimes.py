"""EXPIRE: the gateway removes a CQ when its time has come and all events published before are evaluated."""

from __future__ import annotations

from gateway.kafka import Topics
from gateway.registry.registry import Registry
from gateway.state.work import Change
from gateway.state.working_copy import WorkingCopy
from gateway.timers.timers import Timers
from grouping.model.ids import StreamId

__all__ = ["Lifetimes"]

_CHUNK = 8000


class Lifetimes:
    """Removes CQs at their EXPIRE, some thousands in a unit of work."""

    def __init__(self, working: WorkingCopy, registry: Registry, timers: Timers, topics: Topics) -> None:
        self._working = working
        self._topics = topics
        self._registry = registry
        self._timers = timers
        self._skip = 0
        self.busy = False
        """Whether more CQs are due than one step removes."""

    def step(self, now_ms: int) -> Change:
        """Remove CQs within the unit of work, and return the change."""
        due = self._working.expiring(now_ms, self._skip, _CHUNK)
        if not due:
            self._skip, self.busy = 0, False
            return Change()
        change = self._registry.expire(self._working.load(due), due, self._evaluated())
        removed = len(change.notices)
        # The CQs of a lagging stream stay first in Redis; the next step skips them.
        self._skip = self._skip + len(due) - removed if len(due) == _CHUNK else 0
        self.busy = removed > 0 and len(due) == _CHUNK
        return change

    def _evaluated(self) -> dict[StreamId, int]:
        """Return the progress of each stream.

        The result is 0 for a stream whose topic got partitions that the probes do not know yet.
        """
        streams = self._working.inventory.streams
        forms = self._topics.forms(stream.topic for stream in streams.values())
        evaluated = dict.fromkeys(streams, 0)
        for stream_id, stream in streams.items():
            form = forms.get(stream.topic)
            if form is None or form.partitions <= len(stream.start_offsets):
                evaluated[stream_id] = self._timers.evaluated_ms(stream_id)
        return evaluated
