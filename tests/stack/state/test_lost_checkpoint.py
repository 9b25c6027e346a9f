"""A stream without its checkpoint: it resumes at the position in Redis, and its earlier batches leave no pin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys
from grouping.store.table_store import TableStore
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.kafka.sink import checkpoint_location
from spark_jobs.runtime.streams.checkpoint import Checkpoint, StreamPosition
from spark_jobs.runtime.streams.files import LocalFiles
from spark_jobs.runtime.streams.resumption import resume
from tests.ground import Ground


@pytest.fixture
def settings(ground: Ground, tmp_path: Path) -> Settings:
    """A prefix with a source topic, and a data folder, of one's own."""
    topic = _topic(ground.settings)
    ground.make_topic(topic, 2)
    led = retry_if_exception_type(OperationalError)  # a topic that was just made has no leaders yet
    Retrying(retry=led, wait=wait_fixed(0.1), stop=stop_after_delay(60))(Broker(ground.settings).ends, topic)
    return ground.settings.model_copy(update={"data": tmp_path})


def _topic(settings: Settings) -> str:
    return f"{settings.prefix}quotes"


def _resumed(settings: Settings) -> tuple[StreamPosition, set[bytes]]:
    """Return where the query of the stream begins, and the batches that are pinned then."""
    stream = Stream("s_1", "quotes", (), _topic(settings), "json", {"0": 5, "1": 0}, "")
    checkpoint = Checkpoint(checkpoint_location(stream.source_id, settings), LocalFiles())
    position = resume(stream, checkpoint, TableStore(settings), Broker(settings))
    return position, set(connect(settings).hkeys(RedisKeys.of(settings).pins("s_1")))


def _write_offsets(settings: Settings, batch: int, first: int) -> None:
    _write(settings, f"offsets/{batch}", f"v1\n{{}}\n{json.dumps({_topic(settings): {'0': first, '1': 7}})}")


def _write(settings: Settings, name: str, text: str) -> None:
    path = settings.data / "checkpoints" / "s_1" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_query_begins_where_it_was(settings: Settings) -> None:
    """With its checkpoint, new, or without it: nothing is left out, and only the batch under way stays pinned."""
    store, pins = TableStore(settings), RedisKeys.of(settings).pins("s_1")
    assert (StreamPosition(-1, {"0": 5, "1": 0}), set()) == _resumed(settings)
    store.committed("s_1", 70, {"0": 500, "1": 7})
    _write_offsets(settings, 70, 500)
    _write(settings, "commits/70", "v1\n{}")
    _write_offsets(settings, 71, 600)
    connect(settings).hset(pins, mapping={"71": "1:4", "90": "1:2"})
    assert (StreamPosition(70, {"0": 500, "1": 7}), {b"71"}) == _resumed(settings)
    _write(settings, "offsets/71", "")  # as a full disk leaves it
    assert (StreamPosition(-1, {"0": 500, "1": 7}), set()) == _resumed(settings)
    _write_offsets(settings, 0, 550)
    connect(settings).hset(pins, mapping={"0": "1:4"})
    assert (StreamPosition(-1, {"0": 500, "1": 7}), {b"0"}) == _resumed(settings)


def test_a_checkpoint_that_was_left_behind_is_not_gone_on_from(settings: Settings, tmp_path: Path) -> None:
    """Another evaluator went on with a checkpoint of its own: the first one's is made anew when it is back."""
    other = settings.model_copy(update={"data": tmp_path / "other"})
    for _ in range(2):
        _resumed(settings)
        _write_offsets(settings, 3, 100)
        _write(settings, "commits/3", "v1\n{}")
        assert StreamPosition(3, {"0": 100, "1": 7}) == _resumed(settings)[0]
        TableStore(settings).committed("s_1", 9, {"0": 900, "1": 70})
        assert StreamPosition(-1, {"0": 900, "1": 70}) == _resumed(other)[0]
        assert StreamPosition(-1, {"0": 900, "1": 70}) == _resumed(settings)[0]
