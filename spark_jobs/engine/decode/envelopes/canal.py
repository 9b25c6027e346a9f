"""Changes in records of Canal: a type, an array of rows, and for an update the old values of the changed columns."""

from __future__ import annotations

import msgspec

from spark_jobs.engine.decode.envelopes.change import RowChange, RowChanges, merged_row
from spark_jobs.engine.decode.envelopes.envelope_fault import envelope_fault
from spark_jobs.engine.decode.json_exact import WrongRecord

__all__ = ["canal_changes", "row_count"]

_NOTHING = b"null"
_ROWS = ("INSERT", "UPDATE", "DELETE")
_OF_SCHEMAS = frozenset({"CREATE", "ALTER", "ERASE", "RENAME", "QUERY", "CINDEX", "DINDEX", "GTID", "INIT_DDL"})
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _CanalChange(msgspec.Struct):
    type: str | None = None
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    ddl: bool | None = msgspec.field(name="isDdl", default=None)


_KINDS = {"type": "a string", "data": "an array", "old": "an array", "isDdl": "a boolean"}
_decode = msgspec.json.Decoder(_CanalChange).decode


def canal_changes(value: bytes | None) -> RowChanges:
    """Return the changes in a record, in the order of its rows.

    A record without a value, and a record about a change of a schema, has no changes.

    Raises:
        WrongRecord: The record is no change.

    Example:
        >>> len(canal_changes(b'{"type": "INSERT", "data": [{"id": "1"}, {"id": "2"}]}').changes)
        2
    """
    if value is None or value.strip() == _NOTHING:
        return RowChanges([])
    change = _change(value)
    kind = (change.type or "").upper()
    if kind == "TRUNCATE":
        return RowChanges([RowChange(empties=True)])
    if kind in _OF_SCHEMAS or (change.ddl and kind not in _ROWS):
        return RowChanges([])
    if kind not in _ROWS:
        raise WrongRecord(f'"type" is "{change.type}", which is none of INSERT, UPDATE, DELETE and TRUNCATE.')
    rows = [bytes(row) for row in change.data or ()]
    if not rows or any(row[:1] != b"{" for row in rows):
        raise WrongRecord(f'"type" is "{change.type}", and there is no "data" of rows.')
    if kind == "DELETE":
        return RowChanges([RowChange(removed=row) for row in rows])
    old = [bytes(each) for each in (change.old or ())] if kind == "UPDATE" else []
    before = [merged_row(row, each) if each[:1] == b"{" else None for row, each in zip(rows, old, strict=False)]
    before += [None] * (len(rows) - len(before))
    return RowChanges([RowChange(removed=each, set=row) for row, each in zip(rows, before, strict=True)])


def row_count(value: bytes) -> int:
    """Return the number of rows that a record's change has.

    Raises:
        WrongRecord: The record is no change.
    """
    return len(_change(value).data or ())


def _change(value: bytes) -> _CanalChange:
    try:
        return _decode(value)
    except _REFUSALS:
        raise envelope_fault("Canal", value, _KINDS) from None
