"""Publishing records: events to a stream's topic as JSON, and rows of tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gateway.sdk.errors import ClientClosed, TransportError
from gateway.sdk.sender import Sender

__all__ = ["DeliveryReports", "Publisher"]

_encode = msgspec.json.Encoder().encode

_NEW_TOPIC_SECONDS = 2.0
"""How long a broker may not know a topic that was created through another broker."""
_SERVE_EVERY = 1_000
"""Delivery reports are taken in after this many records, so that counts and errors are known soon."""
_SERVE_SECONDS = 0.1
"""How long a single wait for delivery reports lasts. A wait must be short, so that Python notices Ctrl-C."""


class Publisher:
    """Writes rows to topics; several threads may call it at once. The publisher connects at the first row."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str]) -> None:
        self._bootstrap = bootstrap
        self._extra = extra
        self._sender: Sender | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._topics: set[str] = set()
        """Topics that are known to exist."""

    def publish(self, topic: str, rows: Iterable[Mapping[str, Any]], *, key: str | None, timeout: float) -> int:
        """Write rows, wait until Kafka has them, and return the number of rows.

        Args:
            topic: The stream's topic.
            rows: Column → value. Times and dates are written as texts of ISO 8601, decimals as texts too.
            key: The column whose value becomes the record's key; without a key, records are spread over partitions.
            timeout: Seconds to wait for Kafka after the last row was queued.

        Raises:
            TransportError: Some rows were not written.
        """
        records = ((None if key is None else str(row[key]).encode(), _encode(row)) for row in rows)
        return self.write(topic, records, timeout=timeout)

    def write(
        self,
        topic: str,
        records: Iterable[tuple[bytes | None, bytes | None]],
        *,
        timeout: float,
        delivery: DeliveryReports | None = None,
    ) -> int:
        """Write records, wait until Kafka has them, and return the number of records.

        Args:
            topic: The topic.
            records: Pairs of a key and a value. After an error, no further records are consumed. If `records` itself
                raises an error, the earlier records are written before the error goes on.
            timeout: Seconds to wait for Kafka after the last record was queued.
            delivery: Counts the records. A caller passes it to see the counts during the call, or after an error.

        Raises:
            TransportError: Some records were not written.
        """
        sender, until = self._open(), time.monotonic() + timeout
        self._check_topic(sender, topic, timeout)
        delivery = delivery or DeliveryReports()
        try:
            for key, value in records:
                delivery.begin()
                try:
                    while not sender.send(topic, value, delivery.end, key=key):
                        sender.serve(_SERVE_SECONDS)
                except TransportError as error:
                    delivery.end(error)
                until = time.monotonic() + timeout
                if delivery.count % _SERVE_EVERY == 0:
                    sender.serve(0.0)
                if delivery.error is not None:
                    break
        except Exception:
            # The caller may close the connection then, which gives up records without a report.
            _await_reports(sender, delivery, until)
            raise
        _await_reports(sender, delivery, until)
        if delivery.error is not None:
            self._topics.discard(topic)
            raise delivery.error
        if delivery.unwritten:
            raise TransportError(f'{delivery.unwritten} records for "{topic}" were not written within {timeout:g} s')
        return delivery.count

    def _open(self) -> Sender:
        with self._lock:
            if self._closed:
                raise ClientClosed("the client was closed")
            if self._sender is None:
                self._sender = Sender(self._bootstrap, self._extra)
            return self._sender

    def _check_topic(self, sender: Sender, topic: str, timeout: float) -> None:
        """Check that a topic exists. Without this check, the driver would look for a missing topic for half a minute.

        Raises:
            TransportError: The topic does not exist, or Kafka cannot be reached.
        """
        until = time.monotonic() + min(timeout, _NEW_TOPIC_SECONDS)
        while topic not in self._topics:
            if sender.knows(topic, timeout):
                self._topics.add(topic)
            elif time.monotonic() >= until:
                raise TransportError(
                    f'topic "{topic}" does not exist',
                    detail="No record was written.",
                    hint="CREATE STREAM with partitions = … makes the topic.",
                )
            else:
                sender.serve(_SERVE_SECONDS)

    def close(self) -> None:
        """Close the connection; records that are not written yet are dropped."""
        with self._lock:
            self._closed = True
            if self._sender is not None:
                self._sender.close()
                self._sender = None


def _await_reports(sender: Sender, delivery: DeliveryReports, until: float) -> None:
    """Wait for the delivery reports of all records, at most until a time of the monotonic clock."""
    while delivery.unwritten and time.monotonic() < until:
        sender.serve(_SERVE_SECONDS)


class DeliveryReports:
    """Counts the delivery reports of one call. The thread of another call may take in these reports."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0
        """The number of records that were handed to the driver."""
        self.unwritten = 0
        """The number of records without a report."""
        self.written = 0
        """The number of records that Kafka has."""
        self.error: TransportError | None = None
        """The error of the first record that failed; None if no record failed."""

    def begin(self) -> None:
        """Count a record that is handed to the driver."""
        with self._lock:
            self.count += 1
            self.unwritten += 1

    def end(self, outcome: str | None | TransportError) -> None:
        """Count a delivery report."""
        with self._lock:
            self.unwritten -= 1
            self.written += not isinstance(outcome, TransportError)
            if self.error is None and isinstance(outcome, TransportError):
                self.error = outcome
