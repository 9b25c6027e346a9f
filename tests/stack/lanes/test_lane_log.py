"""The checkpoint of the lane: a stream keeps its position, its micro-batch and its pin on the way in and out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys
from grouping.store.table_store import TableStore
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.streams.checkpoint import StreamPosition
from spark_jobs.runtime.streams.checkpoints import Checkpoints
from spark_jobs.runtime.streams.files import LocalFiles
from spark_jobs.runtime.streams.lane_log import LaneLog, LaneStart, Seat
from spark_jobs.runtime.streams.resumption import find_place, resume
from tests.ground import Ground


class _Evaluator:
    """The files and notes of an evaluator; the test plays the queries."""

    def __init__(self, settings: Settings, *streams: Stream) -> None:
        self.settings = settings
        self.store, self.broker = TableStore(settings), Broker(settings)
        self.checkpoints = Checkpoints(settings, LocalFiles(), self.broker)
        self.lane = LaneLog(settings, self.store, self.checkpoints)
        self.lane.open(streams)

    def write(self, query: str, batch: int, ends: dict[str, int], *, committed: bool) -> None:
        """Write a micro-batch as Spark does, up to these offsets of each topic's one partition."""
        log = json.dumps({f"{self.settings.prefix}{name}": {"0": end} for name, end in ends.items()})
        folder = self.settings.data / "checkpoints" / query
        for name, text in {"sources/0/0": log, f"offsets/{batch}": log, f"commits/{batch}": "{}"}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if committed or not name.startswith("commits"):
                path.write_text(f"v1\n{{}}\n{text}")

    def pins(self, stream: Stream) -> set[bytes]:
        return set(connect(self.settings).hkeys(RedisKeys.of(self.settings).pins(stream.stream_id)))

    def own_place(self, stream: Stream) -> StreamPosition:
        return resume(stream, self.checkpoints.of(stream.source_id), self.store, self.broker)

    def entry(self, stream: Stream) -> LaneStart | None:
        return find_place(stream, self.checkpoints.of(stream.source_id), self.store, self.broker)


@pytest.fixture
def settings(ground: Ground, tmp_path: Path) -> Settings:
    """A prefix with two topics, and a data folder, for a single test."""
    for name in ("a", "b"):
        ground.make_topic(f"{ground.settings.prefix}{name}", 1)
    return ground.settings.model_copy(update={"data": tmp_path})


def _stream(settings: Settings, name: str) -> Stream:
    return Stream(StreamId(f"s_{name}"), name, (), f"{settings.prefix}{name}", "json", {"0": 5}, "")


def test_a_stream_comes_and_goes(settings: Settings) -> None:
    """A stream with a micro-batch under way stays out; later the stream goes on in the lane, and then by itself."""
    a, b = _stream(settings, "a"), _stream(settings, "b")
    evaluator = _Evaluator(settings, a, b)
    lane = evaluator.lane
    assert StreamPosition(-1, {"0": 5}) == evaluator.own_place(a)
    evaluator.write("s_a", 70, {"a": 500}, committed=True)
    evaluator.write("s_a", 71, {"a": 510}, committed=False)
    assert StreamPosition(70, {"0": 500}) == evaluator.own_place(a)
    assert evaluator.entry(a) is None
    evaluator.write("s_a", 71, {"a": 510}, committed=True)
    place = evaluator.entry(a)
    assert place is not None and place.position == StreamPosition(71, {"0": 510})

    seats = [Seat(b, {"0": 5}, {})]
    lane.add([], seats)
    lane.begin(seats)
    evaluator.write("lane", 3, {"b": 40}, committed=True)
    evaluator.write("lane", 4, {"b": 50}, committed=False)
    connect(settings).hset(RedisKeys.of(settings).pins(a.stream_id), mapping={"90": "1:2"})
    seats.append(Seat(a, place.position.offsets, place.earlier_ends))
    lane.add(seats[:1], seats[1:])
    assert set() == evaluator.pins(a)
    assert not evaluator.checkpoints.of("s_a").has_begun()
    lane.begin(seats)
    under_way = evaluator.checkpoints.of("lane").under_way
    assert ({"0": 40}, {"0": 50}) == under_way(b.topic)
    assert ({"0": 510}, {"0": 510}) == under_way(a.topic)

    evaluator.write("lane", 4, {"a": 510, "b": 50}, committed=True)
    evaluator.write("lane", 5, {"a": 520, "b": 60}, committed=False)
    connect(settings).hset(RedisKeys.of(settings).pins(a.stream_id), mapping={"5": "1:4"})
    lane.release(seats[1])
    lane.begin(seats[:1])
    assert StreamPosition(4, {"0": 510}) == evaluator.own_place(a)
    assert ({"0": 510}, {"0": 520}) == evaluator.checkpoints.of("s_a").under_way(a.topic)
    assert {b"5"} == evaluator.pins(a), "the micro-batch under way is evaluated again at the version that it had"
    assert ({}, {}) == under_way(a.topic)


def test_an_evaluator_that_ended(settings: Settings) -> None:
    """The next one finds the streams of the lane, with the micro-batch under way, unless another checkpoint counts."""
    a, b = _stream(settings, "a"), _stream(settings, "b")
    first = _Evaluator(settings, a, b)
    seats = [Seat(each, {"0": 5}, {"0": 9}) for each in (a, b)]
    first.lane.add([], seats)
    first.lane.begin(seats)
    assert LaneStart(StreamPosition(-1, {"0": 5}), {"0": 9}) == _kept(_Evaluator(settings, a, b), a), (
        "no micro-batch began"
    )
    first.write("lane", 3, {"a": 30, "b": 40}, committed=True)
    first.write("lane", 4, {"a": 50, "b": 60}, committed=False)
    connect(settings).hset(RedisKeys.of(settings).pins(a.stream_id), mapping={"4": "1:2", "3": "1:1"})
    second = _Evaluator(settings, a, b)
    assert LaneStart(StreamPosition(3, {"0": 30}), {"0": 9}) == _kept(second, a)
    assert Seat(a, {"0": 5}, {"0": 9}) == second.lane.take_back(a)
    assert {b"4"} == second.pins(a)
    # Another evaluator, with a checkpoint of its own, had the other stream meanwhile.
    second.store.note_checkpoint(b.stream_id, "another one's")
    assert not second.lane.counts_for(b)
    assert {} == second.lane.kept
    assert StreamPosition(-1, {"0": 5}) == second.own_place(b)
    # Redis is lost: the only checkpoint that has the stream counts.
    connect(settings).flushdb()
    third = _Evaluator(settings, a, b)
    assert third.lane.counts_for(a)
    third.lane.release_kept()
    assert StreamPosition(3, {"0": 30}) == third.own_place(a)


def _kept(evaluator: _Evaluator, stream: Stream) -> LaneStart:
    assert evaluator.lane.counts_for(stream)
    return evaluator.lane.place(stream.source_id)
