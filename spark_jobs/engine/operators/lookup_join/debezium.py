"""Change records as Debezium writes them in JSON: an operation, and the row before and after it."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from spark_jobs.engine.decode.json_exact import WrongRecord
from spark_jobs.engine.operators.lookup_join.images import Images

__all__ = ["read_envelopes"]

_NOTHING = b"null"
_SETS = frozenset("cru")
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _RowChange(msgspec.Struct):
    """A change with its rows as JSON."""

    op: str | None = None
    before: msgspec.Raw = msgspec.Raw(_NOTHING)
    after: msgspec.Raw = msgspec.Raw(_NOTHING)


class _ChangeEnvelope(_RowChange):
    """A change, bare or under ``payload`` beside its schema."""

    payload: _RowChange | None = None


_decode = msgspec.json.Decoder(_ChangeEnvelope).decode


def read_envelopes(values: pa.Array, wrong: dict[int, str]) -> Images:
    """Return the rows set and the rows removed by records.

    Records without a value and messages (``op`` ``m``) are passed over. From the row before an update only the key is
    read, since an update may change the key.

    Args:
        values: The records' values.
        wrong: Gets the detail of each bad record, by its place.

    Example:
        >>> wrong: dict[int, str] = {}
        >>> read_envelopes(pa.array([b'{"op": "c", "after": {"n": 1}}', b'{"op": "t"}']), wrong).set.to_pylist()
        [b'{"n": 1}']
        >>> wrong
        {1: '"op" is "t", which is none of c, r, u, d and m.'}
    """
    rows: list[bytes] = []
    set_at: list[int] = []
    removed: list[bytes] = []
    removed_at: list[int] = []
    for place, value in enumerate(values.to_pylist()):
        if value is None:
            continue
        try:
            before, after = _images(value)
        except WrongRecord as exc:
            wrong[place] = str(exc)
            continue
        if before is not None:
            removed.append(before)
            removed_at.append(place)
        if after is not None:
            rows.append(after)
            set_at.append(place)
    return Images(
        pa.array(rows, pa.binary()),
        np.array(set_at, np.int64),
        pa.array(removed, pa.binary()),
        np.array(removed_at, np.int64),
    )


def _images(value: bytes) -> tuple[bytes | None, bytes | None]:
    """Return the row that a change removes, and the row that the change sets."""
    try:
        envelope = _decode(value)
    except _REFUSALS as exc:
        raise WrongRecord(f"The value is no Debezium change: {exc}.") from None
    change = envelope.payload or envelope
    if change.op in _SETS:
        return _row(change.before) if change.op == "u" else None, _needed(change, "after")
    if change.op == "d":
        return _needed(change, "before"), None
    if change.op == "m":
        return None, None
    if change.op is None:
        raise WrongRecord('The value is no Debezium change: it has no "op".')
    raise WrongRecord(f'"op" is "{change.op}", which is none of c, r, u, d and m.')


def _needed(change: _RowChange, name: str) -> bytes:
    row = _row(getattr(change, name))
    if row is None:
        raise WrongRecord(f'"op" is "{change.op}", and there is no "{name}".')
    return row


def _row(raw: msgspec.Raw) -> bytes | None:
    row = bytes(raw)
    return None if row == _NOTHING else row
