"""Computes rates and costs from two samples, that is from the figures at two moments."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

import msgspec

from gateway.top.sample import GroupSample, StreamSample, TopSample
from gateway.topics.lag import Lag
from grouping.model.ids import StreamId, Subscriber

__all__ = ["Activity", "GroupActivity", "StreamActivity", "SubscriberActivity", "Watch"]

_SHOWN = 10
"""The number of groups, and of subscribers, that are shown."""


class StreamActivity(msgspec.Struct, frozen=True):
    """The activity of a stream between two samples."""

    stream: str
    cqs: int
    groups: int
    events_per_second: float
    """The number of events that are evaluated each second."""
    matches_per_second: float
    """The number of matches each second, including matches that wait for a tick. The number is estimated from recent
    matches of the groups."""
    behind: int
    """The number of events that are not evaluated yet."""
    seconds_behind: float
    """How long the oldest of these events has waited, in seconds."""
    cores: float
    """The CPU time of matching, in cores. The time for decoding, encoding and Kafka is not included."""
    lane: bool
    """Whether the stream shares the Spark query of quiet streams."""


class GroupActivity(msgspec.Struct, frozen=True):
    """The activity of one of the groups that cost most."""

    group: str
    stream: str
    cqs: int
    index: str
    micros_per_event: float
    candidates_per_event: float
    matches_per_event: float
    share: float
    """The group's share of the CPU time of all groups, from 0 to 1."""
    signature: str


class SubscriberActivity(msgspec.Struct, frozen=True):
    """The number of a subscriber's CQs."""

    subscriber: str
    cqs: int


class Activity(msgspec.Struct, frozen=True):
    """The present load of a prefix."""

    streams: list[StreamActivity]
    groups: list[GroupActivity]
    """The groups that cost most; the group with the highest cost first."""
    subscribers: list[SubscriberActivity]
    """The subscribers with the most CQs."""


class Watch:
    """Compares each sample with the sample before."""

    def __init__(self) -> None:
        """Begin without a sample. After the first sample, all rates are 0."""
        self._before: TopSample | None = None
        self._lags: dict[StreamId, Lag] = {}

    def take(self, sample: TopSample) -> Activity:
        """Return the activity between the last sample and this sample."""
        before, self._before = self._before or sample, sample
        self._lags = {stream_id: self._lags.get(stream_id, Lag()) for stream_id in sample.streams}
        seconds = sample.at - before.at
        streams, groups = [], []
        for stream_id, stream in sample.streams.items():
            rate = _evaluated(before.streams.get(stream_id, stream), stream) / seconds if seconds else 0.0
            lag = self._lags[stream_id].seconds(stream.ends, stream.evaluated, sample.at)
            streams.append(_stream(stream, rate, lag))
            groups += [(rate * one.load.per_event(one.load.micros), stream.name, one) for one in stream.loads]
        whole = sum(cost for cost, _, _ in groups)
        costliest = sorted(groups, key=lambda each: (-each[0], each[2].group_id))[:_SHOWN]
        return Activity(
            sorted(streams, key=attrgetter("stream")),
            [_group(name, one, cost / whole if whole else 0.0) for cost, name, one in costliest],
            _most(sample.subscribers),
        )


def _evaluated(before: StreamSample, after: StreamSample) -> int:
    known = before.evaluated
    return sum(max(offset - known.get(number, offset), 0) for number, offset in after.evaluated.items())


def _stream(stream: StreamSample, rate: float, lag: float) -> StreamActivity:
    loads = [one.load for one in stream.loads]
    behind = sum(max(end - stream.evaluated.get(number, end), 0) for number, end in stream.ends.items())
    return StreamActivity(
        stream.name,
        stream.cqs,
        stream.groups,
        rate,
        rate * sum(load.per_event(load.matches) for load in loads),
        behind,
        lag,
        rate * sum(load.per_event(load.micros) for load in loads) / 1e6,
        stream.lane,
    )


def _group(stream: str, one: GroupSample, share: float) -> GroupActivity:
    load = one.load
    return GroupActivity(
        one.group_id,
        stream,
        one.cqs,
        load.path.kind,
        load.per_event(load.micros),
        load.per_event(load.candidates),
        load.per_event(load.matches),
        share,
        one.signature,
    )


def _most(counts: Mapping[Subscriber, int]) -> list[SubscriberActivity]:
    most = sorted(counts, key=lambda name: (-counts[name], name))[:_SHOWN]
    return [SubscriberActivity(name, counts[name]) for name in most]
