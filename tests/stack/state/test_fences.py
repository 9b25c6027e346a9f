"""An evaluator that was succeeded writes nothing of its streams any more, nor do its tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from gateway.state.working_copy import WorkingCopy
from grouping.access.stream_statistics import PartitionStatistics
from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from grouping.store import fence
from grouping.store.connection import connect
from grouping.store.fence import FenceWatch, LeaseLost
from grouping.store.keys import RedisKeys
from grouping.store.lease import Lease
from grouping.store.notes import ExecutorsNote, Output
from grouping.store.ownership import EvaluatorFences, Ownership
from grouping.store.quarantine import CulpritSearch, Quarantine, QuarantineStore
from grouping.store.table_store import BatchCommitted, TableStore
from grouping.store.task_counts import TaskCount
from spark_jobs.engine.rows.headers import packed_headers
from spark_jobs.engine.rows.output import OUTPUT
from spark_jobs.runtime.kafka.record_writer import record_writer
from spark_jobs.runtime.kafka.sink import RecordWriting
from spark_jobs.runtime.streams.worker_deaths import WorkerDeaths
from tests.ground import Ground
from tests.kafka_client import DEADLINE
from tests.stack.digests.desk import HOUR
from tests.stack.lab import Lab
from tests.stack.server import Stack
from tests.stack.state.redis_copy import RedisCopy

_STREAM = Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "")


@pytest.fixture
def opened(ground: Ground) -> Ground:
    """Redis as filled by a gateway: one stream, and confirmed tables."""
    lease = Lease(ground.settings, "gateway")
    assert lease.acquire()
    working = WorkingCopy(ground.settings, lease)
    working.open()
    working.unit.sources.add_stream(_STREAM)
    working.commit()
    redis = connect(ground.settings)
    working.confirm(1, redis.info("server")["run_id"])
    return ground


def test_an_evaluator_that_was_succeeded_writes_nothing(opened: Ground) -> None:
    """Whoever took the lease and the stream last writes, and nobody else, be it silent or asleep meanwhile."""
    settings = opened.settings
    redis, leases = connect(settings), [Lease(settings, "evaluator") for _ in range(2)]
    for lease in leases:
        lease.lifetime_ms = HOUR  # nobody renews it, however slow the machine is
    both = [EvaluatorFences.of(settings, lease.token) for lease in leases]
    stores = [TableStore(settings, fences) for fences in both]
    quarantines = [QuarantineStore(settings, fences) for fences in both]
    fences = [each.stream("s_1") for each in both]
    assert leases[0].acquire()
    assert Ownership(settings, both[0]).claim("s_1") is None
    FenceWatch(settings).check(fences[0])
    for write in _writes(stores[0], quarantines[0], 8):
        write()
    assert {"0": 9} == stores[1].committed_positions("s_1")

    redis.delete(leases[0].key)  # as it lapses
    assert leases[1].acquire()
    assert Ownership(settings, both[1]).claim("s_1") is None
    before = RedisCopy.of(settings)
    for write in (*_writes(stores[0], quarantines[0], 9), lambda: FenceWatch(settings).check(fences[0])):
        with pytest.raises(LeaseLost):
            write()
    assert before == RedisCopy.of(settings)
    FenceWatch(settings).check(fences[1])
    stores[1].committed("s_1", 8, {"0": 10})
    assert {"0": 10} == stores[1].committed_positions("s_1")


def test_a_batch_that_is_committed_is_pinned_no_more(opened: Ground) -> None:
    """A task that slept since before its batch's end finds no pin, and must not see the tables as they are by now."""
    settings = opened.settings
    store, redis = TableStore(settings), connect(settings)
    pinned = store.pin("s_1", 7)
    store.committed("s_1", 7, {"0": 9})
    before = RedisCopy.of(settings)
    for batch in (6, 7):
        with pytest.raises(BatchCommitted):
            store.pin("s_1", batch)
    assert before == RedisCopy.of(settings)
    assert pinned == store.pin("s_1", 8)
    store.counts.add([TaskCount("s_1", None, 0, "query/8", Output(1, 2, 3))])
    counted = redis.hgetall(RedisKeys.of(settings).output("s_1"))
    store.counts.add([TaskCount("s_1", None, 0, "query/7", Output(1, 2, 3))])
    assert counted == redis.hgetall(RedisKeys.of(settings).output("s_1"))
    store.unpin("s_1", 5)  # a checkpoint that was taken back
    assert pinned == store.pin("s_1", 5)


@pytest.mark.parametrize("is_committed", [True, False])
def test_an_evaluator_that_ended_after_a_commit_is_no_death(opened: Ground, is_committed: bool) -> None:
    """The pin of the committed batch was still there; a batch that is under way, however, is evaluated carefully."""
    store, quarantine = TableStore(opened.settings), QuarantineStore(opened.settings)
    store.pin("s_1", 7)
    deaths = WorkerDeaths(quarantine, lambda: 0)
    assert deaths.begin("s_1")
    store.unpin("s_1", None if is_committed else 7)
    deaths.resumed("s_1", committed=False)
    assert is_committed != deaths.begin("s_1")
    assert (0 if is_committed else 1) == quarantine.search("s_1").deaths


