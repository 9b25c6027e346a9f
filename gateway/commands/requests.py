"""Records of `cq.commands` as requests. A record that is not a command becomes a refused request with a dead letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from gateway.kafka import FITTING_BYTES, LARGEST_RECORD, OutgoingRecord, Place, Record
from gateway.sdk.signing import TOKEN_HEADER
from gateway.state.command_ids import CommandIds
from gateway.turns.rates import CommandRates
from grouping.model.errors import InputError
from grouping.settings.settings import Settings
from schemas.codec import Command, Encoding, MalformedCommand, decode_command

if TYPE_CHECKING:
    from gateway.access.tokens import TokenCheck

__all__ = ["Request", "RequestReader"]

_KEY_BYTES = 4096
"""The largest number of bytes of a subscriber's name."""
_LETTER_KEY_BYTES = 1 << 20
"""The largest number of bytes of a record's key in a dead letter or in a reply."""


class Request(msgspec.Struct, frozen=True):
    """A command record after decoding."""

    record: Record
    command_id: str | None
    """The command's id; None if it could not be decoded."""
    subscriber: str
    """The receiver of the reply: the record's key."""
    text: str
    encoding: Encoding
    """The encoding of the command, and of its reply."""
    remember: bytes | None
    """The key of the command's id, under which the first reply is remembered; None if no reply may be remembered."""
    refusal: InputError | None = None
    """Why the command is refused before its text is parsed; None if it is not refused."""
    letter: OutgoingRecord | None = None
    """The dead letter of a record that is not a command; None for a command."""

    @property
    def answerable(self) -> bool:
        """Whether the record has a key that a reply can have."""
        return bool(self.record.key) and len(self.record.key or b"") <= _LETTER_KEY_BYTES


class RequestReader:
    """Decodes command records."""

    def __init__(self, settings: Settings, rate: Callable[[str], int]) -> None:
        """Begin; `rate` returns how many commands a second a subscriber may send, 0 for no limit."""
        self._letters = settings.topics.deadletters
        self._rates, self._rate = CommandRates(), rate
        self._per_second: dict[str, int] = {}
        """Subscriber → the result of `rate` for this unit of work."""
        self._tokens = _token_check(settings)
        self._checked: dict[Place, Request] = {}
        """Place → request with a valid token, not carried out yet."""

    def refresh(self, now_ms: int) -> None:
        """Read changed keys of tokens again, and forget the rates of the last unit of work."""
        self._per_second.clear()
        if self._tokens is not None:
            self._tokens.refresh(now_ms)

    def read(self, record: Record) -> Request:
        """Return the request of a record; a record that is not a command has a refusal."""
        key = record.key
        try:
            command = _command(key, record.value)
        except MalformedCommand as error:
            return self._malformed(record, error)
        assert key, "a command has a key"
        if command.subscriber.encode("utf-8", "surrogatepass") != key:
            refusal = InputError(
                f'the subscriber "{_clip(command.subscriber)}" is not the record\'s key',
                code="not-allowed",
                detail=f'The key is "{_clip(_text(key))}".',
                hint="Send the command with the subscriber's name as the record's key.",
            )
            return Request(record, command.command_id, _text(key), "", command.encoding, None, refusal)
        remember = CommandIds.key(key, command.command_id)
        return Request(record, command.command_id, command.subscriber, command.text, command.encoding, remember)

    @property
    def checks_tokens(self) -> bool:
        """Whether commands must have tokens. Otherwise, only the record's key names the sender."""
        return self._tokens is not None

    def is_genuine(self, record: Record) -> bool:
        """Tell whether a record is a command with a valid token of its subscriber.

        Checking a signature takes a tenth of a millisecond. Genuine records are noted, so that `checked` does not check
        them again.
        """
        place = record.partition, record.offset
        if place in self._checked:
            return True
        request = self._with_token_checked(self.read(record))
        if request.refusal is None:
            self._checked[place] = request
        return request.refusal is None

    def checked(self, request: Request) -> Request:
        """Return a request, with a refusal if its token is not valid."""
        known = self._checked.pop((request.record.partition, request.record.offset), None)
        return self._with_token_checked(request) if known is None else known

    def _with_token_checked(self, request: Request) -> Request:
        if self._tokens is None or request.refusal is not None:
            return request
        assert request.command_id is not None, "it was decoded"
        token, at_ms = dict(request.record.headers).get(TOKEN_HEADER), request.record.time_ms
        refusal = self._tokens.refusal(token, request.subscriber, request.command_id, request.text, at_ms)
        if refusal is None:
            return request
        return msgspec.structs.replace(request, text="", remember=None, refusal=refusal)

    def refusal(self, request: Request, now_ms: int) -> InputError | None:
        """Count a request against the sender's rate; return the reason to refuse it before parsing, or None."""
        if request.refusal is None and request.record.key is not None:
            subscriber = request.subscriber
            rate = self._per_second.get(subscriber)
            if rate is None:
                rate = self._per_second[subscriber] = self._rate(subscriber)
            return self._rates.refusal(request.record.key, rate, now_ms)
        return request.refusal

    def hold(self, request: Request) -> None:
        """Undo the count of a request against the sender's rate, because the request must wait for another turn."""
        if request.refusal is None and request.record.key is not None:
            self._rates.give_back(request.record.key)

    def _malformed(self, record: Record, error: MalformedCommand) -> Request:
        refusal = InputError(
            "the record is not a command",
            code="malformed-command",
            detail=error.detail,
            hint="Send an object with command_id, subscriber and text.",
        )
        place = f"{record.topic}/{record.position}"
        letter = _command_letter(self._letters, place, error.detail, record.key, record.value)
        subscriber = _text(record.key or b"")
        return Request(record, error.command_id, subscriber, "", error.encoding, None, refusal, letter)


