"""Kafka's refusals to make, read or delete a topic, as error codes of the gateway."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from gateway.kafka.driver import error_code
from grouping.model.errors import OperationalError

__all__ = ["FORBIDDEN", "KEPT", "TopicRefusal", "refusal_of", "unreadable"]

FORBIDDEN = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_REFUSALS: dict[int | None, str] = {
    **dict.fromkeys((KafkaError.TOPIC_EXCEPTION, KafkaError.INVALID_CONFIG, *FORBIDDEN), "not-allowed"),
    KafkaError.INVALID_PARTITIONS: "quota-exceeded",
    KafkaError.POLICY_VIOLATION: "quota-exceeded",
    KafkaError.THROTTLING_QUOTA_EXCEEDED: "quota-exceeded",
    KafkaError.INVALID_REPLICATION_FACTOR: "unavailable",
}
"""Kafka's error code → the gateway's code (docs/commands.md) for a refused topic."""
KEPT = (
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_DELETION_DISABLED,
    KafkaError.INVALID_REQUEST,
    *FORBIDDEN,
)
"""Kafka's error codes that mean that Kafka refuses to delete a topic."""


class TopicRefusal(OperationalError):
    """Kafka refuses to make or read a topic; `detail` has the reason.

    Attributes:
        code: The code of docs/commands.md for the refusal.
    """

    def __init__(self, message: str, *, code: str, detail: str) -> None:
        super().__init__(message, detail=detail)
        self.code = code


def refusal_of(topic: str, error: KafkaException) -> TopicRefusal | None:
    """Return an error of the driver as the refusal to make a topic; None if the error is not a refusal."""
    code = _REFUSALS.get(error_code(error))
    if code is None:
        return None
    return TopicRefusal(f'topic "{topic}" cannot be made', code=code, detail=_reason(error))


def unreadable(what: str, error: KafkaException) -> TopicRefusal:
    """Return the refusal to read a topic or its configuration, for one of the errors `FORBIDDEN`.

    Args:
        what: The topic or its configuration, for the message.
        error: The error.
    """
    return TopicRefusal(f"{what} cannot be read", code="not-allowed", detail=_reason(error))


def _reason(error: KafkaException) -> str:
    cause = error.args[0]
    return f"Kafka says: {cause.str() if isinstance(cause, KafkaError) else cause}"
