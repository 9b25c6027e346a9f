"""How a worker's producer is told of the cluster."""

from __future__ import annotations

import ssl

import pytest

from grouping.settings import KafkaSettings, Settings
from spark_jobs.kafka.record_writer import producer_options


def _options(**extra: str) -> dict:
    named = {name.replace("_", "."): value for name, value in extra.items()}
    return producer_options(Settings(kafka=KafkaSettings(bootstrap="a:1,b:2", extra=named)))


def test_what_is_written_is_acknowledged_and_written_once() -> None:
    """Whatever else is set, and what aiokafka does not know is left to the other clients."""
    expected = {"bootstrap_servers": "a:1,b:2", "acks": "all", "enable_idempotence": True}
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
