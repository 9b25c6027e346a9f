"""A sample: the progress of streams, the recent costs of groups, and the numbers of CQs of a prefix at one moment."""

from __future__ import annotations

import time
from typing import NamedTuple

import msgspec

from gateway.kafka import Topics
from gateway.state.stored_cqs import cq_counts
from gateway.state.working_copy import WorkingCopy
from grouping.access.stream_statistics import GroupLoad, PartitionStatistics, StreamStatistics
from grouping.model.ids import GroupId, StreamId, Subscriber
from grouping.settings.settings import Settings
from grouping.store.role_notes import RoleNotes

__all__ = ["GroupSample", "TopSample", "TopSampler", "StreamSample"]


class GroupSample(NamedTuple):
    """A group that was evaluated recently."""

    group_id: GroupId
    signature: str
    cqs: int
    load: GroupLoad


class StreamSample(NamedTuple):
    """The figures of a stream."""

    name: str
    cqs: int
    groups: int
    ends: dict[str, int]
    """Partition → position after the last event."""
    evaluated: dict[str, int]
    """Partition → position after the last evaluated event."""
    loads: list[GroupSample]
    lane: bool = False
    """Whether the stream shares the Spark query of quiet streams."""


class TopSample(NamedTuple):
    """The figures of a prefix at one moment."""

    at: float
    """The moment, in seconds of a monotonic clock."""
    streams: dict[StreamId, StreamSample]
    subscribers: dict[Subscriber, int]
    """Subscriber → number of its CQs."""


class TopSampler:
    """Reads the figures from Kafka, and from the notes of the gateway and the evaluator in Redis."""

    def __init__(self, settings: Settings) -> None:
        """Connect."""
        self._settings = settings
        self._topics = Topics(settings)
        self._working = WorkingCopy(settings)
        self._notes = RoleNotes(settings)
        self._signatures: dict[GroupId, str] = {}

    def take(self) -> TopSample:
        """Return the present figures.

        Raises:
            OperationalError: Kafka or Redis does not answer.
        """
        self._working.open()
        inventory = self._working.inventory
        streams = list(inventory.streams.values())
        evaluated = self._working.evaluator.evaluated(streams)
        places = [(stream.topic, int(number)) for stream, at in zip(streams, evaluated, strict=True) for number in at]
        ends = self._topics.offsets.known_ends(list(dict.fromkeys(places)))
        note = self._notes.read("gateway")
        figures = {} if note is None else note.more.get("streams", {})
        found = {}
        for stream, reached in zip(streams, evaluated, strict=True):
            known = {number: ends.get((stream.topic, int(number))) for number in reached}
            found[stream.stream_id] = StreamSample(
                stream.name,
                inventory.live_cqs[stream.stream_id],
                len(inventory.groups(stream.stream_id)),
                {number: end + stream.base for number, end in known.items() if end is not None},
                reached,
                self._loads(stream.stream_id),
                bool(figures.get(stream.name, {}).get("lane")),
            )
        return TopSample(time.monotonic(), found, cq_counts(self._settings))

    def _loads(self, stream_id: StreamId) -> list[GroupSample]:
        parts = []
        for body in self._working.evaluator.statistics([stream_id])[stream_id]:
            try:
                parts.append(msgspec.msgpack.decode(body, type=PartitionStatistics))
            except msgspec.MsgspecError:
                continue  # an evaluator of another version has written the statistics
        statistics, loads = StreamStatistics(parts), []
        for group_id, cqs in self._working.inventory.groups(stream_id).items():
            load = statistics.group(group_id)
            if load is not None:
                loads.append(GroupSample(group_id, self._signature(stream_id, group_id), cqs, load))
        return loads

    def _signature(self, stream_id: StreamId, group_id: GroupId) -> str:
        if group_id not in self._signatures:
            self._signatures[group_id] = self._working.plan(stream_id, group_id).signature
        return self._signatures[group_id]
