"""The dead letter of a malformed command: its key and value as received, up to the size of a record."""

from __future__ import annotations

from gateway.kafka import FITTING_BYTES, OutgoingRecord

__all__ = ["LONGEST_KEY", "command_letter"]

LONGEST_KEY = 1 << 20
"""Bytes of a key that a letter, or a reply, repeats."""


def command_letter(topic: str, source: str, detail: str, key: bytes | None, value: bytes | None) -> OutgoingRecord:
    """Return the dead letter of a record.

    Args:
        topic: That of dead letters.
        source: The record's own place, as text.
        detail: Why it is no command.
        key: The record's key.
        value: The record's value.

    Example:
        >>> letter = command_letter("cq.deadletters", "cq.commands/0/7", "It is nothing.", b"alice", bytes(20 << 20))
        >>> letter.key, len(letter.value) < 16 << 20, letter.headers[1]
        (b'alice', True, ('detail', b'It is nothing. This letter holds its beginning only.'))
    """
    kept_key = key and key[:LONGEST_KEY]
    kept_value = value and value[: FITTING_BYTES - len(kept_key or b"")]
    if (kept_key, kept_value) != (key, value):
        detail += " This letter holds its beginning only."
    headers = (("code", b"malformed-command"), ("detail", detail.encode()), ("source", source.encode()))
    return OutgoingRecord(topic, kept_key, kept_value, headers)
