"""Column values and constants as int64 keys, with the equality and order of Spark's comparisons.

A `KeySpace` gives keys to the values of a column and to the constants that they are compared with:

- `_DirectKeys`: the values of integers, DATE, TIMESTAMP and BOOLEAN are the keys. BIGINT is never converted to DOUBLE.
- `_DoubleKeys`: the key of FLOAT and DOUBLE is made from the bits of the DOUBLE, so that NaN equals itself and is
  greatest, and -0.0 equals 0.0. Constants of other types that are compared with such a column are cast to DOUBLE.
- `_ScaledKeys`: the key of a DECIMAL of up to 18 digits is twice its unscaled integer; so is the key of an INT or
  shorter integer that is compared with exact decimals. If a constant has more decimal places than the column, its key
  is the odd number between the keys of the two neighbouring values.
- `_RankedKeys`: all other comparisons (order of strings, long decimals, BIGINT with decimals). The key is the rank
  among the constants. Values are compared as Python objects: exact, but slow for many distinct event values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from grouping.model.sql_type import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NUMERIC,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    SqlType,
)
from spark_jobs.engine.index import Ints, mix
from spark_jobs.engine.rows.event_column import EventColumn

__all__ = ["KeySpace", "key_space"]

_SHORT = frozenset((TINYINT, SMALLINT, INT))
_PLAIN = _SHORT | {BIGINT, DATE, TIMESTAMP, BOOLEAN}
_SCALED_DIGITS = 18
_TOP = 2 * 10**_SCALED_DIGITS + 1
"""A key above the keys of all values of up to 18 digits."""
_FAR_DIGITS = 40
"""A decimal whose exponent of ten is larger than this number is out of the range of every column.

A decimal whose exponent is smaller than minus this number is nearer to 0 than the smallest unit of every column.
"""


class KeySpace(Protocol):
    """Keys of a column's values, and of the constants with which they are compared."""

    name: str | None
    """The name of the rule by which a column's values get keys; None if the keys depend on the constants.

    Two spaces with the same name give a value the same key.
    """

    def constants(self, values: pa.Array) -> Ints:
        """Return the keys of constants; the key of a NULL is arbitrary."""

    def events(self, column: EventColumn) -> Ints:
        """Return the keys of the column's distinct values."""

    def hashes(self, column: EventColumn) -> NDArray[np.uint64]:
        """Return the hashes (`spark_jobs.engine.index.mix`) of the keys of the column's distinct values."""


def key_space(column_type: SqlType, kinds: Iterable[SqlType], constants: Sequence[pa.Array]) -> KeySpace:
    """Return the space for a column and its constants.

    Args:
        column_type: The type that the stream declares for the column.
        kinds: The types of the slots with which the column is compared.
        constants: The constants of these slots. Ranked keys are right only for comparisons with these constants.
    """
    exact = any(sql_type == NUMERIC or sql_type.is_decimal for sql_type in kinds)
    if column_type in (FLOAT, DOUBLE):
        return _DoubleKeys()
    if column_type in _PLAIN and not exact:
        return _DirectKeys()
    if column_type in _SHORT:
        return _ScaledKeys(0)
    if column_type.is_decimal:
        if column_type.precision <= _SCALED_DIGITS:
            return _ScaledKeys(column_type.scale)
    return _RankedKeys(constants, numbers=column_type != STRING)


class _DirectKeys:
    name: str | None = "direct"

    def constants(self, values: pa.Array) -> Ints:
        return _to_int64(values)

    def events(self, column: EventColumn) -> Ints:
        return column.cached("direct", _to_int64)

    def hashes(self, column: EventColumn) -> NDArray[np.uint64]:
        return column.cached("direct hashes", lambda values: mix(_to_int64(values)))


class _DoubleKeys(_DirectKeys):
    def constants(self, values: pa.Array) -> Ints:
        return _to_int64(values.cast(pa.float64()))


class _ScaledKeys:
    name: str | None = "scaled"

    def __init__(self, scale: int) -> None:
        self._scale = scale

    def constants(self, values: pa.Array) -> Ints:
        if pa.types.is_integer(values.type):
            whole = _to_int64(values)
            limit = 10 ** (_SCALED_DIGITS - self._scale)
            keys: Ints = np.clip(whole, -limit, limit) * (2 * 10**self._scale)
            keys[whole > limit] = _TOP
            keys[whole < -limit] = -_TOP
            return keys
        return np.fromiter((_doubled(value, self._scale) for value in values.to_pylist()), np.int64, len(values))

    def events(self, column: EventColumn) -> Ints:
        return column.cached("scaled", lambda values: 2 * _unscaled(values))

    def hashes(self, column: EventColumn) -> NDArray[np.uint64]:
        return column.cached("scaled hashes", lambda values: mix(2 * _unscaled(values)))


class _RankedKeys:
    name: str | None = None

    def __init__(self, constants: Sequence[pa.Array], *, numbers: bool) -> None:
        self._exact = Decimal if numbers else str
        values = {self._exact(value) for array in constants for value in array.to_pylist() if value is not None}
        self._sorted: list[Any] = sorted(values)

    def constants(self, values: pa.Array) -> Ints:
        return self._ranks(values)

    def events(self, column: EventColumn) -> Ints:
        return self._ranks(column.values)

    def hashes(self, column: EventColumn) -> NDArray[np.uint64]:
        return mix(self.events(column))

    def _ranks(self, values: pa.Array) -> Ints:
        """Return 2i + 1 for the i-th constant, and for other values the even number between their neighbours' ranks."""
        return np.fromiter((self._rank(value) for value in values.to_pylist()), np.int64, len(values))

    def _rank(self, value: Any) -> int:
        if value is None:
            return 0
        exact = self._exact(value)
        left = bisect_left(self._sorted, exact)
        return 2 * left + (left < len(self._sorted) and self._sorted[left] == exact)


def _to_int64(values: pa.Array) -> Ints:
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 + 0.0 is 0.0
        numbers = np.where(np.isnan(numbers), np.nan, numbers)  # all NaNs get the same bits, with a positive sign
        bits = numbers.view(np.int64)
        return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    filled = pc.fill_null(values.cast(pa.int64()), 0)
    keys: Ints = filled.to_numpy(zero_copy_only=False)
    return keys


def _unscaled(values: pa.Array) -> Ints:
    if not pa.types.is_decimal(values.type):
        return _to_int64(values)
    words = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset : 2 * (values.offset + len(values))]
    low: NDArray[np.int64] = words[::2]  # a value of up to 18 digits fits into the low word
    return np.where(values.is_valid().to_numpy(zero_copy_only=False), low, 0)


def _doubled(text: str | None, scale: int) -> int:
    if text is None:
        return 0
    value = Decimal(text)
    if not value:
        return 0
    sign = -1 if value.is_signed() else 1
    if value.adjusted() > _FAR_DIGITS:
        return int(sign * _TOP)
    if value.adjusted() < -_FAR_DIGITS:
        return sign
    units = Fraction(value) * 10**scale
    whole: int = units.numerator // units.denominator
    return int(max(-_TOP, min(_TOP, 2 * whole + (units.denominator != 1))))
