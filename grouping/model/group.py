"""The constants of queries, and the ids of groups and destinations, assigned once and then stored."""

from __future__ import annotations

import hashlib
import math
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, cast

import msgspec

from grouping.model.ids import DestinationId, GroupId, PendingId, SelectId
from grouping.model.query import DigestClause
from grouping.model.sql_type import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType
from grouping.model.trigger import ChangeBased, CronBased, Throttle, TimerBased, Trigger

__all__ = [
    "ConstantRow",
    "ConstantValue",
    "DestinationIds",
    "canonical_constants",
    "group_id",
    "owner_prefix",
    "parse_constants",
    "pending_id",
]

ConstantValue = str | bool | int | float | Decimal | date | datetime | tuple[Any, ...] | None
"""A lifted constant. A tuple is the set of an IN: sorted, without repetitions, and None comes last."""


class ConstantRow(msgspec.Struct, frozen=True):
    """The constants of one query, by slot.

    Each row has its own types: ``volume < 5`` and ``volume < 5.5`` share a signature, but the types of their rows
    differ. A type is a column's type, `NUMERIC`, or ``SET<…>`` of one of these.
    """

    types: tuple[SqlType, ...]
    values: tuple[ConstantValue, ...]

    @property
    def type_texts(self) -> tuple[str, ...]:
        """The types as they are stored."""
        return _texts(self.types)


@lru_cache(maxsize=4096)
def _texts(types: tuple[SqlType, ...]) -> tuple[str, ...]:
    """Return the texts of types, cached, since the rows of a group mostly have equal types."""
    return tuple(map(str, types))


def _digest(prefix: str, *parts: str) -> str:
    text = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return prefix + hashlib.blake2b(text, digest_size=12).hexdigest()


def group_id(source_id: str, signature: str) -> GroupId:
    """Return the id of a signature's group on a stream.

    Example:
        >>> group_id("s_1", "a = :c0")
        'g_c7207aa25a4bf9f5ace74aed'
    """
    return GroupId(_digest("g_", source_id, signature))


_encode = msgspec.json.Encoder().encode
_rows: dict[str, ConstantRow] = {}
"""Rows by their text, a cache: a unit of work parses the same text several times."""
_MOST_ROWS = 20_000


def canonical_constants(row: ConstantRow) -> str:
    """Return the row's constants as one text; two texts are equal exactly if the rows are equal.

    Example:
        >>> canonical_constants(ConstantRow((STRING, DOUBLE), ("INTC", 100.0)))
        '["STRING","INTC","DOUBLE",100.0]'
    """
    flat: list[object] = [None] * (2 * len(row.values))
    flat[::2], flat[1::2] = _texts(row.types), row.values
    text = _encode(flat).decode()
    if "null" in text:
        # A literal beyond the range of DOUBLE is infinity. JSON would write both infinity and NULL as null.
        flat = [repr(part) if isinstance(part, float) and math.isinf(part) else part for part in flat]
        text = _encode(flat).decode()
    return _noted(text, row)


def _noted(text: str, row: ConstantRow) -> str:
    if len(_rows) >= _MOST_ROWS:
        _rows.clear()
    _rows[text] = row
    return text


_PYTHON_TYPES: dict[SqlType, object] = {
    STRING: str | None,
    BOOLEAN: bool | None,
    INT: int | None,
    BIGINT: int | None,
    DOUBLE: float | None,
    DATE: date | None,
    TIMESTAMP: datetime | None,
}


_AS_JSON: dict[SqlType, type] = {STRING: str, BOOLEAN: bool, INT: int, BIGINT: int, DOUBLE: float}
"""Types with values that JSON decodes to the Python values of constants."""


def _parse_value(sql_type: SqlType, value: object) -> ConstantValue:
    if type(value) is _AS_JSON.get(sql_type):
        return cast(ConstantValue, value)
    if sql_type.is_set and isinstance(value, list):
        if sql_type.member == DOUBLE:
            return tuple(_parse_value(DOUBLE, item) for item in value)
        return tuple(msgspec.convert(value, list[_PYTHON_TYPES.get(sql_type.member, Decimal | None)]))  # type: ignore[misc]
    if sql_type == DOUBLE and isinstance(value, str):
        return float(value)
    return cast(ConstantValue, msgspec.convert(value, _PYTHON_TYPES.get(sql_type, Decimal | None)))


