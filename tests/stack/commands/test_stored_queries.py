"""Stored CQs that the fast path of an earlier version compiled wrongly are found at a start, and compiled anew."""

from __future__ import annotations

import logging

import msgspec
import pytest

from gateway.commands.stored_queries import REVISION
from gateway.model.records import Cq
from gateway.model.unit import CqKey
from gateway.state.working_copy import WorkingCopy
from grouping.statements.cq_text import CqText
from tests.ground import Ground
from tests.stack.counter import Counter

_WORTH = "SELECT s.w FROM (SELECT k, k * {} AS w FROM t) s WHERE s.w > {}"


def _create(name: str, factor: int, more: str = "", least: int = 100) -> str:
    return f"CREATE CQ {name} AS {_WORTH.format(factor, least)}{more}"


def _stored(working: WorkingCopy, name: str) -> Cq:
    working.begin()
    key = CqKey.of("alice", name)
    return working.load([key]).existing(key)


def _give_text(working: WorkingCopy, name: str, text: str) -> None:
    """Have a CQ stored with another text of its template, as if that text had been compiled to its plan."""
    cq, key = _stored(working, name), CqKey.of("alice", name)
    home = working.load([key]).destination_of(cq)
    working.unit.put(key, msgspec.structs.replace(cq, text=CqText.cut(text)), home)
    working.commit()


def test_wrong_ones_are_compiled_anew_once(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    """A wrong CQ goes to the destination of its own text, the log names it, and all others stay as they are."""
    counter = Counter(ground.settings)
    working = counter.desk.working
    assert not counter.desk.look_after() and not counter.desk.stored_queries.busy, "without CQs the pass is over"
    texts = {
        "right": _create("right", 2),
        "wrong": _create("wrong", 2),
        "timed": _create("timed", 2, " EVERY '10 minutes' START '2027-01-01T00:00:00Z'"),
        "plain": "CREATE CQ plain AS SELECT k FROM t WHERE k = 5",
        "model": _create("model", 3),
        "clock": _create("clock", 3, " EVERY '10 minutes' START '2027-01-01T00:00:00Z'"),
    }
    assert {"ok"} == {reply.code for reply in counter.answers(*texts.values())}
    counter.answers("PAUSE CQ wrong")
    _give_text(working, "wrong", texts["wrong"].replace("k * 2", "k * 3"))
    _give_text(working, "timed", texts["timed"].replace("k * 2", "k * 3"))
    before = {name: _stored(working, name) for name in texts}
    with working.connection.writing() as pipeline:
        pipeline.delete(working.connection.keys.compiled)
    counter.desk.recover()
    assert counter.desk.stored_queries.busy
    with caplog.at_level(logging.INFO):
        while counter.desk.stored_queries.busy:
            counter.desk.look_after()
    found = [record.cq for record in caplog.records if "had the plan of another text" in record.message]  # type: ignore[attr-defined]
    assert ["timed", "wrong"] == sorted(found)
    after = {name: _stored(working, name) for name in texts}
    assert after["model"].destination_id == after["wrong"].destination_id
    assert after["clock"].destination_id == after["timed"].destination_id
    assert after["wrong"].paused and after["timed"].start_ms == before["timed"].start_ms
    unchanged = ("right", "plain", "model", "clock")
    assert {name: before[name] for name in unchanged} == {name: after[name] for name in unchanged}
    assert REVISION == int(working.connection.redis.get(working.connection.keys.compiled))
    counter.desk.recover()
    assert not counter.desk.stored_queries.busy, "the pass is made once"
    again = {name: _stored(working, name).destination_id for name in texts}
    assert {name: cq.destination_id for name, cq in after.items()} == again
