"""A digest of more aggregates than the limit: a dead letter reports it, and the next digest comes."""

from __future__ import annotations

import pytest

from gateway.kafka import LogReader
from gateway.model.trigger_spec import TriggerSpec
from spark_jobs.engine.operators.aggregate import merging
from spark_jobs.engine.operators.aggregate.merging import AggregateMerge
from tests.aggregate_desk import VENUES, GroupDesk
from tests.ground import Ground
from tests.stack.digests.desk import HOUR, NOW, digests, let_pass, take_in, written

_HOURLY = TriggerSpec(HOUR, NOW % HOUR)
_EXPIRE = NOW + 2 * HOUR + HOUR // 2


class _Desk(GroupDesk):
    """A single store, whose groups pass HAVING."""

    symbols = 1
    half = 20
    pane = (HOUR, NOW % HOUR)


def _letters(desk: _Desk) -> list[tuple[bytes, bytes]]:
    """Return the code and the source of each dead letter."""
    reader = LogReader(desk.settings)
    found = [dict(record.headers) for record in reader.since(desk.settings.topics.deadletters, {0: 0})]
    reader.close()
    return [(headers["code"] or b"", headers["source"] or b"") for headers in found]


def test_a_digest_of_too_many_groups_is_a_dead_letter(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its waiting matches are skipped, once; later ticks have their own, and the end comes behind a refused digest."""
    most = VENUES - 1
    monkeypatch.setattr(merging, "AggregateMerge", lambda select, count: AggregateMerge(select, count, most))
    desk = _Desk(ground.settings, NOW)
    desk.put([("many", 0, _HOURLY)], _EXPIRE)
    stores, name = desk.stores([0], _HOURLY), desk.destination(0, _HOURLY).destination_id
    take_in(desk, stores, NOW + 1)
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    refused = [(b"result-too-large", f"{name}/{NOW + HOUR}/1".encode())]
    assert (refused, {}) == (_letters(desk), digests(desk))
    desk.recover()
    let_pass(desk, 2000)
    assert (refused, {}) == (_letters(desk), digests(desk))
    most = VENUES
    take_in(desk, stores, desk.now_ms)
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 2000)
    assert {f"{name}/{NOW + 2 * HOUR}/1": VENUES} == {each: body["count"] for each, body in digests(desk).items()}
    most = VENUES - 1
    take_in(desk, stores, desk.now_ms)
    desk.now_ms = _EXPIRE
    let_pass(desk, 3000)
    refused.append((b"result-too-large", f"{name}/{_EXPIRE}/1".encode()))
    assert refused == _letters(desk)
    assert f"{name}/end/{_EXPIRE}" in written(desk)