def _writes(store: TableStore, quarantine: QuarantineStore, batch: int) -> list[Callable[[], object]]:
    """Return all that an evaluator and its workers write of a stream; `batch` is pinned by nobody yet."""
    statistics = PartitionStatistics(0, 1, 0, {}, {})
    return [
        lambda: store.unpin("s_1", None),
        lambda: store.pin("s_1", batch),
        lambda: store.keep_table_pins("s_1", batch, {"t_1": {0: 7}}),
        lambda: store.committed("s_1", 7, {"0": 9}),
        lambda: store.note_checkpoint("s_1", "first"),
        lambda: store.tell_statistics("s_1", 0, statistics),
        lambda: store.counts.add([TaskCount("s_1", None, 0, "query/7", Output(1, 2, 3))]),
        lambda: store.letters_written("t_1", {0: 5}),
        lambda: store.tell_executors(ExecutorsNote(batch)),
        lambda: quarantine.put("s_1", {"g_1": Quarantine(1, 2, "it raised")}),
        lambda: quarantine.set_search("s_1", CulpritSearch(1)),
        lambda: quarantine.mark("s_1", 0, ["g_1"]),
        lambda: quarantine.count_dead_letters({"bad-record": 1}),
        lambda: quarantine.end_search("s_1"),
    ]


def test_a_task_whose_evaluator_was_succeeded_sends_no_more(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task fails before its next records, or before it begins; its successor's tasks send."""
    monkeypatch.setattr(fence, "FRESH_SECONDS", 0.0)
    topic, settings = ground.settings.topics.results, pickle.dumps(ground.settings)
    ground.make_topic(topic, 1)
    first, second = (Lease(ground.settings, "evaluator") for _ in range(2))
    for lease in (first, second):
        lease.lifetime_ms = HOUR  # nobody renews it, however slow the machine is
    assert first.acquire()

    def succeeded_midway(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _rows(topic, b"before")
        record_writer(settings).flush()
        connect(ground.settings).delete(first.key)
        assert second.acquire()
        yield _rows(topic, b"after")

    for _ in range(2):
        with pytest.raises(LeaseLost):
            list(RecordWriting(succeeded_midway, settings, first.fence)([]))
    list(RecordWriting(lambda _: iter([_rows(topic, b"successor")]), settings, second.fence)([]))
    record_writer(settings).close()
    consumer = Consumer({"bootstrap.servers": ground.settings.kafka.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [b"before", b"successor"] == [message.value() for message in consumer.consume(2, timeout=DEADLINE)]
    consumer.close()


def _rows(topic: str, value: bytes) -> pa.RecordBatch:
    columns = zip((b"k", value, topic, 0, packed_headers(())), OUTPUT.types, strict=True)
    return pa.record_batch([pa.array([each], of) for each, of in columns], schema=OUTPUT)


def test_a_task_waits_for_a_redis_that_lost_the_fence(ground: Ground) -> None:
    """Nobody knows then whether its evaluator was succeeded; the task goes on when the lease is taken anew."""
    lease = Lease(ground.settings, "evaluator")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        assert lease.acquire()

    with pytest.raises(LeaseLost):  # a transaction leaves an empty fence there, which is nobody's either
        TableStore(ground.settings, EvaluatorFences.of(ground.settings, lease.token)).tell_executors(ExecutorsNote(1))
    FenceWatch(ground.settings, sleep=wait).check(lease.fence)
    assert len(waits) == 1


def test_an_answer_holds_for_a_moment(ground: Ground) -> None:
    """Thousands of writes follow one another: Redis is asked again after some time, not for each."""
    lease, now = Lease(ground.settings, "evaluator"), [100.0]
    assert lease.acquire()
    watch = FenceWatch(ground.settings, clock=lambda: now[0])
    watch.check(lease.fence)
    connect(ground.settings).set(lease.fence.key, "somebody else")
    watch.check(lease.fence)
    now[0] += 0.1
    with pytest.raises(LeaseLost):
        watch.check(lease.fence)


def test_a_fenced_gateway_without_a_successor_goes_on(stack: Stack, lab: Lab) -> None:
    """Kafka fences the client of a gateway that still has the lease: the gateway takes another client and answers."""
    pids = stack.endpoints()["pids"]
    producer = Producer({"bootstrap.servers": stack.bootstrap, "transactional.id": Settings().clients.gateway})
    producer.init_transactions(DEADLINE)
    source = lab.stream()
    lab.where(source, "cheap", "price < 5")
    assert pids["gateway"] == stack.endpoints()["pids"]["gateway"]
