"""When the query of a single stream starts again."""

from __future__ import annotations

from typing import Any

import pytest

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from spark_jobs.runtime.streams.evaluated_stream import EvaluatedStream
from spark_jobs.runtime.streams.query_use import QueryUse
from spark_jobs.runtime.streams.stream_queries import StreamQueries

_STREAM = Stream(StreamId("s_1"), "quotes", (), "quotes", "json", {"0": 0}, "")


@pytest.mark.parametrize(
    ("cores", "partitions", "tasks", "outdated"),
    [(2, 64, 8, False), (4, 64, 8, True), (4, 8, 8, False), (4, 9, 8, True), (1, 64, 8, False)],
)
def test_a_query_starts_again_for_further_cores(cores: int, partitions: int, tasks: int, outdated: bool) -> None:
    """Executors may register after the start; cores that go, or that have no partition left, are no reason."""
    settings: Any = Settings()
    absent: Any = None
    queries = StreamQueries(absent, settings, absent, absent, absent, absent, QueryUse(settings))
    running = EvaluatedStream(_STREAM, partitions=partitions, tasks=tasks)
    assert outdated == queries.is_outdated(running, cores)
