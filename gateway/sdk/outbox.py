"""The outbox: commands to send, commands that wait for a reply, and commands to send again. No I/O."""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from gateway.sdk.errors import CommandRejection, NoReply, TransportError, rejection
from gateway.sdk.results import Reply

__all__ = ["Outbox", "CommandUnderWay"]

_RETRY_SECONDS = 1.0
"""How long after a reply `unavailable` the command is sent again."""

_TICK_SECONDS = 0.2
"""The shortest time between two checks of the deadlines of all commands. With tens of thousands of commands under way,
a check after each reply would be too slow."""


_NO_HEADERS: Mapping[str, bytes] = MappingProxyType({})


_OF_ANY_SENDER = frozenset({"not-allowed", "malformed-command"})
"""Codes of refusals that may answer another client's record with the id of this client's command."""
_OF_A_CQ = re.compile(
    r"""\s*+(?:CREATE(?:\s++OR\s++REPLACE)?+|ALTER|DROP|PAUSE|RESUME)\s++CQ\s++(?:IF\s++(?:NOT\s++)?+EXISTS\s++)?+"""
    r"""(?:"((?:[^"]|"")*+)"|`((?:[^`]|``)*+)`|([^\s;]++))""",
    re.I,
)
"""The beginning of a statement that changes a CQ, up to the name of the CQ."""
_decode_reply = msgspec.json.Decoder(Reply).decode
_encode = msgspec.json.Encoder().encode


class CommandUnderWay:
    """A command and, once known, its outcome."""

    __slots__ = (
        "command_id", "cq", "deadline", "error", "headers", "number", "places", "postponed", "record", "reply",
        "sendings", "text", "timeout", "unplaced",
    )  # fmt: skip

    def __init__(
        self,
        command_id: str,
        text: str,
        record: bytes,
        headers: Mapping[str, bytes],
        *,
        number: int,
        now: float,
        timeout: float,
    ) -> None:
        self.command_id = command_id
        self.number = number
        """The command's place among the commands of its outbox, in their order."""
        self.text = text
        found = _OF_A_CQ.match(text)
        self.cq = "" if found is None else (found[1] or found[2] or found[3] or "").casefold()
        """The folded name of the CQ that the statement changes; empty for other statements."""
        self.record = record
        """The value of the record on `cq.commands`."""
        self.headers = headers
        """The record's headers, without the token."""
        self.timeout = timeout
        self.deadline = now + timeout
        self.postponed: Reply | None = None
        """The last reply `unavailable` to the command."""
        self.sendings = 0
        """How often the record was handed to the driver."""
        self.places: list[str | None] = []
        """The places (partition and offset) of the command's records on `cq.commands` that the driver has reported;
        None for an unknown offset."""
        self.unplaced: dict[str, Reply] = {}
        """Place of a refused record → the refusal, for places that the driver has not reported yet."""
        self.reply: Reply | None = None
        self.error: TransportError | None = None

    @property
    def done(self) -> bool:
        """Whether the outcome is known."""
        return self.reply is not None or self.error is not None

    def outcome(self) -> Reply | CommandRejection:
        """Return the reply, or the rejection as a value.

        Raises:
            TransportError: No reply came in time (`NoReply`), or Kafka refused the record.
        """
        if self.error is not None:
            raise self.error
        if self.reply is None:
            raise TransportError(f'command "{self.command_id}" has no outcome yet')
        reply = self.reply
        if reply.accepted:
            return reply
        error = rejection(reply.code, reply.message, command_id=self.command_id, detail=reply.detail, hint=reply.hint)
        error.reply = reply
        return error


