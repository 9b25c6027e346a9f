"""The replies of a unit of work: one for each command, in their order."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import lru_cache

from gateway.commands.requests import Request
from gateway.kafka import OutgoingRecord
from gateway.metrics import COMMANDS, DEAD_LETTERS
from gateway.state.command_ids import NOT_REMEMBERED
from grouping.model.errors import InputError
from schemas.codec import Reply, decode_reply, encode_reply
from schemas.partition import partition_of
from schemas.topic_names import COMMAND_PLACE_HEADER

__all__ = ["Replies"]

_RETRIED = ("unavailable", "malformed-command", "not-allowed")
"""Codes of refusals that are not always remembered. If a refusal is not remembered, the command may be sent again with
the same id."""


class Replies:
    """Gathers the replies and dead letters of a unit of work."""

    def __init__(self, topic: str, partitions: int, now_ms: int) -> None:
        """Start without replies.

        Args:
            topic: The topic of replies.
            partitions: The number of the topic's partitions.
            now_ms: When the commands are answered, epoch milliseconds.
        """
        self._topic = topic
        self._partitions = partitions
        self._places: dict[bytes, int] = {}
        self._now_ms = now_ms
        self._codes: Counter[str] = Counter()
        self._letters = 0
        self.records: list[OutgoingRecord] = []
        self.size = 0
        """Bytes of the replies and dead letters so far."""
        self.to_remember: dict[int, bytes] = {}
        """Index in `records` of a first reply → the key of the command's id."""
        self._first: dict[bytes, int] = {}
        """The reverse of `to_remember`: key of a command's id → index in `records` of its first reply."""

    def first(self, remember: bytes) -> Reply | None:
        """Return the first reply to a command in this unit, by the key of the command's id; None without a reply."""
        number = self._first.get(remember)
        if number is None:
            return None
        value = self.records[number].value
        assert value is not None, "a reply is no tombstone"
        return decode_reply(value)

    def accept(self, command_id: str | None, subscriber: str, message: str, result: object, at_ms: int) -> Reply:
        """Return the reply to a command that was carried out at an instant (epoch milliseconds)."""
        return Reply(
            command_id=command_id,
            subscriber=subscriber,
            status="accepted",
            code="ok",
            message=message,
            result=result,
            replied_at=_time(at_ms),
        )

    def reject(self, command_id: str | None, subscriber: str, error: InputError) -> Reply:
        """Return the reply to a command that cannot be carried out."""
        return Reply(
            command_id=command_id,
            subscriber=subscriber,
            status="rejected",
            code=error.code,
            message=error.message,
            detail=error.detail,
            hint=error.hint,
            replied_at=_time(self._now_ms),
        )

    def add(self, request: Request, reply: Reply, *, repeated: bool = False) -> None:
        """Add the reply to a request, and the dead letter of a record that is not a command.

        Args:
            request: The request to answer.
            reply: The answer; a reply with the code `unavailable` does not count as the first reply.
            repeated: Whether the command is a repetition, and the answer its first reply.
        """
        key, remember = request.record.key, None if repeated else request.remember
        self._codes[reply.code] += 1
        if key and request.answerable:
            headers: tuple[tuple[str, bytes], ...] = ((COMMAND_PLACE_HEADER, request.record.position.encode()),)
            if reply.command_id:
                headers = (("command_id", reply.command_id.encode("utf-8", "surrogatepass")), *headers)
            if remember is not None and reply.code != "unavailable":
                self._first[remember] = len(self.records)
                self.to_remember[len(self.records)] = remember
            elif reply.code in _RETRIED:
                headers = (*headers, NOT_REMEMBERED)
            partition = self._places.get(key)
            if partition is None:
                partition = self._places[key] = partition_of(key, self._partitions)
            value = encode_reply(reply, request.encoding)
            self.size += len(value)
            self.records.append(OutgoingRecord(self._topic, key, value, headers, partition))
        if (letter := request.letter) is not None:
            self.size += len(letter.key or b"") + len(letter.value or b"")
            self.records.append(letter)
            self._letters += 1

    def count(self) -> None:
        """Count the replies in the metrics; to be called after the unit is written."""
        for code, number in self._codes.items():
            COMMANDS.labels(code).inc(number)
        DEAD_LETTERS.labels("malformed-command").inc(self._letters)


@lru_cache(maxsize=64)
def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
