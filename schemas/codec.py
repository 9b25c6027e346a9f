"""Commands and replies on the wire, in JSON and in Avro single-object encoding (docs/commands.md)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from schemas.single_object import MAGIC, SingleObject, load_schema

__all__ = [
    "Command",
    "Encoding",
    "LONGEST_NAME",
    "MalformedCommand",
    "Reply",
    "decode_command",
    "decode_reply",
    "encode_command",
    "encode_reply",
]

Encoding = Literal["json", "avro"]

Instant = Annotated[datetime, msgspec.Meta(tz=True)]


LONGEST_NAME = 1024
"""The largest number of characters of a command id, and of a subscriber's name. Each reply repeats both."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class _CommandFields(msgspec.Struct, frozen=True):
    """A command as a JSON object; unknown fields are ignored."""

    command_id: Annotated[str, msgspec.Meta(min_length=1)]
    subscriber: str
    text: str
    sent_at: Instant | int | None = None
    properties: dict[str, str] | None = None


class _CommandId(msgspec.Struct, frozen=True):
    """The id in a malformed command, which is all that the reply needs."""

    command_id: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


class Command(msgspec.Struct, frozen=True):
    """A statement of a subscriber."""

    command_id: str
    """The id that the sender has chosen: at most 1,024 characters, and not empty."""
    subscriber: str
    """The name of the subscriber: at most 1,024 characters, without control characters."""
    text: str
    encoding: Encoding = "json"
    """The encoding of the command and of its reply."""
    sent_at: datetime | None = None
    """When the command was sent, by the sender's clock."""
    properties: dict[str, str] | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a command."""

    command_id: str | None
    """The id of the command; None if the id could not be read."""
    subscriber: str
    status: Literal["accepted", "rejected"]
    code: str
    """``ok``, or the stable code of a rejection."""
    message: str
    detail: str | None = None
    hint: str | None = None
    result: Any = None
    """The result of the statement, a JSON object. In Avro, the object is written as a string."""
    replied_at: Instant


class MalformedCommand(ValueError):
    """A record's value is not a command.

    Attributes:
        detail: The reason, as a sentence without any content of the value.
        encoding: The encoding for the reply.
        command_id: The id of the command, if it could be read.
    """

    def __init__(self, detail: str, *, encoding: Encoding = "json", command_id: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.encoding: Encoding = encoding
        self.command_id = command_id


_FIELDS = msgspec.json.Decoder(_CommandFields)
_ID = msgspec.json.Decoder(_CommandId)
_REPLY = msgspec.json.Decoder(Reply)
_JSON = msgspec.json.Encoder()
_COMMAND_AVRO = SingleObject(load_schema("command"))
_REPLY_AVRO = SingleObject(load_schema("reply"))


def decode_command(value: bytes | None) -> Command:
    """Decode a command from a record's value.

    Raises:
        MalformedCommand: The value is neither a JSON object nor an Avro object with the fields of a command, or its
            id or its subscriber is not valid.

    Example:
        >>> decode_command(b'{"command_id": "1", "subscriber": "alice", "text": "SHOW CQS"}').text
        'SHOW CQS'
    """
    if value is None:
        raise MalformedCommand("The record has no value.")
    command = _decode_avro(value) if value.startswith(MAGIC) else _decode_json(value)
    if len(command.command_id) > LONGEST_NAME:
        raise MalformedCommand(
            f"Its command_id has {len(command.command_id)} characters; it may have {LONGEST_NAME}.",
            encoding=command.encoding,
        )
    if fault := _subscriber_fault(command.subscriber):
        raise MalformedCommand(fault, encoding=command.encoding, command_id=command.command_id)
    return command


def _subscriber_fault(name: str) -> str | None:
    if len(name) > LONGEST_NAME:
        return f"Its subscriber has {len(name)} characters; it may have {LONGEST_NAME}."
    control = None if name.isprintable() else _CONTROL.search(name)
    return f"Its subscriber has the control character U+{ord(control[0]):04X}." if control else None


def _decode_json(value: bytes) -> Command:
    try:
        fields = _FIELDS.decode(value)
    # Errors of msgspec and of UTF-8 are ValueErrors; deeply nested JSON exceeds the recursion limit.
    except (ValueError, RecursionError) as error:
        raise MalformedCommand(_json_fault(error), command_id=_readable_id(value)) from None
    sent_at = fields.sent_at
    if isinstance(sent_at, int):
        try:
            sent_at = datetime.fromtimestamp(sent_at / 1000, UTC)
        except (ValueError, OverflowError, OSError):
            raise MalformedCommand("Its sent_at is out of range.", command_id=fields.command_id) from None
    return Command(fields.command_id, fields.subscriber, fields.text, "json", sent_at, fields.properties)


def encode_command(command: Command) -> bytes:
    """Encode a command in its own encoding.

    Example:
        >>> decode_command(encode_command(Command("1", "alice", "SHOW CQS", "avro"))).subscriber
        'alice'
    """
    fields = {name: getattr(command, name) for name in command.__struct_fields__ if name != "encoding"}
    if command.encoding == "avro":
        return _COMMAND_AVRO.encode(fields)
    return _JSON.encode({name: value for name, value in fields.items() if value is not None})


def encode_reply(reply: Reply, encoding: Encoding) -> bytes:
    """Encode a reply in the encoding of its command. The reply's time is truncated to milliseconds.

    Example:
        >>> now = datetime(2026, 11, 21, 10, tzinfo=UTC)
        >>> reply = Reply(command_id="1", subscriber="alice", status="accepted", code="ok", message="", replied_at=now)
        >>> decode_reply(encode_reply(reply, "avro")) == reply
        True
    """
    at = reply.replied_at
    if at.tzinfo is not UTC or at.microsecond % 1000:
        at = at.astimezone(UTC).replace(microsecond=at.microsecond // 1000 * 1000)
        reply = msgspec.structs.replace(reply, replied_at=at)
    if encoding == "json":
        return _JSON.encode(reply)
    fields = msgspec.structs.asdict(reply)
    if reply.result is not None:
        fields["result"] = _JSON.encode(reply.result).decode()
    return _REPLY_AVRO.encode(fields)


def decode_reply(value: bytes) -> Reply:
    """Decode a reply, from a record's value in either encoding.

    Raises:
        ValueError: The value is not a reply.
    """
    if not value.startswith(MAGIC):
        return _REPLY.decode(value)
    fields = _REPLY_AVRO.decode(value)
    if fields["result"] is not None:
        fields["result"] = msgspec.json.decode(fields["result"])
    return msgspec.convert(fields, Reply)


def _decode_avro(value: bytes) -> Command:
    try:
        fields = _COMMAND_AVRO.decode(value)
    except ValueError as error:
        raise MalformedCommand(str(error), encoding="avro") from None
    if not fields["command_id"]:
        raise MalformedCommand("Its command_id is empty.", encoding="avro")
    return Command(encoding="avro", **fields)


def _json_fault(error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        return f"{error}."
    if isinstance(error, UnicodeDecodeError):
        return "The command is not UTF-8."
    if isinstance(error, msgspec.DecodeError):
        return f"The command is not JSON: {error}."
    return "The command is nested too deeply."


def _readable_id(value: bytes) -> str | None:
    try:
        return _ID.decode(value).command_id
    except (ValueError, RecursionError):
        return None