def _token_check(settings: Settings) -> TokenCheck | None:
    if settings.auth.mode != "token":
        return None
    from gateway.access.tokens import TokenCheck  # the import of cryptography takes a tenth of a second

    return TokenCheck.of(settings)


def _command(key: bytes | None, value: bytes | None) -> Command:
    """Return the command in a record.

    Raises:
        MalformedCommand: The record is not a command, or its key is too long for the name of a subscriber.
    """
    if value is not None and len(value) > LARGEST_RECORD:
        raise MalformedCommand(f"The record has {len(value)} bytes; it may have at most {LARGEST_RECORD}.")
    command = decode_command(value)
    if not key:
        raise MalformedCommand("The record has no key.", encoding=command.encoding)
    if len(key) > _KEY_BYTES:
        raise MalformedCommand(
            f"The record's key has {len(key)} bytes; it may have at most {_KEY_BYTES}.",
            encoding=command.encoding,
            command_id=command.command_id,
        )
    return command


def _text(key: bytes) -> str:
    return key.decode("utf-8", "replace")


def _clip(name: str) -> str:
    return name if len(name) <= 100 else name[:100] + "…"


def _command_letter(topic: str, source: str, detail: str, key: bytes | None, value: bytes | None) -> OutgoingRecord:
    """Return the dead letter of a record.

    Args:
        topic: The topic of dead letters.
        source: The topic, partition and offset of the record, as text.
        detail: Why the record is not a command.
        key: The record's key.
        value: The record's value.

    Example:
        >>> letter = _command_letter("cq.deadletters", "cq.commands/0/7", "The text is bad.", b"alice", bytes(20 << 20))
        >>> letter.key, len(letter.value) < 16 << 20, letter.headers[1]
        (b'alice', True, ('detail', b'The text is bad. This letter has only the beginning of the record.'))
    """
    kept_key = key and key[:_LETTER_KEY_BYTES]
    kept_value = value and value[: FITTING_BYTES - len(kept_key or b"")]
    if (kept_key, kept_value) != (key, value):
        detail += " This letter has only the beginning of the record."
    headers = (("code", b"malformed-command"), ("detail", detail.encode()), ("source", source.encode()))
    return OutgoingRecord(topic, kept_key, kept_value, headers)
