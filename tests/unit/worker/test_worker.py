"""A worker's tasks over tables in memory: its state between tasks, and its behaviour without Redis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pyarrow as pa
import pytest

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.errors import OperationalError
from grouping.model.expression import Call, Column, Slot
from grouping.model.ids import GroupId
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan
from grouping.plan.lookup_join import LookupJoin
from grouping.plan.silence import SilentKeys
from grouping.settings.settings import Settings
from grouping.store.constant_table import FRAMES
from grouping.store.fence import LeaseLost
from grouping.store.match_tally import MatchTally
from grouping.store.notes import Output, Pin, TableVersion
from grouping.store.ownership import EvaluatorFences
from grouping.store.table_store import BatchCommitted
from grouping.store.task_counts import TaskCount
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.runtime.kafka.partition_runs import EachPartition
from spark_jobs.runtime.kafka.pin_log import MicroBatch
from spark_jobs.runtime.kafka.table_log import TableAway
from spark_jobs.runtime.states.log_states import StateClock
from spark_jobs.runtime.worker import process, watch, worker
from spark_jobs.runtime.worker.process import BatchTables, WorkerProcess
from spark_jobs.runtime.worker.range_clock import RangeBegin, RangeTime
from tests.unit.matching.event_batches import SETTINGS, batch, header, stream
from tests.unit.matching.matching import Store, entry

_STREAM = stream("a INT")


class _Redis(Store):
    """The store as a worker sees it, which does not answer a few times."""

    def __init__(self) -> None:
        super().__init__()
        self.known_plans["g_1"] = GroupPlan("g_1", "s", "", (Call("=", (Column("a", "INT"), Slot(0)), "BOOLEAN"),))
        self.away = 0
        self.opened = 0
        self.counted: list[MatchTally | None] = []
        self.output: list[Output] = []
        self.refusal: type[OperationalError] | None = None
        """Why nothing is pinned."""
        self.paused: tuple[GroupId, ...] = ()
        self.lost: set[str] = set()
        self.revision = 1
        """The declaration to which micro-batches are pinned."""
        self.live: Stream | None = _STREAM
        self.asked = 0
        """How often a declaration was read."""

    def open(self, _settings: Settings, _fences: EvaluatorFences | None) -> _Redis:
        self.opened += 1
        return self

    def pin(self, _stream_id: str, _batch_id: int) -> Pin:
        self._answer()
        if self.refusal is not None:
            raise self.refusal("nothing is pinned")
        return Pin(TableVersion(1, len(self.log)), self.paused, self.revision)

    def stream(self, _stream_id: str) -> Stream | None:
        self._answer()
        self.asked += 1
        return self.live

    def lost_tables(self, table_ids: Sequence[str]) -> set[str]:
        return self.lost & set(table_ids)

    @property
    def counts(self) -> _Redis:
        return self

    def add(self, counts: Sequence[TaskCount]) -> None:
        self._answer()
        self.counted += [each.tally for each in counts]
        self.output += [each.output for each in counts]

    def tell_statistics(self, *_report: object) -> None:
        self._answer()

    def tell_states(self, *_report: object) -> None:
        self._answer()

    def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise OperationalError("redis is away")


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Redis]:
    """Tables with one row, `a = 1`, for a worker of this process."""
    redis = _Redis()
    redis.commit((), [entry(7, ("INT",), (1,))])
    own = WorkerProcess(open_store=redis.open, sleep=lambda _seconds: None)  # type: ignore[arg-type]
    context = SimpleNamespace(getLocalProperty=lambda _name: "3", partitionId=lambda: 0)
    monkeypatch.setattr(worker, "TaskContext", SimpleNamespace(get=lambda: context))
    monkeypatch.setattr(worker, "PROCESS", own)
    monkeypatch.setattr(own, "end", lambda: None)  # this process is no worker: its memory stays as it is
    yield redis


def _task(*values: bytes) -> list[bytes]:
    rows: list[pa.RecordBatch] = list(worker.Evaluation.of(_STREAM, SETTINGS)([batch(values)]))
    return [value for each in rows for value in each["value"].to_pylist()]


def test_a_task_after_another_reads_only_what_changed(redis: _Redis) -> None:
    """Tables and the connection stay from one task to the next."""
    assert [b'{"s_1":1}'] == _task(b'{"a":1}', b'{"a":2}')
    redis.commit((), [entry(8, ("INT",), (2,))])
    assert [b'{"s_1":1}', b'{"s_1":2}'] == _task(b'{"a":1}', b'{"a":2}')
    assert [(0, 1), (1, 2)] == redis.reads
    assert 1 == redis.opened
    assert 2 == len(redis.counted)


@pytest.mark.parametrize(("number", "query_id"), [(2, "3"), (3, "q_lane")])
def test_a_micro_batch_begun_elsewhere_is_replayed_as_such(
    redis: _Redis, monkeypatch: pytest.MonkeyPatch, number: int, query_id: str
) -> None:
    """A stream that left the lane finds the pins of joined tables by the lane's query, for this micro-batch only."""
    seen: list[MicroBatch] = []
    tables = worker.PROCESS.tables

    def noted(stream: Stream, micro_batch: MicroBatch, settings: Settings) -> BatchTables:
        seen.append(micro_batch)
        return tables(stream, micro_batch, settings)

    monkeypatch.setattr(worker.PROCESS, "tables", noted)
    begun = MicroBatch(_STREAM.source_id, "q_lane", number)
    assert list(worker.Evaluation.of(_STREAM, SETTINGS, begun=begun)([batch([b'{"a":1}'])]))
    assert [MicroBatch(_STREAM.source_id, query_id, 3)] == seen


