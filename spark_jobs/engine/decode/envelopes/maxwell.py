"""Changes in records of Maxwell: a type, the row, and for an update the old values of the changed columns."""

from __future__ import annotations

import msgspec

from spark_jobs.engine.decode.envelopes.change import RowChange, RowChanges, merged_row
from spark_jobs.engine.decode.envelopes.envelope_fault import envelope_fault
from spark_jobs.engine.decode.json_exact import WrongRecord

__all__ = ["maxwell_changes"]

_NOTHING = b"null"
_SETS = ("insert", "update", "bootstrap-insert")
_OTHERS = ("bootstrap-start", "bootstrap-complete", "heartbeat")
_OF_SCHEMAS = ("table-", "database-")
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _MaxwellChange(msgspec.Struct):
    type: str | None = None
    data: msgspec.Raw = msgspec.Raw(_NOTHING)
    old: msgspec.Raw = msgspec.Raw(_NOTHING)


_decode = msgspec.json.Decoder(_MaxwellChange).decode


def maxwell_changes(value: bytes | None) -> RowChanges:
    """Return the changes in a record.

    A record without a value, and a record about a bootstrap or a schema, has no changes.

    Raises:
        WrongRecord: The record is no change.

    Example:
        >>> maxwell_changes(b'{"type": "update", "data": {"id": 2}, "old": {"id": 1}}').changes
        [RowChange(removed=b'{"id":1}', set=b'{"id": 2}', by_key=False, empties=False)]
    """
    if value is None or value.strip() == _NOTHING:
        return RowChanges([])
    try:
        change = _decode(value)
    except _REFUSALS:
        raise envelope_fault("Maxwell", value, {"type": "a string"}) from None
    if change.type is None:
        raise WrongRecord('The value is no Maxwell change: it has no "type".')
    if change.type in _OTHERS or change.type.startswith(_OF_SCHEMAS):
        return RowChanges([])
    if change.type not in (*_SETS, "delete"):
        raise WrongRecord(f'"type" is "{change.type}", which is none of insert, update, delete and bootstrap-insert.')
    row, old = bytes(change.data), bytes(change.old)
    if row[:1] != b"{":
        raise WrongRecord(f'"type" is "{change.type}", and there is no "data".')
    if change.type == "delete":
        return RowChanges([RowChange(removed=row)])
    before = merged_row(row, old) if change.type == "update" and old[:1] == b"{" else None
    return RowChanges([RowChange(removed=before, set=row)])
