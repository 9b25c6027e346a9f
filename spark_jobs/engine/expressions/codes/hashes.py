"""hash and xxhash64: Spark's hashes of values of any type, bit for bit.

Murmur3 (x86, 32 bits) by A. Appleby, with the last one to three bytes of a text mixed in one by one as Spark does, and
xxHash (64 bits) by Y. Collet. The hash of each argument is the seed of the next one; NULL leaves the seed as it is.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import partial
from typing import Any

import polars as pl

from grouping.model.decimal_types import WIDEST
from grouping.model.sql_type import BIGINT, INT, SqlType
from spark_jobs.engine.expressions.by_value import distinct_rows, of_one_length
from spark_jobs.engine.expressions.types import Implementation, Operand

__all__ = ["HASHES"]

_SEED = 42
_INT, _LONG = 2**32 - 1, 2**64 - 1
_LONGEST_UNSCALED = 18
"""The largest precision of a DECIMAL type whose values Spark hashes as numbers; others are hashed as bytes."""
_EXACT = Context(prec=2 * WIDEST)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def _rotated(value: int, by: int, mask: int) -> int:
    return (value << by | value >> (mask.bit_length() - by)) & mask


def _mixed(seed: int, word: int) -> int:
    word = _rotated(word * 0xCC9E2D51 & _INT, 15, _INT) * 0x1B873593 & _INT
    return (_rotated(seed ^ word, 13, _INT) * 5 + 0xE6546B64) & _INT


def _finished(seed: int, length: int) -> int:
    seed ^= length
    seed = (seed ^ seed >> 16) * 0x85EBCA6B & _INT
    seed = (seed ^ seed >> 13) * 0xC2B2AE35 & _INT
    return seed ^ seed >> 16


def _murmur_int(value: int, seed: int) -> int:
    return _finished(_mixed(seed, value & _INT), 4)


def _murmur_long(value: int, seed: int) -> int:
    return _finished(_mixed(_mixed(seed, value & _INT), value >> 32 & _INT), 8)


def _murmur_bytes(value: bytes, seed: int) -> int:
    whole = len(value) // 4
    for word in struct.unpack_from(f"<{whole}I", value):
        seed = _mixed(seed, word)
    for byte in struct.unpack_from(f"{len(value) - 4 * whole}b", value, 4 * whole):
        seed = _mixed(seed, byte & _INT)
    return _finished(seed, len(value))


def _avalanche(value: int) -> int:
    value = (value ^ value >> 33) * _P2 & _LONG
    value = (value ^ value >> 29) * _P3 & _LONG
    return value ^ value >> 32


def _round(state: int, word: int) -> int:
    return _rotated((state + word * _P2) & _LONG, 31, _LONG) * _P1 & _LONG


def _with_long(state: int, word: int) -> int:
    return (_rotated(state ^ _round(0, word), 27, _LONG) * _P1 + _P4) & _LONG


def _with_int(state: int, word: int) -> int:
    return (_rotated(state ^ word * _P1 & _LONG, 23, _LONG) * _P2 + _P3) & _LONG


def _xx_int(value: int, seed: int) -> int:
    return _avalanche(_with_int((seed + _P5 + 4) & _LONG, value & _INT))


def _xx_long(value: int, seed: int) -> int:
    return _avalanche(_with_long((seed + _P5 + 8) & _LONG, value & _LONG))


def _xx_bytes(value: bytes, seed: int) -> int:
    at = len(value) // 32 * 32
    state = _striped(value[:at], seed) if at else (seed + _P5) & _LONG
    state = (state + len(value)) & _LONG
    while at + 8 <= len(value):
        state = _with_long(state, int.from_bytes(value[at : at + 8], "little"))
        at += 8
    if at + 4 <= len(value):
        state = _with_int(state, int.from_bytes(value[at : at + 4], "little"))
        at += 4
    for byte in value[at:]:
        state = _rotated(state ^ byte * _P5 & _LONG, 11, _LONG) * _P1 & _LONG
    return _avalanche(state)


def _striped(value: bytes, seed: int) -> int:
    """Return xxHash's state after it has read all stripes of 32 bytes."""
    lanes = [(seed + start) & _LONG for start in (_P1 + _P2, _P2, 0, -_P1)]
    for words in struct.iter_unpack("<4Q", value):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    state = sum(_rotated(lane, by, _LONG) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _LONG
    for lane in lanes:
        state = ((state ^ _round(0, lane)) * _P1 + _P4) & _LONG
    return state


Hash = Callable[[Any, int], int]


def _by_type(of_int: Hash, of_long: Hash, of_bytes: Hash) -> Callable[[SqlType], Hash]:
    """Return the function that returns the hash function for a type."""

    def of(sql_type: SqlType) -> Hash:
        if sql_type.is_decimal:
            return partial(
                _of_decimal, of_long if sql_type.precision <= _LONGEST_UNSCALED else of_bytes, sql_type.scale
            )
        return plain[sql_type.name]

    plain: dict[str, Hash] = {
        **dict.fromkeys(("BOOLEAN", "TINYINT", "SMALLINT", "INT"), of_int),
        "BIGINT": of_long,
        "FLOAT": lambda value, seed: of_int(_bits("<f", "<i", value), seed),
        "DOUBLE": lambda value, seed: of_long(_bits("<d", "<q", value), seed),
        "DATE": lambda value, seed: of_int(value.toordinal() - date(1970, 1, 1).toordinal(), seed),
        "TIMESTAMP": lambda value, seed: of_long((value - _EPOCH) // timedelta(microseconds=1), seed),
        "STRING": lambda value, seed: of_bytes(value.encode(), seed),
        "BINARY": of_bytes,
    }
    return of


def _bits(form: str, read_as: str, value: float) -> int:
    """Return the bits of a number; every NaN has the same bits, and -0.0 has the bits of 0.0."""
    number: int = struct.unpack(read_as, struct.pack(form, math.nan if math.isnan(value) else value + 0.0))[0]
    return number


def _of_decimal(of: Hash, scale: int, value: Decimal, seed: int) -> int:
    unscaled = int(value.scaleb(scale, _EXACT))
    if of in (_murmur_bytes, _xx_bytes):
        # The bytes of java.math.BigInteger: the fewest that hold the number and its sign.
        size = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8) + 1
        return of(unscaled.to_bytes(size, "big", signed=True), seed)
    return of(unscaled, seed)


def _hash(by_type: Callable[[SqlType], Hash], dtype: type[pl.DataType], sql_type: SqlType, mask: int) -> Implementation:
    def apply(args: list[Operand], _: SqlType) -> Operand:
        hashes = [by_type(argument.type) for argument in args]

        def of_row(values: Sequence[Any]) -> int:
            seed = _SEED
            for value, compute in zip(values, hashes, strict=True):
                seed = seed if value is None else compute(value, seed)
            return seed - (mask + 1 if seed > mask >> 1 else 0)

        def of_rows(columns: Sequence[pl.Series]) -> pl.Series:
            rows, codes = distinct_rows(of_one_length(columns))
            return pl.Series([of_row(row) for row in rows], dtype=dtype).gather(codes)

        return Operand(pl.map_batches([argument.expr for argument in args], of_rows, return_dtype=dtype), sql_type)

    return apply


HASHES: dict[str, Implementation] = {
    "hash": _hash(_by_type(_murmur_int, _murmur_long, _murmur_bytes), pl.Int32, INT, _INT),
    "xxhash64": _hash(_by_type(_xx_int, _xx_long, _xx_bytes), pl.Int64, BIGINT, _LONG),
}
"""The implementation by function; the names are those in `grouping.functions`."""
