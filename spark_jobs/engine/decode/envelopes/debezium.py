"""Changes in records of Debezium: an operation, and the row before and after the change."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from spark_jobs.engine.decode.envelopes.change import RowChange, RowChanges
from spark_jobs.engine.decode.envelopes.envelope_fault import envelope_fault
from spark_jobs.engine.decode.envelopes.json_parts import BLANKS, opened
from spark_jobs.engine.decode.json_exact import WrongRecord

__all__ = ["EnvelopeRecord", "debezium_changes", "split_record"]

_NOTHING = b"null"
_ABSENT = msgspec.Raw()
_SETS = frozenset("cru")
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _SchemaAndPayload(msgspec.Struct):
    schema: msgspec.Raw = _ABSENT
    payload: msgspec.Raw = _ABSENT
    op: msgspec.Raw = _ABSENT
    before: msgspec.Raw = _ABSENT
    after: msgspec.Raw = _ABSENT


class _DebeziumChange(msgspec.Struct):
    op: str | None = None
    before: msgspec.Raw = msgspec.Raw(_NOTHING)
    after: msgspec.Raw = msgspec.Raw(_NOTHING)


_split = msgspec.json.Decoder(_SchemaAndPayload).decode
_decode = msgspec.json.Decoder(_DebeziumChange).decode


class EnvelopeRecord(NamedTuple):
    """A record without the wrapping of Kafka Connect's JSON converter."""

    envelope: bytes
    """The envelope, as JSON."""
    schema: bytes = b""
    """The JSON text of the envelope's schema; empty if the record has none."""


def split_record(value: bytes | None) -> EnvelopeRecord | None:
    """Return the envelope of a record, bare or under ``payload``; None for a tombstone.

    A tombstone is a record without a value, ``null``, an empty object, or a ``payload`` of null.

    Raises:
        WrongRecord: The record is no JSON object.

    Example:
        >>> split_record(b'{"schema": null, "payload": {"op": "m"}}').envelope
        b'{"op": "m"}'
        >>> split_record(b'{"schema": null, "payload": null}') is None
        True
    """
    value = None if value is None else value.strip(BLANKS)
    if value is None or value == _NOTHING:
        return None
    try:
        parts = _split(value)
    except _REFUSALS:
        raise envelope_fault("Debezium", value, {}) from None
    payload = bytes(parts.payload)
    if payload and payload != _NOTHING:
        if payload[:1] != b"{":
            raise WrongRecord('The value is no Debezium change: its "payload" is no object.')
        return EnvelopeRecord(payload, bytes(parts.schema))
    if not (bytes(parts.op) or bytes(parts.before) or bytes(parts.after)) and (
        payload or b"".join(value.split()) == b"{}"
    ):
        return None
    return EnvelopeRecord(value)


def debezium_changes(value: bytes | None) -> RowChanges:
    """Return the changes in a record; none for a tombstone and for a message (``op`` ``m``).

    Raises:
        WrongRecord: The record is no change.

    Example:
        >>> debezium_changes(b'{"op": "c", "after": {"n": 1}}').changes[0].set
        b'{"n": 1}'
    """
    record = split_record(value)
    if record is None:
        return RowChanges([])
    try:
        change = _decode(record.envelope)
    except _REFUSALS:
        around = "" if record.envelope == value else "payload."
        raise envelope_fault("Debezium", record.envelope, {"op": "a string"}, around) from None
    before, after = _row(change.before, "before"), _row(change.after, "after")
    if change.op in _SETS:
        if after is None:
            hint = " MongoDB sends it with capture.mode = change_streams_update_full." if change.op == "u" else ""
            raise WrongRecord(f'"op" is "{change.op}", and there is no "after".{hint}')
        found = RowChange(removed=before if change.op == "u" else None, set=after)
    elif change.op == "d":
        found = RowChange(removed=before, by_key=before is None)
    elif change.op == "t":
        found = RowChange(empties=True)
    elif change.op == "m":
        return RowChanges([])
    elif change.op is None:
        raise WrongRecord('The value is no Debezium change: it has no "op".')
    else:
        raise WrongRecord(f'"op" is "{change.op}", which is none of c, r, u, d, t and m.')
    return RowChanges([found], record.schema)


def _row(raw: msgspec.Raw, name: str) -> bytes | None:
    """Return a row. Debezium's connector for MongoDB writes the row as a JSON string that holds the row's JSON."""
    row = bytes(raw)
    if row == _NOTHING:
        return None
    row = opened(row)
    if row[:1] != b"{":
        raise WrongRecord(f'"{name}" is no object.')
    return row
