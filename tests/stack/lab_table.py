"""Tables of a test on the stack."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from tests.stack.lab import Lab

__all__ = ["LabTable"]

_NUMBERS = count()


class LabTable:
    """A table on a topic of its own. The table is removed with the stack, unless a test drops it."""

    def __init__(self, lab: Lab, columns: str, *, partitions: int = 1, form: str = "json") -> None:
        self._lab = lab
        self.name = f"table_{lab.token}_{next(_NUMBERS)}"
        self.topic = f"{self.name}-topic"
        options = f"topic = '{self.topic}', format = '{form}', partitions = {partitions}"
        ddl = f"CREATE TABLE {self.name} ({columns}) WITH ({options})"
        self.created: dict[str, Any] = lab.client.result(ddl, lab.subscriber("owner"))

    def put(self, *rows: dict[str, Any]) -> None:
        """Publish rows, and return when Kafka has them."""
        self.write(*((None, json.dumps(row).encode()) for row in rows))

    def write(self, *records: tuple[str | None, bytes | None], partition: int = 0) -> None:
        """Publish records as they are, and return when Kafka has them."""
        self._lab.client.publish_all(self.topic, [(value, key, partition, 0) for key, value in records])

    def described(self) -> dict[str, Any]:
        """Return the answer of DESCRIBE TABLE."""
        answer: dict[str, Any] = self._lab.client.result(f"DESCRIBE TABLE {self.name}", self._lab.subscriber("owner"))
        return answer

    def drop(self) -> None:
        """Drop the table; the drop must be accepted."""
        self._lab.client.result(f"DROP TABLE {self.name}", self._lab.subscriber("owner"))