def test_results_are_counted_with_their_bytes(redis: _Redis) -> None:
    """Keys, values and headers, by a task once; a task that finds nothing tells nothing."""
    rows = list(worker.Evaluation.of(_STREAM, SETTINGS)([batch([b'{"a":1}', b'{"a":2}']), batch([b'{"a":1}'])]))
    records = [record for each in rows for record in each.select(["key", "value", "headers"]).to_pylist()]
    assert [Output(2, 2, sum(len(part) for record in records for part in record.values()))] == redis.output
    assert [] == _task(b'{"a":2}')
    assert 1 == len(redis.output)


def test_a_task_evaluates_one_source_partition_after_the_other(redis: _Redis) -> None:
    """A batch of records may end with the first records of the next partition; each partition is counted by itself."""
    evaluate = EachPartition(worker.Evaluation.of(_STREAM, SETTINGS))
    values = [b'{"a":1}'] * 3
    records = [batch(values, partitions=[3, 3, 4]), batch(values, partitions=[4, 4, 5], first=50), batch([])]
    rows = [row for each in evaluate(iter(records)) for row in each.to_pylist()]
    first = records[0]["offset"][0].as_py()
    places = [(3, first), (3, first + 1), (4, first + 2), (4, 50), (4, 51), (5, 52)]
    assert [f"{_STREAM.name}/{partition}/{offset}" for partition, offset in places] == [
        header(row, "ce_id") for row in rows
    ]
    assert [2, 3, 1] == [output.matches for output in redis.output]
    assert 1 == redis.opened


def test_a_group_that_rests_sees_nothing(redis: _Redis) -> None:
    """The others go on; events published meanwhile don't come later."""
    redis.known_plans["g_2"] = msgspec.structs.replace(redis.known_plans["g_1"], group_id=GroupId("g_2"))
    redis.commit((), [entry(8, ("INT",), (1,), group="g_2")])
    assert 2 == len(_task(b'{"a":1}'))
    redis.paused = (GroupId("g_2"),)
    assert [b'{"s_1":1}'] == _task(b'{"a":1}')
    redis.paused = (GroupId("g_1"), GroupId("g_2"))
    assert [] == _task(b'{"a":1}')
    redis.paused = ()
    assert 2 == len(_task(b'{"a":1}'))


