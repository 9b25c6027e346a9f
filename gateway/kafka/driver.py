"""The Kafka driver: the options of all clients, the mapping of the driver's errors, and retries of calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tenacity
from confluent_kafka import KafkaError, KafkaException

from grouping.model.errors import OperationalError
from grouping.process.broker_errors import with_quiet_log
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings

__all__ = [
    "ALL_BROKERS_DOWN",
    "ANSWER_SECONDS",
    "END_OF_PARTITION",
    "FITTING_BYTES",
    "QUESTION_SECONDS",
    "LARGEST_RECORD",
    "NOT_YET",
    "ProducerFenced",
    "KafkaUnavailable",
    "RecordTooLarge",
    "client_config",
    "error_code",
    "is_late",
    "mapped",
    "retriable",
]

ANSWER_SECONDS = 30.0
"""The longest wait for an answer from Kafka, in seconds."""
QUESTION_SECONDS = 3.0
"""The longest wait for an answer from Kafka if the request can be repeated, in seconds."""

LARGEST_RECORD = 16 << 20
"""The largest size of a record on the gateway's own topics, in bytes. A record must have space for the longest
statement, escaped twice, and for its constants."""

# The driver's own codes, which have names with an underscore.
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)  # noqa: SLF001
_LATE = (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)  # noqa: SLF001
ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001
NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Error codes of a broker that does not know a topic or its offsets yet, because the topic was made a moment ago."""


FITTING_BYTES = LARGEST_RECORD - (64 << 10)
"""The largest size of a record's key, value and headers together, in bytes. The rest is for Kafka's own fields."""


class KafkaUnavailable(OperationalError):
    """Kafka did not carry out a request."""


class RecordTooLarge(OperationalError):
    """Kafka refuses a record because of its size. Another try would fail too."""


class ProducerFenced(OperationalError):
    """Kafka refuses a client's writes: a later client has taken the transactional id, or the transaction has expired.

    The later client may belong to the same gateway. Only the lease tells whether another gateway has taken over.
    """


@contextmanager
def mapped(doing: str) -> Iterator[None]:
    """Turn the driver's errors into `ProducerFenced`, `RecordTooLarge` and `KafkaUnavailable`."""
    try:
        try:
            yield
        except SystemError as error:
            # After a fatal error, the driver calls delivery reports while its own exception is still pending. Python
            # refuses such calls with a SystemError.
            if isinstance(error.__cause__, KafkaException):
                raise error.__cause__ from None
            raise
    except KafkaException as error:
        cause = error.args[0]
        if isinstance(cause, KafkaError) and cause.code() in _FENCED:
            raise ProducerFenced("kafka has fenced this client", detail=str(cause)) from error
        if isinstance(cause, KafkaError) and cause.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            raise RecordTooLarge(f"kafka refused a record for its size at {doing}", detail=str(cause)) from error
        raise KafkaUnavailable(f"kafka failed at {doing}", detail=str(cause)) from error
    except TimeoutError as error:  # A future raises this when a broker hangs
        raise KafkaUnavailable(f"kafka failed at {doing}", detail="Kafka did not answer in time.") from error


def client_config(settings: Settings, **typed: object) -> dict[str, Any]:
    """Return the options of a client: the options in the settings, overridden by the given options.

    The names of the given options have "_" in place of ".".
    """
    named = {name.replace("_", "."): value for name, value in typed.items()}
    return with_quiet_log({**client_options(settings.kafka), **named})


def reader_config(settings: Settings, group_id: str, **typed: object) -> dict[str, Any]:
    """Return the options of a consumer that reads partitions from given offsets on, and reports their ends."""
    return client_config(
        settings,
        group_id=group_id,
        enable_auto_commit=False,
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        **typed,
    )


def error_code(error: BaseException) -> int | None:
    """Return the driver's code of an error; None for an error that is not from the driver."""
    cause = error.args[0] if isinstance(error, KafkaException) else None
    return cause.code() if isinstance(cause, KafkaError) else None


def is_late(error: Exception) -> bool:
    """Tell whether an error means that Kafka did not answer in time."""
    return isinstance(error, TimeoutError) or error_code(error) in _LATE


retriable = tenacity.Retrying(
    retry=tenacity.retry_if_exception(lambda error: error_code(error) in NOT_YET),
    wait=tenacity.wait_fixed(0.02),
    stop=tenacity.stop_after_delay(ANSWER_SECONDS),
    reraise=True,
)
"""Repeats calls while they fail with a code in `NOT_YET`, that is, because a topic was made a moment ago."""
