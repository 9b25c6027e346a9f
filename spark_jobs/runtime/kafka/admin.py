"""The admin client of an evaluator's process; it is replaced by a new client if Kafka does not answer in time."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from grouping.process.broker_errors import with_quiet_log
from grouping.process.renewed import RenewedClient
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings

__all__ = ["ANSWER_SECONDS", "QUESTION_SECONDS", "Admin", "is_late", "open_admin"]

ANSWER_SECONDS = 10.0
"""How long a caller waits for an answer of Kafka in all, including a second request by a new client."""
QUESTION_SECONDS = 3.0
"""How long a single request may take."""

Admin = RenewedClient[AdminClient]
_LATE = (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)  # noqa: SLF001  # the driver's own codes begin with "_"


def open_admin(settings: Settings) -> Admin:
    """Return an admin client, which connects at its first use."""
    return RenewedClient(lambda: AdminClient(with_quiet_log(client_options(settings.kafka))), is_late)


def is_late(error: Exception) -> bool:
    """Tell whether an error means that the asked broker, or a broker that it asked in turn, did not answer in time.

    Example:
        >>> is_late(KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))), is_late(KafkaException("closed"))
        (True, False)
    """
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        return error.args[0].code() in _LATE
    return isinstance(error, TimeoutError)
