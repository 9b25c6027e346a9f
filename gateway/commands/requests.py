"""Records of `cq.commands` as requests. A record that is no command is answered, or put on `cq.deadletters`, here."""

from __future__ import annotations

import msgspec

from gateway.commands.dead_letters import LONGEST_KEY, command_letter
from gateway.commands.rates import CommandRates
from gateway.commands.replies import Replies
from gateway.kafka import LARGEST_RECORD, Record
from gateway.metrics import COMMANDS, DEAD_LETTERS
from gateway.state.command_ids import CommandIds
from grouping.model.errors import InputError
from grouping.settings import Settings
from schemas.codec import Command, MalformedCommand, decode_command

__all__ = ["Request", "RequestReader"]

_KEY_BYTES = 4096
"""Of the longest subscriber's name."""


class Request(msgspec.Struct, frozen=True):
    """A command record after decoding."""

    record: Record
    key: bytes
    """The subscriber's name as the record has it."""
    command: Command
    remember: bytes
    """The key of the command's id."""
    refusal: InputError | None
    """Why the command is refused before its text is looked at."""

    @property
    def position(self) -> str:
        """The command's own place on its topic."""
        return f"{self.record.partition}/{self.record.offset}"


class RequestReader:
    """Decodes command records."""

    def __init__(self, settings: Settings) -> None:
        self._letters = settings.topics.deadletters
        self._rates = CommandRates(settings.limits.commands_per_second)

    def read(self, record: Record, replies: Replies, now_ms: int) -> Request | None:
        """Return the request that a record is, None where the record is answered already.

        Args:
            record: The record.
            replies: They take the answer to a record that is no command, or not its subscriber's.
            now_ms: The present.
        """
        key = record.key
        try:
            command = _command(key, record.value)
        except MalformedCommand as error:
            self._refuse_malformed(record, replies, error)
            return None
        assert key, "a command has one"
        if command.subscriber.encode("utf-8", "surrogatepass") != key:
            refusal = InputError(
                f'the subscriber "{_clip(command.subscriber)}" is not the record\'s key',
                code="not-allowed",
                detail=f'The key is "{_clip(_text(key))}".',
                hint="Send the command with the subscriber's name as the record's key.",
            )
            replies.add(key, command.encoding, replies.reject(command.command_id, _text(key), refusal))
            return None
        remember = CommandIds.key(key, command.command_id)
        return Request(record, key, command, remember, self._rates.refusal(key, now_ms))

    def _refuse_malformed(self, record: Record, replies: Replies, error: MalformedCommand) -> None:
        key = record.key
        if key and len(key) <= LONGEST_KEY:
            refusal = InputError(
                "the record is no command",
                code="malformed-command",
                detail=error.detail,
                hint="Send an object with command_id, subscriber and text.",
            )
            replies.add(key, error.encoding, replies.reject(error.command_id, _text(key), refusal))
        else:
            COMMANDS.labels("malformed-command").inc()
        DEAD_LETTERS.labels("malformed-command").inc()
        source = f"{record.topic}/{record.partition}/{record.offset}"
        replies.add_letter(command_letter(self._letters, source, error.detail, key, record.value))


def _command(key: bytes | None, value: bytes | None) -> Command:
    """Return the command that a record is.

    Raises:
        MalformedCommand: It is none; a key that is longer than any name is a fault of its own, for replies repeat it.
    """
    if value is not None and len(value) > LARGEST_RECORD:
        raise MalformedCommand(f"The record has {len(value)} bytes; it may have {LARGEST_RECORD}.")
    command = decode_command(value)
    if not key:
        raise MalformedCommand("The record has no key.", encoding=command.encoding)
    if len(key) > _KEY_BYTES:
        raise MalformedCommand(
            f"Its key has {len(key)} bytes; it may have {_KEY_BYTES}.",
            encoding=command.encoding,
            command_id=command.command_id,
        )
    return command


def _text(key: bytes) -> str:
    return key.decode("utf-8", "replace")


def _clip(name: str) -> str:
    return name if len(name) <= 100 else name[:100] + "…"
