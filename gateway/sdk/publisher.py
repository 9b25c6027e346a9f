"""Publishing records: events to a stream's topic as JSON, and rows of tables."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gateway.sdk.errors import TransportError
from gateway.sdk.sender import Sender

__all__ = ["Publisher"]

_encode = msgspec.json.Encoder().encode


class Publisher:
    """Writes rows to topics. Its connection is made with the first row; safe to call from several threads."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str]) -> None:
        self._bootstrap = bootstrap
        self._extra = extra
        self._sender: Sender | None = None
        self._troubles: list[TransportError] = []
        self._lock = threading.Lock()

    def publish(self, topic: str, rows: Iterable[Mapping[str, Any]], *, key: str | None, timeout: float) -> int:
        """Write rows and wait until Kafka has them; returns how many.

        Args:
            topic: The stream's topic.
            rows: Column → value; times and dates become ISO 8601, decimals strings.
            key: The column whose value is the record's key; without one records spread over partitions.
            timeout: Seconds to wait for Kafka at the end.

        Raises:
            TransportError: Some rows were not written.
        """
        records = ((None if key is None else str(row[key]).encode(), _encode(row)) for row in rows)
        return self.write(topic, records, timeout=timeout)

    def write(self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]], *, timeout: float) -> int:
        """Write records, each a key and a value, and wait until Kafka has them; returns how many.

        Raises:
            TransportError: Some records were not written.
        """
        count = 0
        with self._lock:
            self._troubles.clear()
            if self._sender is None:
                self._sender = Sender(self._bootstrap, self._extra, failed=self._note)
            for key, value in records:
                while not self._sender.send(topic, value, key=key):
                    self._sender.serve(0.1)
                count += 1
            unwritten = self._sender.flush(timeout)
            troubles = self._troubles[:1]
        if troubles:
            raise troubles[0]
        if unwritten:
            raise TransportError(f'{unwritten} records for "{topic}" were not written within {timeout:g} s')
        return count

    def _note(self, _: bytes, error: TransportError) -> None:
        self._troubles.append(error)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._sender is not None:
                self._sender.close()
                self._sender = None