def test_a_table_that_was_dropped_with_its_topic_stops_nobody(redis: _Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups joined with the table have no results; while the topic may come back the whole stream waits."""
    joined = Computation("j_1", (LookupJoin("t_1", "p", ()),))
    redis.known_plans["g_2"] = msgspec.structs.replace(
        redis.known_plans["g_1"], group_id=GroupId("g_2"), computation=joined
    )
    redis.commit((), [entry(8, ("INT",), (1,), group="g_2")])
    monkeypatch.setattr(process, "JoinedTables", lambda _: _NoTables())
    with pytest.raises(TableAway):
        _task(b'{"a":1}')
    redis.lost = {"t_1"}
    assert [b'{"s_1":1}'] == _task(b'{"a":1}')


def test_a_task_goes_by_the_declaration_of_its_micro_batch(redis: _Redis) -> None:
    """ALTER STREAM changes no running query: tasks read the declaration once, and a replay goes by the old one."""
    plan = redis.known_plans["g_1"]
    by_b = (Call("=", (Column("b", "INT"), Slot(0)), "BOOLEAN"),)
    redis.known_plans["g_2"] = msgspec.structs.replace(plan, group_id=GroupId("g_2"), conjuncts=by_b)
    value = b'{"a": "1", "b": 5}'
    assert [value] == _task(value)  # a dead letter: the stream is strict
    redis.live = _STREAM.altered((StreamColumn("b", "INT"),)).altered(lenient=True)
    redis.commit((), [entry(8, ("INT",), (5,), group="g_2")])
    redis.revision = 3
    redis.away = 1
    assert [b'{"s_1":1}', b'{"s_1":1}'] == _task(value)
    assert [b'{"s_1":1}', b'{"s_1":1}'] == _task(value)
    assert 1 == redis.asked
    redis.revision = 2
    assert [value] == _task(value)
    redis.revision = 1
    assert [b'{"s_1":1}'] == _task(b'{"a": 1, "b": "no INT"}')
    assert 1 == redis.asked


def test_a_stream_that_was_dropped_keeps_its_declaration(redis: _Redis) -> None:
    """A micro-batch that was pinned before goes by the declaration that its query began with."""
    redis.live, redis.revision = None, 2
    assert [b'{"s_1":1}'] == _task(b'{"a": 1}')


class _NoTables:
    """Tables that joins need, of which none can be read."""

    def views(self, *_: object) -> dict[str, TableView]:
        raise TableAway("its topic cannot be read")

    def letters(self, _: object) -> list[pa.RecordBatch]:
        return []

    def forget_idle(self, _: float) -> None:
        """Forget none: there are none."""


def test_a_task_waits_for_its_tables(redis: _Redis) -> None:
    """Without them nothing is evaluated; each time the connection is made anew."""
    redis.away = 2
    assert [b'{"s_1":1}'] == _task(b'{"a":1}')
    assert 3 == redis.opened


@pytest.mark.parametrize("error", [LeaseLost, BatchCommitted])
def test_a_task_that_was_succeeded_ends(redis: _Redis, error: type[OperationalError]) -> None:
    """By another evaluator's, or by another attempt whose batch is committed: it does not wait for tables then."""
    redis.refusal = error
    with pytest.raises(error):
        _task(b'{"a": 1}')


def test_a_mark_of_the_clock_makes_results_without_records(
    redis: _Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A key that is silent by a mark is told once more where the mark is carried out again, and never after that."""
    noted: list[str] = []
    monkeypatch.setattr(watch, "ClockNotes", lambda *_: SimpleNamespace(tell=noted.append))
    silence = Computation.of(_STREAM.stream_id, (), silence=SilentKeys.of([Column("a", "INT")], 5_000, ()))
    redis.known_plans["g_2"] = GroupPlan("g_2", _STREAM.stream_id, "", (), silence)  # type: ignore[arg-type]
    redis.commit((), [entry(8, (), (), group="g_2", edge=FRAMES, since=())])
    evaluation = worker.Evaluation.of(_STREAM, SETTINGS.model_copy(update={"data": tmp_path}))

    def results(records: list[pa.RecordBatch], first: int, *clock: int | None) -> list[str]:
        rows = list(evaluation(records, RangeBegin(0, first, StateClock(*clock))))
        return [header(row, "cause") for each in rows for row in each.to_pylist() if row["topic"] == "cq.results"]

    records = batch([b'{"a":5}', b'{"a":6}'], partitions=[0, 0], first=0)
    time_ms = int(records["timestamp"][0].as_py().timestamp() * 1000)
    assert results([records], 0, None, None) == []
    assert worker.PROCESS.take_time() == RangeTime(time_ms + 1 - 2_000, time_ms + 5_000)
    mark = time_ms + 5_001
    for _ in range(2):
        assert results([], 2, None, mark) == [f"{_STREAM.name}/0/0", f"{_STREAM.name}/0/1"]
    assert worker.PROCESS.take_time() == RangeTime(mark, None)
    assert results([], 2, mark, mark + 1) == []
    assert noted == [_STREAM.stream_id]
    worker.PROCESS.begin(msgspec.structs.replace(_STREAM, stream_id="other"), SETTINGS)
    assert worker.PROCESS.take_time() is None, "the time of the stream before is not that of the next one"
