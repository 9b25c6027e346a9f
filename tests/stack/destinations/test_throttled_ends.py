"""Destinations with AT MOST: their results, and their ends after the last of them, by a clock moved by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from confluent_kafka import Producer

from gateway.kafka import LogReader
from gateway.model.records import THROTTLED_PARTITIONS, Destination
from gateway.model.trigger_spec import TriggerSpec
from grouping.model.trigger import ChangeBased, Throttle
from grouping.values.times import instant
from tests.ground import Ground
from tests.kafka_client import wait_until
from tests.stack.digests.desk import HOUR, NOW, let_pass, written
from tests.timer_desk import Desk

_TRIGGER = TriggerSpec.of(ChangeBased(Throttle(2, timedelta(hours=1))), None, NOW)


@contextmanager
def _desk(ground: Ground, trigger: TriggerSpec = _TRIGGER) -> Iterator[tuple[Desk, Destination]]:
    """Play a gateway with a CQ with AT MOST."""
    desk = Desk(ground.settings, NOW)
    topics = ground.settings.topics
    desk.topics.create({topics.throttled: THROTTLED_PARTITIONS}, {"retention.ms": "-1"})
    desk.topics.create({topics.throttles: 1}, {"cleanup.policy": "compact", "retention.ms": "-1"})
    desk.throttles.recover()
    desk.create([trigger])
    yield desk, desk.destination(0, trigger)


def _find(desk: Desk, destination: Destination, *places: int, late_ms: int = 0) -> None:
    """Write results of events at these offsets, as the evaluator does."""
    producer = Producer({"bootstrap.servers": desk.settings.kafka.bootstrap})
    _, partition = destination.written_by
    for place in places:
        headers = [("ce_specversion", "1.0"), ("ce_type", "cq.match"), ("ce_source", "t"), ("ce_id", f"t/0/{place}")]
        headers.append(("ce_time", instant(NOW + place * 60_000 - late_ms)))
        key = destination.destination_id.encode()
        producer.produce(desk.settings.topics.throttled, b'{"k":0}', key, partition, headers=headers)
    producer.flush()


def _copy(desk: Desk, count: int) -> None:
    """Let the gateway copy until there are that many results."""

    def has_copied() -> bool:
        desk.throttles.step()
        return len(_suppressed(desk)) >= count

    wait_until(has_copied, f"{count} results")


def _suppressed(desk: Desk) -> list[tuple[str, int]]:
    """Return the id of each result, repeats included, and the number of results that were left out before it."""
    reader = LogReader(desk.settings)
    found = []
    for record in reader.since(desk.settings.topics.results, dict.fromkeys(range(4), 0)):
        headers = dict(record.headers)
        found.append(((headers["ce_id"] or b"").decode(), int(headers.get("suppressed") or 0)))
    reader.close()
    return found


def test_the_end_waits_for_all_results(ground: Ground) -> None:
    """A result that the evaluator wrote before it let the CQ go is copied before `cq.end`, however late that is."""
    with _desk(ground) as (desk, destination):
        _find(desk, destination, 1)
        _copy(desk, 1)
        _find(desk, destination, 2)
        desk.drop("c0")
        let_pass(desk, 1_000)
        assert ["t/0/1"] == list(written(desk))
        _copy(desk, 2)
        let_pass(desk, 500)
        desk.throttles.step()
        let_pass(desk, 500)
        assert ["t/0/1", "t/0/2", f"{destination.destination_id}/end"] == [
            name.rsplit("/", 1)[0] if "/end/" in name else name for name in written(desk)
        ]
        reader = LogReader(desk.settings)
        state = {record.key: record.value for record in reader.since(desk.settings.topics.throttles, {0: 0})}
        reader.close()
        assert [b"reached"] == list({(key or b"").split(b"/")[0] for key, value in state.items() if value})


def test_a_gateway_that_takes_over_tells_the_same(ground: Ground) -> None:
    """Repeats of the evaluator and of the gateway change nothing: numbers and intervals go on."""
    with _desk(ground) as (desk, destination):
        _find(desk, destination, 1, 2, 3, 2, 3, 4)
        _copy(desk, 2)
        desk.throttles.recover()
        _find(desk, destination, 3, 4, 5, 70)
        _copy(desk, 3)
        assert [("t/0/1", 0), ("t/0/2", 0), ("t/0/70", 3)] == _suppressed(desk)


def test_copied_records_are_deleted(ground: Ground) -> None:
    """The log keeps the results of the last step, whose state may not be readable yet; earlier ones go."""
    with _desk(ground) as (desk, destination):
        topic, (_, partition) = desk.settings.topics.throttled, destination.written_by
        for place in range(1, 4):
            _find(desk, destination, place * 100)
            _copy(desk, place)

            def is_deleted(place: int = place) -> bool:
                desk.now_ms += HOUR
                desk.throttles.step()
                return desk.topics.offsets.beginnings([(topic, partition)])[topic, partition] == place - 1

            wait_until(is_deleted, "deletion of copied records")
