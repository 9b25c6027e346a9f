"""Ticks of very many destinations, with the test as evaluator: the digests are the same, whichever program dies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from gateway.kafka import LogReader
from gateway.model.trigger_spec import TriggerSpec
from gateway.timers import digest_orders
from grouping.digests.jobs import DigestJobs, Job
from grouping.digests.orders import ORDERS
from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.settings.evaluator_settings import EvaluatorSettings
from grouping.settings.settings import Settings
from grouping.store.lease import LIFETIME_MS, Lease
from grouping.store.ownership import EvaluatorFences, Ownership
from spark_jobs.runtime.kafka.record_writer import RecordWriter
from spark_jobs.runtime.worker import digest_task
from spark_jobs.runtime.worker.digest_task import DigestTask
from tests.ground import Ground
from tests.stack.digests.desk import HOUR, NOW, await_taken_in, let_pass, take_in
from tests.timer_desk import Desk

_CQS = 10
_HOURLY = TriggerSpec(HOUR, NOW % HOUR)


class _Evaluator:
    """An evaluator that owns the stream, controlled by the test."""

    def __init__(self, settings: Settings, stream_id: StreamId) -> None:
        self._settings = settings.model_copy(
            update={"evaluator": EvaluatorSettings(name="fast", streams={"fast": "*"})}
        )
        self._stream_id = stream_id
        self._lease = Lease(settings, "evaluator", "fast")
        self._lease.lifetime_ms = HOUR  # nobody renews the lease; the test ends it, however slow the machine is
        self._ownership = Ownership(settings, EvaluatorFences.of(self._settings, self._lease.token))
        self._jobs = DigestJobs(settings)
        self.lead()

    def lead(self) -> None:
        assert self._lease.acquire()
        assert self._ownership.claim(self._stream_id) is None

    def leave(self) -> None:
        self._lease.release()

    @property
    def asked(self) -> Job | None:
        """The request to it, in whatever state."""
        job = self._jobs.look()
        mine = job is not None and job.evaluator == self._lease.token and self._jobs.has_evaluator(job)
        return job if mine else None

    def take(self) -> Job:
        """Take the request, which must be there."""
        asked = self.asked
        assert asked is not None
        taken = self._jobs.change(asked, "taken")
        assert taken is not None
        return taken

    def write(self, job: Job) -> None:
        """Do the work of the Spark job."""
        reader = LogReader(self._settings)
        found = list(reader.span(self._settings.topics.orders, ORDERS, job.first, job.end - 1))
        reader.close()
        orders = pa.record_batch({"offset": [one.offset for one in found], "value": [one.value for one in found]})
        writer = RecordWriter(self._settings)
        for rows in DigestTask.of(self._settings)([orders]):
            writer.write(rows)
        writer.close()

    def tell(self, job: Job) -> None:
        """Report the job as done."""
        assert self._jobs.change(job, "done") is not None


@pytest.fixture
def desk(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """CQs with something pending for the next hour, enough of them for a big tick; three to an order."""
    monkeypatch.setattr(digest_orders, "CHUNK", 3)
    monkeypatch.setattr(digest_task, "MEMORY", digest_task.JobMemory(Mock()))  # this process is no worker
    timers = ground.settings.timers.model_copy(update={"spark_from": _CQS // 2})
    desk = Desk(ground.settings.model_copy(update={"timers": timers}), NOW)
    desk.create([_HOURLY] * _CQS)
    take_in(desk, _stores(desk), NOW + 1)
    return desk


@pytest.fixture
def evaluator(desk: Desk) -> Iterator[_Evaluator]:
    """The evaluator that owns the stream."""
    (stream_id,) = desk.working.inventory.streams
    evaluator = _Evaluator(desk.settings, stream_id)
    yield evaluator
    evaluator.leave()


def _crash(*_: object) -> None:
    raise OperationalError("the gateway dies here")


def _stores(desk: Desk) -> list[tuple[bytes, int]]:
    return desk.stores(range(_CQS), _HOURLY)


def _results(desk: Desk) -> dict[str, Any]:
    """Return all results by their ids; an id has the same content however often it was written."""
    reader = LogReader(desk.settings)
    partitions = dict.fromkeys(range(desk.settings.results.partitions), 0)
    found: dict[str, bytes] = {}
    for message in reader.since(desk.settings.topics.results, partitions):
        name, body = dict(message.headers)["ce_id"].decode(), message.value or b""
        assert found.setdefault(name, body) == body, f"{name} has two contents"
    reader.close()
    return {name: json.loads(body) for name, body in found.items()}


def _counts(desk: Desk, tick_ms: int) -> list[int]:
    """Return how many matches the digests of a tick have."""
    return [body["count"] for name, body in _results(desk).items() if name.split("/")[1] == str(tick_ms)]


def _big_tick(desk: Desk) -> None:
    """Let time go on to the tick, and until its digests are ordered."""
    desk.now_ms = NOW + HOUR
    let_pass(desk, 1000)
    assert not _results(desk)


def _check_next_tick(desk: Desk) -> None:
    """The next two hourly digests have the later matches, each match once."""
    take_in(desk, _stores(desk), desk.now_ms)
    for hour in (2, 3):
        desk.now_ms = NOW + hour * HOUR
        let_pass(desk, 6000)
    assert _counts(desk, NOW + HOUR) == [1] * _CQS
    later = [body["count"] for name, body in _results(desk).items() if name.split("/")[1] != str(NOW + HOUR)]
    assert sum(later) == _CQS


def test_a_big_tick_is_one_job(desk: Desk, evaluator: _Evaluator) -> None:
    """The digests come when the job wrote them; matches that come in meanwhile are in the next ones."""
    _big_tick(desk)
    job = evaluator.take()
    take_in(desk, _stores(desk)[:4], desk.now_ms)
    let_pass(desk, 60_000)
    assert not _results(desk)
    evaluator.write(job)
    evaluator.tell(job)
    let_pass(desk, 1000)
    assert _counts(desk, NOW + HOUR) == [1] * _CQS
    assert evaluator.asked is None
    evaluator.leave()
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 2000)
    assert _counts(desk, NOW + 2 * HOUR) == [1] * 4
    assert _counts(desk, NOW + HOUR) == [1] * _CQS


def test_a_small_tick_asks_for_nothing(desk: Desk, evaluator: _Evaluator) -> None:
    """Fewer destinations than the setting says fire here, and nobody is asked."""
    evaluator.leave()
    desk.now_ms = NOW + HOUR
    let_pass(desk, 1000)
    assert _counts(desk, NOW + HOUR) == [1] * _CQS  # nobody led: they are not held up
    evaluator.lead()
    take_in(desk, _stores(desk)[:4], desk.now_ms)
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 1000)
    assert _counts(desk, NOW + 2 * HOUR) == [1] * 4


def test_a_request_that_nobody_takes_is_withdrawn(desk: Desk, evaluator: _Evaluator) -> None:
    """An evaluator that leads but does not answer holds up a tick for seconds only, and can take nothing then."""
    _big_tick(desk)
    assert evaluator.asked is not None
    let_pass(desk, 4000)
    assert _counts(desk, NOW + HOUR) == [1] * _CQS
    assert evaluator.asked is None
    evaluator.leave()
    _check_next_tick(desk)


@pytest.mark.parametrize("written", [False, True])
def test_an_evaluator_that_dies_is_waited_for_as_long_as_it_could_write(
    desk: Desk, evaluator: _Evaluator, written: bool
) -> None:
    """Only when its lease has been gone for its whole length the gateway makes the digests: the same ones."""
    _big_tick(desk)
    job = evaluator.take()
    if written:
        evaluator.write(job)
    evaluator.leave()
    before = len(_results(desk))
    desk.match(_stores(desk), [NOW + 2] * _CQS)
    let_pass(desk, LIFETIME_MS["evaluator"] - 2000)
    assert len(_results(desk)) == before
    let_pass(desk, 4000)
    assert _counts(desk, NOW + HOUR) == [1] * _CQS
    # Matches behind the cut are in the digests of the next hour.
    await_taken_in(desk)
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 2000)
    assert _counts(desk, NOW + 2 * HOUR) == [1] * _CQS
    assert _counts(desk, NOW + HOUR) == [1] * _CQS


@pytest.mark.parametrize(
    ("moment", "wiped"),
    [("ordered", False), ("taken", True), ("written", False), ("done", False), ("closed", False), ("closed", True)],
)
def test_a_gateway_that_dies_goes_on_where_it_was(
    desk: Desk, evaluator: _Evaluator, moment: str, wiped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new gateway takes up the orders that are open, also when Redis has lost the request and everything else."""
    _big_tick(desk)
    job = evaluator.take() if moment != "ordered" else None
    if job is not None and moment != "taken":
        evaluator.write(job)
    if job is not None and moment in ("done", "closed"):
        evaluator.tell(job)
    if moment == "closed":
        # An order is closed on Kafka; its destinations are not armed anew.
        with monkeypatch.context() as patched:
            patched.setattr(digest_orders.OrderDesk, "carried_out", _crash)
            with pytest.raises(OperationalError, match="dies here"):
                let_pass(desk, 2000)
    if wiped:
        desk.working.connection.redis.delete(
            *desk.working.connection.redis.keys(desk.working.connection.keys.everything)
        )
        evaluator.lead()
    desk.recover()
    let_pass(desk, 2000)
    asked = evaluator.asked
    if asked is not None and asked.state != "done":
        again = asked if asked.state == "taken" else evaluator.take()
        evaluator.write(again)
        evaluator.tell(again)
    let_pass(desk, 2000)
    assert _counts(desk, NOW + HOUR) == [1] * _CQS
    evaluator.leave()
    _check_next_tick(desk)


def test_an_end_waits_for_the_job(desk: Desk, evaluator: _Evaluator) -> None:
    """`cq.end` is the last record of a destination that is dropped while its digest is under way."""
    _big_tick(desk)
    job = evaluator.take()
    desk.drop("c3")
    let_pass(desk, 3000)
    assert not _results(desk)
    evaluator.write(job)
    evaluator.tell(job)
    let_pass(desk, 5000)
    name = desk.destination(3, _HOURLY).destination_id
    assert [one.split("/")[1] for one in _results(desk) if one.startswith(name)] == [str(NOW + HOUR), "end"]
    assert not desk.working.connection.redis.hexists(desk.working.connection.keys.cursors, f"{name}/{NOW}")