class Outbox:
    """The commands of one subscriber, in their order. Two threads must not use an outbox at the same time.

    To ask for a missing reply, the outbox sends the command with the same id again: the gateway never carries out two
    commands with the same id. After `silence` seconds without any reply, all unanswered commands are sent again in
    their order. Each further wait without a reply is twice as long as the wait before, so a gateway that was away for
    long does not find very many repeats. Any reply ends the silence, so a long queue at the gateway causes no repeats.

    A command with the reply `unavailable` is sent again a second later. Until then no later command is sent. If a later
    command that changes the same CQ was already sent, `unavailable` is the command's outcome: a repeat would be carried
    out after the later command.
    """

    def __init__(self, subscriber: str, *, clock: Callable[[], float], silence: float = 15.0) -> None:
        self._subscriber = subscriber
        self._clock = clock
        self._silence = self._patience = silence
        self._pending: dict[str, CommandUnderWay] = {}
        self._unsent: deque[CommandUnderWay] = deque()
        self._submitted = 0
        """The number of commands that were submitted."""
        self._latest: dict[str, int] = {}
        """Name of a CQ → the number of the latest command that changes the CQ, was sent, and waits for its outcome."""
        self._postponed: dict[str, CommandUnderWay] = {}
        """Id → command, for the commands that wait until they are sent again after a reply `unavailable`."""
        self._retry_at = 0.0
        self._heard_at = clock()
        self._next_tick_at = clock()

    def __len__(self) -> int:
        """The number of commands whose outcome is not known yet."""
        return len(self._pending)

    def submit(
        self,
        text: str,
        *,
        timeout: float,
        command_id: str | None = None,
        headers: Mapping[str, bytes] = _NO_HEADERS,
    ) -> CommandUnderWay:
        """Queue a statement as a command. If a command with this id still waits for its outcome, return this command.

        Args:
            text: The statement.
            timeout: Seconds until the command is given up without a reply.
            command_id: The id of a command to send again; None makes a new id.
            headers: Headers of the record, without the token.
        """
        if command_id is None:
            command_id = secrets.token_hex(16)
        elif command_id in self._pending:
            return self._pending[command_id]
        now = self._clock()
        if not self._pending:
            self._heard_at, self._patience = now, self._silence
        record = _encode({"command_id": command_id, "subscriber": self._subscriber, "text": text})
        self._submitted += 1
        number = self._submitted
        pending = CommandUnderWay(command_id, text, record, headers, number=number, now=now, timeout=timeout)
        self._pending[command_id] = pending
        self._unsent.append(pending)
        return pending

    def unsent(self) -> Iterator[CommandUnderWay]:
        """Yield the queued commands in order. A command leaves the queue when the caller asks for the next one."""
        while self._unsent and not self._postponed:
            pending = self._unsent[0]
            if not pending.done:
                yield pending
                if pending.cq:
                    self._latest[pending.cq] = max(pending.number, self._latest.get(pending.cq, 0))
            self._unsent.popleft()

    def answer(self, value: bytes, place: bytes | None = None) -> None:
        """Take in a reply. A reply to another client, or a value that is not JSON, is ignored.

        A refusal is also ignored if this outbox did not send the refused record. Any reader of `cq.commands` can write
        a second record with the name and the id of a command, but this record has another place. If Kafka has not told
        the place of a record of the command, every refusal with the command's id counts.

        Args:
            value: The reply's value.
            place: The place of the answered record, from the reply's header; None from older gateways.
        """
        try:
            reply = _decode_reply(value)
        except msgspec.DecodeError:
            return
        pending = self._pending.get(reply.command_id or "")
        if pending is None:
            return
        if place is not None and reply.code in _OF_ANY_SENDER and None not in pending.places:
            where = place.decode()
            if where not in pending.places:
                if len(pending.places) < pending.sendings:
                    pending.unplaced[where] = reply
                return
        self._settle(pending, reply)

    def _settle(self, pending: CommandUnderWay, reply: Reply) -> None:
        now = self._clock()
        self._heard_at, self._patience = now, self._silence
        is_latest = pending.number >= self._latest.get(pending.cq, 0)
        if reply.code == "unavailable" and is_latest and now + _RETRY_SECONDS < pending.deadline:
            if not self._postponed:
                self._retry_at = now + _RETRY_SECONDS
            self._postponed[pending.command_id], pending.postponed = pending, reply
            return
        pending.reply = reply
        self._end(pending)

    def _end(self, pending: CommandUnderWay) -> None:
        self._pending.pop(pending.command_id, None)
        if self._latest.get(pending.cq) == pending.number:
            del self._latest[pending.cq]

    def note_delivery(self, pending: CommandUnderWay, outcome: str | None | TransportError) -> None:
        """Note the place of a command's record, or the reason why the record will never be written.

        The place is None if the record was written at an unknown offset.
        """
        if pending.done:
            return
        if isinstance(outcome, TransportError):
            self.refuse(pending, outcome)
            return
        pending.places.append(outcome)
        reply = next(iter(pending.unplaced.values()), None) if outcome is None else pending.unplaced.pop(outcome, None)
        if reply is not None:
            self._settle(pending, reply)

    def refuse(self, pending: CommandUnderWay, error: TransportError) -> None:
        """Note that a command is given up, and why."""
        pending.error = error
        self._end(pending)

    def tick(self) -> None:
        """Give up commands whose deadline has passed, and queue the commands that are due to be sent again.

        The method may be called often: it does nothing until `_TICK_SECONDS` after the last check.
        """
        now = self._clock()
        if now < self._next_tick_at:
            return
        self._next_tick_at = now + _TICK_SECONDS
        if now - self._heard_at >= self._patience:
            self._heard_at, self._patience = now, 2 * self._patience
            self._unsent, self._postponed = deque(self._pending.values()), {}
        for pending in list(self._pending.values()):
            if now >= pending.deadline:
                self.refuse(pending, NoReply(pending.command_id, pending.timeout, pending.postponed))
        if self._postponed and now >= self._retry_at:
            latest_first = sorted(self._postponed.values(), key=lambda each: each.number, reverse=True)
            self._unsent.extendleft(latest_first)
            self._postponed = {}
