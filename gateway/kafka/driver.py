"""The driver: options of all its clients, the mapping of its errors, and retries of calls."""

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
"""Longest wait for an answer from Kafka."""
QUESTION_SECONDS = 3.0
"""Longest wait for an answer to a question that can be repeated."""

LARGEST_RECORD = 16 << 20
"""Bytes of the largest record of the gateway's own topics: the longest statement, escaped twice, and its constants."""

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
"""Answers of a broker about a topic made a moment ago, also when asked for offsets."""


FITTING_BYTES = LARGEST_RECORD - (64 << 10)
"""Bytes of key, value and headers of a record: the record's frame must fit too."""


class KafkaUnavailable(OperationalError):
    """Kafka did not carry out a request."""


class RecordTooLarge(OperationalError):
    """Kafka refuses a record for its size; another try fails too."""


class ProducerFenced(OperationalError):
    """Kafka refuses this client's writes, since a later client has its transactional id, or its transaction expired.

    The later client may belong to this gateway; only the lease tells whether another gateway has taken over.
    """


@contextmanager
def mapped(doing: str) -> Iterator[None]:
    """Turn the driver's errors into `ProducerFenced`, `RecordTooLarge` and `KafkaUnavailable`."""
    try:
        try:
            yield
        except SystemError as error:
            # After a fatal error, the driver calls delivery reports with the error still pending, which Python refuses.
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
    """Return the client options: the raw options of the settings, overridden by the typed options."""
    named = {name.replace("_", "."): value for name, value in typed.items()}
    return with_quiet_log({**client_options(settings.kafka), **named})


def reader_config(settings: Settings, group_id: str, **typed: object) -> dict[str, Any]:
    """Return the options of a consumer that reads partitions from given offsets, and reports their ends."""
    return client_config(
        settings,
        group_id=group_id,
        enable_auto_commit=False,
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        **typed,
    )


def error_code(error: BaseException) -> int | None:
    """Return the driver's code of an error; None for other errors."""
    cause = error.args[0] if isinstance(error, KafkaException) else None
    return cause.code() if isinstance(cause, KafkaError) else None


def is_late(error: Exception) -> bool:
    """Tell whether an error says that Kafka did not answer in time."""
    return isinstance(error, TimeoutError) or error_code(error) in _LATE


retriable = tenacity.Retrying(
    retry=tenacity.retry_if_exception(lambda error: error_code(error) in NOT_YET),
    wait=tenacity.wait_fixed(0.02),
    stop=tenacity.stop_after_delay(ANSWER_SECONDS),
    reraise=True,
)
"""Repeats calls that fail only because a topic was made a moment ago."""
