"""Errors of the driver are mapped by their meaning: Kafka is away, whichever way it shows."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from gateway.kafka.driver import KafkaUnavailable, ProducerFenced, mapped


def test_a_broker_that_hangs_is_unavailable() -> None:
    """A late answer does not end the gateway: it waits for Kafka as after a refused connection."""
    answer: Future[int] = Future()
    with pytest.raises(KafkaUnavailable, match="kafka failed at asking"), mapped("asking"):
        answer.result(0.0)


def test_a_fatal_error_among_delivery_reports_is_itself() -> None:
    """Python wraps a fatal error of the driver that delivery reports are called with; the fenced client is told so."""
    fenced = KafkaException(KafkaError(KafkaError._FENCED))  # noqa: SLF001  # librdkafka's own codes all begin so
    with pytest.raises(ProducerFenced, match="kafka has fenced this client"), mapped("writing a commit"):
        raise SystemError("returned a result with an exception set") from fenced
