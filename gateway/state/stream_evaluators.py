"""The evaluator of each stream, or the reason why no evaluator has the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.metrics import EVALUATORS
from gateway.state.evaluator_notes import EvaluatorNotes
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.store.keys import role_title
from grouping.store.role_notes import RoleNote, RoleNotes

__all__ = ["StreamEvaluators"]

_SURE_SECONDS = 15.0
"""A stream is reported only if it has had no evaluator for longer than this time, since its evaluator may be
starting."""


class StreamEvaluators:
    """Looks up the evaluators' notes on streams, for `cq status` and Prometheus; for the gateway's main thread only."""

    def __init__(self, settings: Settings, notes: EvaluatorNotes, clock: Callable[[], float]) -> None:
        """Prepare to connect; the connection is made at the first use.

        Args:
            settings: The gateway's settings, which name the evaluators.
            notes: Reads the evaluators' notes in Redis.
            clock: Returns the present, in seconds of a monotonic clock.
        """
        self._assignment = Assignment.of(settings)
        self._notes = notes
        self._role_notes = RoleNotes(settings)
        self._clock = clock
        self._alone_since: dict[StreamId, float] = {}
        """Stream → when it was first seen without an evaluator."""

    @property
    def names(self) -> list[str]:
        """The names of the evaluators that must run."""
        return list(self._assignment.names)

    def of_streams(self, streams: Sequence[Stream]) -> dict[str, dict[str, object]]:
        """Return name of a stream → its `evaluator`, its `lane`, and the `reason` why the stream is not evaluated.

        `lane` is True if the stream is in the lane. Fields that are unknown or do not apply are left out. `evaluator`
        is also left out if only the unnamed evaluator exists.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        owners = self._notes.owners([stream.stream_id for stream in streams])
        names = {*self.names, *(owner.name for owner in owners.values())}
        notes = {name: self._role_notes.read("evaluator", name) for name in names}
        running = self._notes.running(names)
        now, found = self._clock(), dict[str, dict[str, object]]()
        alone = [stream.stream_id for stream in streams if stream.stream_id not in owners]
        self._alone_since = {each: self._alone_since.get(each, now) for each in alone}
        for stream in streams:
            owner = owners.get(stream.stream_id)
            EVALUATORS.labels(stream.name).set(owner is not None or self._unclaimed(stream, notes, running))
            if owner is None:
                reason = self._missing(stream, names, notes, running, now)
            else:
                reason = _reason(_reports(stream.name, notes))
            title = role_title("evaluator", owner.name) if owner is not None and len(names) > 1 else None
            lane = any(report.get("lane") for report in _reports(stream.name, notes)) or None
            known = {"evaluator": title, "lane": lane, "reason": reason}
            found[stream.name] = {field: value for field, value in known.items() if value is not None}
        return found

    def _unclaimed(self, stream: Stream, notes: Mapping[str, RoleNote | None], running: set[str]) -> bool:
        """Tell whether the assigned evaluator reports on a stream that has no owner.

        An evaluator of an earlier version does not note in Redis which streams it owns.
        """
        return self._assignment.evaluator_of(stream.name) in running and bool(_reports(stream.name, notes))

    def _missing(
        self,
        stream: Stream,
        names: set[str],
        notes: Mapping[str, RoleNote | None],
        running: set[str],
        now: float,
    ) -> str | None:
        """Return why no evaluator has a stream."""
        name = self._assignment.evaluator_of(stream.name)
        title = role_title("evaluator", name)
        if name not in running:
            return f"its {title} does not run" if len(names) > 1 else None
        reports = _reports(stream.name, notes)
        if notes[name] is None or now < self._alone_since[stream.stream_id] + _SURE_SECONDS:
            return None
        if reports:  # the evaluator has an earlier version, which claims no streams
            return _reason(reports)
        return f"no evaluator has the stream; by the gateway's CQ_EVALUATOR_STREAMS, {title} should have it"


def _reports(stream: str, notes: Mapping[str, RoleNote | None]) -> list[Mapping[str, Any]]:
    """Return the reports of evaluators on a stream."""
    found = [note.more.get("streams", {}).get(stream) for note in notes.values() if note is not None]
    return [report for report in found if report is not None]


def _reason(reports: list[Mapping[str, Any]]) -> str | None:
    return next((each["reason"] for each in reports if each["reason"] is not None), None)
