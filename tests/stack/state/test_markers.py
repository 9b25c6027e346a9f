"""A commit is done when it can be read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer

from gateway.kafka.markers import Markers
from grouping.model.errors import OperationalError
from tests.ground import Ground
from tests.kafka_client import DEADLINE


@pytest.mark.parametrize("by_admin", [False, True])
def test_a_commit_is_awaited(ground: Ground, by_admin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readable records count, not written ones; even if the consumer gets no answer."""
    topic, markers = f"{ground.settings.prefix}awaited", Markers(ground.settings)
    ground.make_topic(topic, 2)
    if by_admin:
        monkeypatch.setattr("gateway.kafka.markers.OFFSET_END", -99)  # which no broker knows
    producer = Producer({"bootstrap.servers": ground.settings.kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(DEADLINE)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic, b"a", partition=partition)
    producer.flush(DEADLINE)
    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(markers.await_markers, {(topic, 0): 0, (topic, 1): 0})
        with pytest.raises(TimeoutError):
            seen.result(0.5)
        producer.commit_transaction(DEADLINE)
        seen.result(DEADLINE)
    assert not markers.missing([topic])


def test_a_partition_that_is_not_there(ground: Ground) -> None:
    """The failure is told, and nothing waits for the marker."""
    topic = f"{ground.settings.prefix}alone"
    ground.make_topic(topic, 1)
    with pytest.raises(OperationalError):
        Markers(ground.settings).await_markers({(topic, 3): 0})
