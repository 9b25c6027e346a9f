"""A stream without its checkpoint: it goes on where Redis knows it to be, and no pin of its earlier batches is left."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from grouping.model.catalog import Stream
from grouping.settings import Settings
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys
from grouping.store.table_store import TableStore
from spark_jobs.driver.checkpoint import Position
from spark_jobs.driver.streams import Streams
from spark_jobs.kafka.sink import checkpoint_location
from tests.ground import Ground

_STREAM = Stream("s_1", "quotes", (), "quotes", "json", {"0": 5, "1": 0}, "")


@pytest.fixture
def settings(ground: Ground, tmp_path: Path) -> Settings:
    """A prefix and a data folder of one's own."""
    return ground.settings.model_copy(update={"data": tmp_path})


def _resumed(settings: Settings) -> tuple[Position, set[bytes]]:
    """Return where the query of the stream begins, and the batches that are pinned then."""
    nothing: Any = None  # no query is started
    streams = Streams(nothing, settings, TableStore(settings), nothing, nothing, nothing, time.monotonic)
    position = streams._position(_STREAM, checkpoint_location(_STREAM.source_id, settings))
    return position, set(connect(settings).hkeys(RedisKeys.of(settings).pins("s_1")))


def _write(settings: Settings, name: str, text: str) -> None:
    path = settings.data / "checkpoints" / "s_1" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_query_begins_where_it_was(settings: Settings) -> None:
    """With its checkpoint, new, or without it: nothing is left out, and only the batch under way stays pinned."""
    store, pins = TableStore(settings), RedisKeys.of(settings).pins("s_1")
    assert (Position(-1, {"0": 5, "1": 0}), set()) == _resumed(settings)
    store.committed("s_1", 70, {"0": 500, "1": 7})
    _write(settings, "offsets/70", 'v1\n{}\n{"quotes":{"0":500,"1":7}}')
    _write(settings, "commits/70", "v1\n{}")
    _write(settings, "offsets/71", 'v1\n{}\n{"quotes":{"0":600,"1":7}}')
    connect(settings).hset(pins, mapping={"71": "1:4", "90": "1:2"})
    assert (Position(70, {"0": 500, "1": 7}), {b"71"}) == _resumed(settings)
    _write(settings, "offsets/71", "")  # as a full disk leaves it
    assert (Position(-1, {"0": 500, "1": 7}), set()) == _resumed(settings)
    _write(settings, "offsets/0", 'v1\n{}\n{"quotes":{"0":550,"1":7}}')
    connect(settings).hset(pins, mapping={"0": "1:4"})
    assert (Position(-1, {"0": 500, "1": 7}), {b"0"}) == _resumed(settings)
