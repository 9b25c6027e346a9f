"""What the driver raises is told as what it means: Kafka is away, whichever way it shows."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from gateway.kafka.driver import KafkaUnavailable, mapped


def test_a_broker_that_hangs_is_unavailable() -> None:
    """An answer that does not come in time is no end of the gateway: it waits for Kafka as for one that refuses."""
    answer: Future[int] = Future()
    with pytest.raises(KafkaUnavailable, match="kafka failed at asking"), mapped("asking"):
        answer.result(0.0)
