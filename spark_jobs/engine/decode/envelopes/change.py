"""A change of a row, in the same form for the envelopes of all formats."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from spark_jobs.engine.decode.envelopes.envelope_fault import json_fault
from spark_jobs.engine.decode.json_exact import WrongRecord

__all__ = ["RowChange", "RowChanges", "merged_row"]

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class RowChange(NamedTuple):
    """A change of one row of a database table, or of all its rows."""

    removed: bytes | None = None
    """The row before the change, as JSON; the change removes the table's row with the same key."""
    set: bytes | None = None
    """The row after the change, as JSON; the change adds this row to the table."""
    by_key: bool = False
    """Whether the change removes the table's row that the record's key names."""
    empties: bool = False
    """Whether the change removes all rows of the table."""


class RowChanges(NamedTuple):
    """The changes in one record."""

    changes: list[RowChange]
    schema: bytes = b""
    """The JSON text of the record's schema; empty if the record has none."""


def merged_row(row: bytes, before: bytes) -> bytes:
    """Return a row in which the values of the columns in `before` replace the row's own values.

    Raises:
        WrongRecord: A text is no JSON object, or has a name that is no UTF-8.

    Example:
        >>> merged_row(b'{"id": 2, "n": 1}', b'{"id": 1}')
        b'{"id":1,"n":1}'
    """
    try:
        return _encode(_decode(row) | _decode(before))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise WrongRecord(f"The row is no JSON object: {json_fault(row)}") from None
