"""A stream has one evaluator, whatever others are assigned; status and metric report streams without any."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from gateway.state.stream_evaluators import StreamEvaluators
from gateway.state.working_copy import WorkingCopy
from gateway.top.roles import running_roles
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.evaluator_settings import EvaluatorSettings
from grouping.settings.settings import Settings
from grouping.store.connection import connect
from grouping.store.fence import LeaseLost
from grouping.store.keys import RedisKeys, role_title
from grouping.store.lease import Lease
from grouping.store.ownership import EvaluatorFences, Ownership
from grouping.store.role_notes import RoleNotes
from grouping.store.table_store import TableStore
from tests.ground import Ground
from tests.stack.digests.desk import HOUR

_QUOTES, _ORDERS = StreamId("s_1"), StreamId("s_2")
_SHARES = {"fast": "quotes"}


class _Evaluator:
    """A named evaluator, controlled by the test."""

    def __init__(self, ground: Ground, name: str = "") -> None:
        self.settings = _shared(ground.settings, name)
        self.lease = Lease(self.settings, "evaluator", name)
        fences = EvaluatorFences.of(self.settings, self.lease.token)
        self.lease.lifetime_ms = HOUR  # nobody renews the lease; the test ends it, however slow the machine is
        self.ownership = Ownership(self.settings, fences)
        self.store = TableStore(self.settings, fences)
        assert self.lease.acquire()

    def tell(self, **reasons: str | None) -> None:
        """Tell of its streams."""
        streams = {name: {"reason": reason} for name, reason in reasons.items()}
        notes, name = RoleNotes(self.settings), self.settings.evaluator.name
        notes.tell("evaluator", "ready", {"streams": streams, "metrics_url": f"http://{name}"}, name)
        _keep_note(self.settings, role_title("evaluator", name))


def _keep_note(settings: Settings, role: str) -> None:
    """Have the last note of a role stay, though nobody tells again, however slow the machine is."""
    connect(settings).persist(RedisKeys.of(settings).role_note(role))


def _shared(settings: Settings, name: str) -> Settings:
    return settings.model_copy(update={"evaluator": EvaluatorSettings(name=name, streams=_SHARES)})


def test_a_stream_has_one_evaluator(ground: Ground) -> None:
    """A second evaluator takes the stream when the first has ended or lost its lease; then the first writes nothing."""
    first, second = _Evaluator(ground), _Evaluator(ground, "fast")
    assert first.ownership.claim(_QUOTES) is None
    assert first.ownership.claim(_QUOTES) is None
    owner = second.ownership.claim(_QUOTES)
    assert owner is not None and ("", "unnamed evaluator") == (owner.name, owner.title)
    assert second.ownership.claim(_ORDERS) is None
    first.store.note_checkpoint(_QUOTES, "first")
    connect(ground.settings).delete(first.lease.key)  # as it lapses
    assert second.ownership.claim(_QUOTES) is None
    with pytest.raises(LeaseLost):
        first.store.note_checkpoint(_QUOTES, "again")
    with pytest.raises(LeaseLost):
        first.ownership.claim(_ORDERS)
    assert first.lease.acquire()
    assert [_QUOTES] == first.ownership.lost([_QUOTES])
    second.store.note_checkpoint(_QUOTES, "second")
    assert "second" == second.store.checkpoint(_QUOTES)


def test_what_redis_has_lost_is_claimed_again(ground: Ground) -> None:
    """The tasks of its streams go on then."""
    evaluator = _Evaluator(ground)
    assert [] == evaluator.ownership.lost([])
    assert evaluator.ownership.claim(_QUOTES) is None
    connect(ground.settings).delete(RedisKeys.of(ground.settings).owner(_QUOTES))
    with pytest.raises(LeaseLost):
        evaluator.store.note_checkpoint(_QUOTES, "first")
    assert [] == evaluator.ownership.lost([_QUOTES])
    evaluator.store.note_checkpoint(_QUOTES, "first")
    evaluator.ownership.give_up(_QUOTES)
    assert not connect(ground.settings).exists(RedisKeys.of(ground.settings).owner(_QUOTES))


def test_keys_of_a_dropped_stream_are_removed(ground: Ground) -> None:
    """Its last tasks may have written them after DROP; a stream that Redis may have lost, and a live one, keep them."""
    evaluator, redis, keys = _Evaluator(ground), connect(ground.settings), RedisKeys.of(ground.settings)

    def given_up(stream_id: StreamId) -> bool:
        assert evaluator.ownership.claim(stream_id) is None
        evaluator.store.note_checkpoint(stream_id, "first")
        evaluator.ownership.give_up(stream_id)
        assert not redis.exists(keys.owner(stream_id))
        return not redis.exists(keys.checkpoint(stream_id))

    redis.hset(keys.streams, _ORDERS, b"{}")
    assert not given_up(_QUOTES), "no gateway has confirmed the tables"
    WorkingCopy(ground.settings).confirm(1, redis.info("server")["run_id"])
    assert given_up(_QUOTES)
    assert not given_up(_ORDERS)


def test_streams_without_an_evaluator_are_told(ground: Ground) -> None:
    """The evaluator of a stream is reported too, and the reason if it does not evaluate the stream."""
    now = [100.0]
    streams = [
        Stream(each, name, (), name, "json", {"0": 0}, "") for each, name in ((_QUOTES, "quotes"), (_ORDERS, "o"))
    ]
    working = WorkingCopy(ground.settings)
    looks = StreamEvaluators(_shared(ground.settings, ""), working.evaluator, lambda: now[0])

    def reported(field: str) -> list[str | None]:
        found = looks.of_streams(streams)
        return [found[stream.name].get(field) for stream in streams]

    missing = ["its evaluator/fast does not run", "its evaluator does not run"]
    assert missing == reported("reason")
    assert [0, 0] == _evaluators("quotes", "o")
    rest, fast = _Evaluator(ground), _Evaluator(ground, "fast")
    rest.tell(o=None)
    fast.tell()
    assert [None, None] == reported("reason")  # they begin
    assert rest.ownership.claim(_ORDERS) is None
    now[0] += 20
    reason = "no evaluator has the stream; by the gateway's CQ_EVALUATOR_STREAMS, evaluator/fast should have it"
    assert [reason, None] == reported("reason")
    assert [0, 1] == _evaluators("quotes", "o")
    assert fast.ownership.claim(_QUOTES) is None
    assert ["evaluator/fast", "evaluator"] == reported("evaluator")
    fast.tell(quotes="its topic is gone")
    assert ["its topic is gone", None] == reported("reason")
    assert [1, 1] == _evaluators("quotes", "o")
    fast.lease.release()
    assert [missing[0], None] == reported("reason")
    assert [0, 1] == _evaluators("quotes", "o")


def test_one_evaluator_is_told_of_as_a_role(ground: Ground) -> None:
    """Without shares a stream does not report its evaluator, unless the evaluator leaves the stream out."""
    now = [100.0]
    looks = StreamEvaluators(ground.settings, WorkingCopy(ground.settings).evaluator, lambda: now[0])
    streams = [Stream(_QUOTES, "quotes", (), "quotes", "json", {"0": 0}, "")]
    assert {"quotes": {}} == looks.of_streams(streams)
    assert [0] == _evaluators("quotes")
    evaluator = _Evaluator(ground)
    evaluator.tell()
    assert {"quotes": {}} == looks.of_streams(streams)
    now[0] += 20
    assert "no evaluator has the stream" in looks.of_streams(streams)["quotes"]["reason"]
    assert evaluator.ownership.claim(_QUOTES) is None
    assert {"quotes": {}} == looks.of_streams(streams)
    assert [1] == _evaluators("quotes")
    evaluator.lease.release()
    assert {"quotes": {}} == looks.of_streams(streams)
    assert [0] == _evaluators("quotes")


def test_all_evaluators_are_roles(ground: Ground) -> None:
    """The evaluators named by the gateway; without a gateway the settings' evaluators."""
    gateway = Lease(ground.settings, "gateway")
    gateway.lifetime_ms = HOUR
    assert gateway.acquire()
    _Evaluator(ground).tell()
    assert {"gateway": "silent", "evaluator": "ready"} == _states(running_roles(ground.settings))
    RoleNotes(ground.settings).tell("gateway", "ready", {"evaluators": ["", "fast"]})
    _keep_note(ground.settings, "gateway")
    found = running_roles(ground.settings)
    assert {"gateway": "ready", "evaluator": "ready", "evaluator/fast": "stopped"} == _states(found)
    assert "degraded" == found["state"]
    _Evaluator(ground, "fast").tell()
    found = running_roles(ground.settings)
    assert ("ready", "http://fast") == (found["state"], found["addresses"]["evaluator/fast_metrics_url"])
    gateway.release()


def _evaluators(*streams: str) -> list[float | None]:
    """Return Prometheus's figures of streams."""
    return [REGISTRY.get_sample_value("cq_stream_evaluators", {"stream": stream}) for stream in streams]


def _states(found: dict[str, Any]) -> dict[str, str]:
    return {name: role["state"] for name, role in found["roles"].items() if name not in ("kafka", "redis")}