def parse_constants(text: str) -> ConstantRow:
    """Return the row that `canonical_constants` wrote.

    Example:
        >>> parse_constants('["STRING","INTC","DOUBLE",100.0]').values
        ('INTC', 100.0)
    """
    row = _rows.get(text)
    if row is None:
        flat = msgspec.json.decode(text)
        types = tuple(map(SqlType.of, flat[0::2]))
        row = ConstantRow(types, tuple(map(_parse_value, types, flat[1::2])))
        _noted(text, row)
    return row


def _trigger_text(trigger: Trigger, phase_ms: int | None) -> str:
    match trigger:
        case ChangeBased(throttle):
            return "change" if throttle is None else f"change {_throttle_text(throttle)}"
        case TimerBased(every, over):
            last = "" if over is None else f" over {round(over.total_seconds() * 1000)}"
            return f"every {round(every.total_seconds() * 1000)} {phase_ms}{last}"
        case CronBased(cron, zone):
            return f"cron {' '.join(cron.split())} {zone}"


def _throttle_text(throttle: Throttle) -> str:
    by = msgspec.json.encode(throttle.columns).decode()
    return f"at most {throttle.most} {throttle.every_ms} {by}"


class DestinationIds:
    """Makes the ids of destinations that differ only in constants (docs/statements.md).

    Example:
        >>> DestinationIds("g_1", "s1", ChangeBased(), None, DigestClause(), None).of('["BIGINT",5]')
        'd_051df9ed63ea88648f4d9f53'
    """

    def __init__(
        self,
        group: GroupId,
        select: SelectId,
        trigger: Trigger,
        phase_ms: int | None,
        digest: DigestClause,
        mode: str | None,
        owner: str = "",
        edges: str = "",
    ) -> None:
        """Take the parts that all these ids share.

        Args:
            group: The group's id.
            select: The id of the SELECT list.
            trigger: The trigger of the CQs.
            phase_ms: For a TimerBased trigger: START, or without START the time of acceptance, in epoch milliseconds
                and modulo the interval; None for other triggers.
            digest: The digest clause; the default clause if the CQ has none.
            mode: The word after PUBLISH; None without a word.
            owner: The subscriber of the destinations; empty if equal CQs of all subscribers share a destination.
            edges: Empty if equal CQs share a destination. For a CQ with edges, the kind of edges and the id of the CQ,
                which give the CQ a destination of its own: its first edges depend on when it began.
        """
        clause = f"{digest.kind} {digest.rows} {digest.even_if_empty} {msgspec.json.encode(digest.columns).decode()}"
        self._group = group
        parts = (select, _trigger_text(trigger, phase_ms), clause, mode or "")
        self._rest = "\x00".join((*parts, edges) if edges else parts)
        self._owner = owner

    def of(self, constants: str) -> DestinationId:
        """Return the id for constants as `canonical_constants` writes them."""
        if not self._owner:
            return DestinationId(_digest("d_", self._group, constants, self._rest))
        prefix = owner_prefix(self._owner)
        own = _digest("", self._group, constants, self._rest, self._owner)
        return DestinationId(prefix + own[len(prefix) - len("d_") :])


def owner_prefix(subscriber: str) -> str:
    """Return the beginning of the ids of a subscriber's own destinations.

    Example:
        >>> owner_prefix("alice")
        'd_9e1c391b96'
    """
    text = subscriber.encode("utf-8", "surrogatepass")
    return "d_" + hashlib.blake2b(text, digest_size=5).hexdigest()


def pending_id(group: GroupId, constants: str, select: SelectId, edges: str = "") -> PendingId:
    """Return the id of a store of waiting matches, for a constant row and a SELECT list (NiagaraCQ §3.6.2).

    Args:
        group: The group's id.
        constants: The constants that decide which events match.
        select: The id of the SELECT list.
        edges: As in `DestinationIds`.
    """
    return PendingId(_digest("p_", group, constants, select, *((edges,) if edges else ())))
