"""How far a stream is, by Spark's progress of its query."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from spark_jobs.runtime.streams.checkpoint import StreamPosition
from spark_jobs.runtime.streams.progress import Progress

_STREAM = Stream(StreamId("s_1"), "quotes", (), "quotes", "json", {"0": 0}, "")


class _Store:
    """Records the reported commits."""

    def __init__(self) -> None:
        self.commits: list[tuple[int, dict[str, int]]] = []

    def committed(self, _stream_id: str, batch: int, offsets: dict[str, int]) -> None:
        self.commits.append((batch, offsets))


def _query(batch: int, end: int, *, carried_out: bool) -> Any:
    """Return a progress report of Spark, as pyspark reads it: `durationMs` has the phases that ran."""
    durations = {"latestOffset": 11, "triggerExecution": 11}
    if carried_out:
        durations |= {"addBatch": 314, "commitOffsets": 15, "getBatch": 0, "queryPlanning": 27, "walCommit": 15}
    source = {"startOffset": str({"quotes": {"0": 1}}), "endOffset": str({"quotes": {"0": end}})}
    rows = 1 if carried_out else 0
    return SimpleNamespace(
        lastProgress={"batchId": batch, "numInputRows": rows, "durationMs": durations, "sources": [source]}
    )


def _progress() -> tuple[Progress, _Store]:
    store = _Store()
    return Progress(_STREAM, StreamPosition(-1, {}), store, None), store  # type: ignore[arg-type]


def test_an_idle_query_commits_nothing() -> None:
    """Every 10 s without events Spark tells the number of the next micro-batch, which no task has begun yet."""
    progress, store = _progress()
    progress.look(_query(0, 1, carried_out=True))
    for _ in range(3):
        progress.look(_query(1, 1, carried_out=False))
    assert [(0, {"0": 1})] == store.commits
    assert (0, 1) == (progress.batch, progress.batch_events)
    progress.look(_query(1, 2, carried_out=True))
    assert [(0, {"0": 1}), (1, {"0": 2})] == store.commits


def test_a_commit_is_taken_from_an_idle_progress() -> None:
    """The driver may look so late that Spark has told of the idle query since."""
    progress, store = _progress()
    progress.look(_query(4, 7, carried_out=False))
    assert [(3, {"0": 7})] == store.commits


def test_a_query_without_any_micro_batch_has_no_position() -> None:
    """An idle query tells batch 0 before it has begun one."""
    progress, store = _progress()
    idle = _query(0, 0, carried_out=False)
    idle.lastProgress["sources"][0] |= {"startOffset": "None", "endOffset": "None"}
    progress.look(idle)
    progress.look(_query(0, 0, carried_out=False))
    assert ([], -1) == (store.commits, progress.batch)


def test_a_micro_batch_of_many_streams() -> None:
    """A stream has its own part of the events, and nothing is told where it has none."""
    progress, store = _progress()
    committed = _query(3, 5, carried_out=True)
    committed.lastProgress["sources"][0]["endOffset"] = str({"quotes": {"0": 5}, "orders": {"0": 9}})
    committed.lastProgress["numInputRows"] = 14
    for _ in range(2):
        progress.look(committed)
    assert ([(3, {"0": 5})], 5) == (store.commits, progress.batch_events)
    committed.lastProgress["batchId"] = 4
    progress.look(committed)
    assert ([(3, {"0": 5})], 0, 4) == (store.commits, progress.batch_events, progress.batch)
    committed.lastProgress |= {"batchId": 5, "sources": [{"endOffset": str({"orders": {"0": 12}})}]}
    progress.look(committed)
    assert [(3, {"0": 5})] == store.commits
