"""Repeated commands: their first replies, looked up together for a unit of work.

A client that misses replies may send thousands of commands again. The gateway reads the first replies of these commands
from Kafka. All other commands wait meanwhile, so both the time and the number of bytes of the reading are limited. If
the first reply to a command is not read within these limits, the command gets the reply `unavailable`, which is not
remembered, and the client may send the command again.
"""

from __future__ import annotations

from collections.abc import Container
from concurrent.futures import Future

from gateway.kafka import Place, PlaceReader
from grouping.model.errors import InputError
from grouping.model.wording import counted
from schemas.codec import Reply, decode_reply

__all__ = ["ANSWER_SECONDS", "Repeats"]

ANSWER_SECONDS = 2.0
"""The longest time, in seconds, for which the first replies of one unit of work are read."""


class Repeats:
    """The commands of a unit of work that were answered by earlier units, by the keys of their ids."""

    def __init__(self, reader: PlaceReader, looked_up: Future[dict[bytes, Place]], most_bytes: int) -> None:
        """Prepare to read.

        Args:
            reader: Reads the topic of replies.
            looked_up: Key of a command's id → the place of the first reply; another thread looks the places up.
            most_bytes: Reading ends when the replies that were read have this many bytes.
        """
        self._reader = reader
        self._looked_up = looked_up
        self._most_bytes = most_bytes
        self._places: dict[bytes, Place] | None = None
        self._values: dict[Place, bytes] = {}
        self.size = 0
        """Bytes of the replies that were read."""

    def read(self) -> None:
        """Read the first replies; only the first call reads. The replies of all earlier units must be on Kafka.

        Raises:
            OperationalError: Kafka failed.
        """
        if self._places is not None:
            return
        self._places = dict(self._looked_up.result())
        gone: set[Place] = set()
        if self._places:
            for place, record in self._reader.read(self._places.values(), ANSWER_SECONDS):
                value = None if record is None else record.value
                if value is not None:
                    self._values[place] = value
                    self.size += len(value)
                    if self.size > self._most_bytes:
                        break
                else:
                    gone.add(place)
        self._places = {key: place for key, place in self._places.items() if place not in gone}

    @property
    def keys(self) -> Container[bytes | None]:
        """The keys of repeated commands; a command whose first reply no longer exists counts as new."""
        assert self._places is not None, "the caller has read"
        return self._places.keys()

    def reply(self, key: bytes) -> Reply | None:
        """Return the first reply to a command, None for a new command.

        Raises:
            InputError: ``unavailable``; the first reply was not read within the limits.
        """
        assert self._places is not None, "the caller has read"
        place = self._places.get(key)
        if place is None:
            return None
        value = self._values.get(place)
        if value is None:
            again = counted(len(self._places), "command")
            raise InputError(
                "the command's first reply could not be looked up in time",
                code="unavailable",
                detail=f"{again} were repeated at the same time. No command is carried out twice.",
                hint="Send the command again with the same command_id.",
            )
        return decode_reply(value)
