"""The worker's producer and its knowledge of the cluster."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from concurrent.futures import Future

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from aiokafka.producer.message_accumulator import BatchBuilder

from grouping.model.errors import OperationalError
from grouping.settings.settings import KafkaSettings, Settings
from spark_jobs.runtime.kafka.record_batches import RecordBatch
from spark_jobs.runtime.kafka.record_writer import (
    FinishedBatch,
    RecordsTooLarge,
    acknowledged,
    answer,
    producer_options,
)


def _options(**extra: str) -> dict:
    named = {name.replace("_", "."): value for name, value in extra.items()}
    return producer_options(Settings(kafka=KafkaSettings(bootstrap="a:1,b:2", extra=named)))


def test_what_is_written_is_acknowledged_and_written_once() -> None:
    """Whatever else is set, and options that aiokafka does not know are left to the other clients."""
    expected = {"bootstrap_servers": "a:1,b:2", "acks": "all", "enable_idempotence": True, "request_timeout_ms": 20_000}
    assert expected | {"security_protocol": "PLAINTEXT"} == _options(
        acks="0", kafka_acks="0", statistics_interval_ms="5"
    )


@pytest.mark.parametrize("protocol", ["SASL_SSL", "sasl_ssl"])
def test_credentials_and_certificates_are_passed_on(protocol: str) -> None:
    """Names of options are librdkafka's."""
    found = _options(security_protocol=protocol, sasl_mechanism="PLAIN", sasl_username="u", sasl_password="p")
    assert ("SASL_SSL", "PLAIN", "u", "p") == (
        found["security_protocol"],
        found["sasl_mechanism"],
        found["sasl_plain_username"],
        found["sasl_plain_password"],
    )
    assert ssl.CERT_REQUIRED == found["ssl_context"].verify_mode


def test_aiokafka_has_the_parts_that_are_stood_in_for() -> None:
    """A version whose producer asks a batch for more, or in another way, is noticed here and not in a worker."""
    theirs = {name: method for name, method in vars(BatchBuilder).items() if inspect.isfunction(method)}
    for of_its_own in ("__init__", "_serialize"):
        del theirs[of_its_own]
    ours = {name for name, method in vars(FinishedBatch).items() if inspect.isfunction(method)}
    assert ours >= set(theirs)
    inspect.signature(theirs["_set_producer_state"]).bind(None, 1, 2, 3)  # id, epoch, first sequence number
    assert all(hasattr(AIOKafkaClient, name) for name in ("add_topic", "set_topics"))
    assert all(hasattr(AIOKafkaProducer, name) for name in ("partitions_for", "send_batch"))


def test_a_refusal_for_size_names_the_topic_and_the_limit() -> None:
    """A topic that takes smaller records than ours is a matter of its settings, not of a server that failed."""

    async def refused() -> None:
        sent = asyncio.get_running_loop().create_future()
        sent.set_exception(MessageSizeTooLargeError())
        await acknowledged(RecordBatch("alerts", 0, 1, bytes(5000), "lz4"), sent)

    with pytest.raises(RecordsTooLarge) as error:
        asyncio.run(refused())
    assert 'topic "alerts" refuses records for their size' == error.value.message
    assert "max.message.bytes" in (error.value.hint or "")


def test_a_request_without_an_answer_fails() -> None:
    """A producer that has lost track of a request holds up its stream for a bounded time."""
    future: Future[None] = Future()
    with pytest.raises(OperationalError, match="no answer for 0.01 s"):
        answer(future, 0.01)
    future.set_exception(KafkaError("refused"))
    with pytest.raises(OperationalError, match="refused"):
        answer(future, 0.01)
