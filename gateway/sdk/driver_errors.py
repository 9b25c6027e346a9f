"""Turns errors of librdkafka into the SDK's errors."""
# ruff: noqa: SLF001  librdkafka's own codes begin with an underscore; they are public

from __future__ import annotations

import logging

from confluent_kafka import KafkaError, KafkaException

from gateway.sdk.errors import ResultsGone, TransportError

__all__ = ["CLIENT_OPTIONS", "deleted", "gone", "mapped", "passing", "thrown", "unknown"]

log = logging.getLogger(__name__)


_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})

_PASSING = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        # While brokers restart, the new leader of a partition does not know its high watermark and epoch yet.
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)


def _note(error: KafkaError) -> None:
    # librdkafka reconnects by itself. If it cannot, the deadlines of the SDK's calls report the failure.
    log.info("kafka connection error", extra={"error": error.str()})


CLIENT_OPTIONS = {"log_level": "2", "error_cb": _note, "socket.timeout.ms": 10_000}
"""Options of each Kafka client of the SDK.

By default, librdkafka writes its log and its errors to stderr. With these options, the SDK logs the errors instead. If
a broker does not answer for ten seconds, the client turns to the new leaders of the broker's partitions. librdkafka's
own default is 60 seconds.
"""


def passing(error: KafkaError) -> bool:
    """Tell whether an error passes by itself, because librdkafka tries again. A reader then only has to wait."""
    return error.code() in _PASSING


def deleted(error: KafkaError) -> bool:
    """Tell whether the records at the requested offset are no longer kept."""
    return error.code() == KafkaError._AUTO_OFFSET_RESET


def unknown(error: KafkaError) -> bool:
    """Tell whether a broker does not know the topic: the topic was deleted, or the broker has just started."""
    return error.code() in _GONE


def gone(doing: str, detail: str) -> ResultsGone:
    """Return the SDK's error for results that are not kept any more."""
    return ResultsGone(
        f"{doing}: the topic or its records were deleted",
        detail=detail,
        hint="Begin again without the cursor, or keep results longer (results.retention_hours).",
    )


def mapped(error: KafkaError, doing: str) -> TransportError:
    """Return the SDK's error for an error of the driver.

    Args:
        error: The error of librdkafka.
        doing: The attempted action, such as `reading "cq.results"`. The message begins with this text.
    """
    if deleted(error) or unknown(error):
        return gone(doing, f"{error.str()}.")
    if passing(error):
        return TransportError(
            f"{doing}: Kafka cannot be reached", detail=f"{error.str()}.", hint="Check the bootstrap address."
        )
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return TransportError(f"{doing}: the record is too large for Kafka", detail=f"{error.str()}.")
    return TransportError(f"{doing}: {error.name()}", detail=f"{error.str()}.")


def thrown(exc: KafkaException, doing: str) -> TransportError:
    """Return the SDK's error for an exception of the driver; see `mapped`."""
    error = exc.args[0]
    return mapped(error, doing) if isinstance(error, KafkaError) else TransportError(f"{doing}: {error}")
