"""Spark's operators and functions over typed Polars expressions.

Each gives NULL where Spark's ``try_`` form does. Whole numbers are computed in a wider type, and what does not fit the
result's type becomes NULL in the cast back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import reduce

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from grouping.errors import InternalError
from spark_jobs.polars_types import Typed, polars_type, wider

__all__ = ["FUNCTIONS"]


Implementation = Callable[[list[Typed], str], Typed]

_INTEGERS: dict[str, pl.DataType] = {"INT": pl.Int32(), "BIGINT": pl.Int64()}
_WIDE: dict[str, pl.DataType] = {"INT": pl.Int64(), "BIGINT": pl.Int128()}
_TOP = 2.0**63
_EPOCH = date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (date.min - _EPOCH).days, (date.max - _EPOCH).days


def _arithmetic(op: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Implementation:
    def apply(args: list[Typed], _: str) -> Typed:
        left, right = args
        kind = wider([left.type, right.type])
        if kind == "DOUBLE":
            return Typed(op(_double(left), _double(right)), kind)
        wide = _wide(kind)
        return Typed(op(left.expr.cast(wide), right.expr.cast(wide)).cast(_INTEGERS[kind], strict=False), kind)

    return apply


def _wide(kind: str) -> pl.DataType:
    if kind not in _WIDE:
        raise InternalError(f"no arithmetic of {kind}")
    return _WIDE[kind]


def _double(value: Typed) -> pl.Expr:
    return value.expr.cast(pl.Float64)


def _divide(args: list[Typed], _: str) -> Typed:
    left, right = (_double(argument) for argument in args)
    return Typed(_by_numpy(np.divide, left, right), "DOUBLE")


def _truncated(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Return the quotient of whole numbers cut towards zero, as Java does; `right` is not zero."""
    size = left.abs() // right.abs()
    return pl.when((left < 0) != (right < 0)).then(0 - size).otherwise(size)


def _whole_divide(args: list[Typed], _: str) -> Typed:
    left, right = (argument.expr.cast(pl.Int128) for argument in args)
    divisor = pl.when(right != 0).then(right)
    return Typed(_truncated(left, divisor).cast(pl.Int64, strict=False), "BIGINT")


def _remainder(args: list[Typed], _: str) -> Typed:
    left, right = args
    kind = wider([left.type, right.type])
    if kind == "DOUBLE":
        return Typed(_by_numpy(np.fmod, _double(left), _double(right)), kind)
    dividend, divisor = left.expr.cast(_wide(kind)), right.expr.cast(_wide(kind))
    divisor = pl.when(divisor != 0).then(divisor)
    return Typed((dividend - _truncated(dividend, divisor) * divisor).cast(_INTEGERS[kind], strict=False), kind)


def _by_numpy(function: np.ufunc, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Divide doubles, NULL for a divisor of zero.

    Polars multiplies by the reciprocal of a single divisor, which is off in the last digit, and its remainder takes the
    divisor's sign; NumPy's ``divide`` and C's ``fmod`` are Java's ``/`` and ``%``.
    """

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        dividend, divisor = (column.to_numpy() for column in columns)
        with np.errstate(all="ignore"):
            return pl.Series(function(dividend, divisor), dtype=pl.Float64)

    known = left.is_not_null() & (right != 0.0)
    return pl.when(known).then(pl.map_batches([left, right], apply, return_dtype=pl.Float64))


def _positive_remainder(args: list[Typed], kind: str) -> Typed:
    """Return ``((a % n) + n) % n`` for a negative ``a % n``; the sum wraps round, as Spark's does."""
    remainder = _remainder(args, kind)
    divisor = args[1].expr
    if remainder.type == "DOUBLE":
        again = _by_numpy(np.fmod, remainder.expr + _double(args[1]), _double(args[1]))
    else:
        wide, bits = _wide(remainder.type), 32 if remainder.type == "INT" else 64
        divisor = divisor.cast(wide)
        total = remainder.expr.cast(wide) + divisor
        wrapped = pl.when(total < -(2 ** (bits - 1))).then(total + pl.lit(2**bits, wide)).otherwise(total)
        known = pl.when(divisor != 0).then(divisor)
        again = (wrapped - _truncated(wrapped, known) * known).cast(_INTEGERS[remainder.type], strict=False)
    return Typed(pl.when(remainder.expr < 0).then(again).otherwise(remainder.expr), remainder.type)


def _negative(args: list[Typed], _: str) -> Typed:
    (value,) = args
    if value.type in _WIDE:
        return Typed((0 - value.expr.cast(_WIDE[value.type])).cast(_INTEGERS[value.type], strict=False), value.type)
    return Typed(-value.expr, value.type)


def _abs(args: list[Typed], _: str) -> Typed:
    (value,) = args
    if value.type in _WIDE:
        return Typed(value.expr.cast(_WIDE[value.type]).abs().cast(_INTEGERS[value.type], strict=False), value.type)
    return Typed(value.expr.abs(), value.type)


def _to_bigint(value: pl.Expr) -> pl.Expr:
    """Return Java's ``(long)`` of a whole double: NaN is 0, and what is beyond the range is its end."""
    return (
        pl.when(value.is_nan())
        .then(pl.lit(0, pl.Int64))
        .when(value >= _TOP)
        .then(pl.lit(2**63 - 1, pl.Int64))
        .when(value <= -_TOP)
        .then(pl.lit(-(2**63), pl.Int64))
        .otherwise(value.cast(pl.Int64, strict=False))
    )


def _rounding(step: Callable[[pl.Expr], pl.Expr]) -> Implementation:
    def apply(args: list[Typed], _: str) -> Typed:
        (value,) = args
        if value.type in _INTEGERS:
            return Typed(value.expr.cast(pl.Int64), "BIGINT")
        return Typed(_to_bigint(step(value.expr)), "BIGINT")

    return apply


def _sign(args: list[Typed], _: str) -> Typed:
    value = _double(args[0])
    return Typed(
        pl.when(value > 0)
        .then(pl.when(value.is_nan()).then(value).otherwise(1.0))
        .when(value < 0)
        .then(-1.0)
        .otherwise(value),
        "DOUBLE",
    )


def _extreme(better: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Implementation:
    def apply(args: list[Typed], kind: str) -> Typed:
        kind, exprs = _common(args, kind)

        def choose(left: pl.Expr, right: pl.Expr) -> pl.Expr:
            return pl.when(right.is_null() | better(left, right)).then(left).otherwise(right)

        return Typed(reduce(choose, exprs), kind)

    return apply


def _common(args: list[Typed], kind: str) -> tuple[str, list[pl.Expr]]:
    kind = kind or wider([argument.type for argument in args])
    return kind, [argument.expr.cast(polars_type(kind)) for argument in args]


def _coalesce(args: list[Typed], kind: str) -> Typed:
    kind, exprs = _common(args, kind)
    return Typed(pl.coalesce(exprs), kind)


def _nullif(args: list[Typed], _: str) -> Typed:
    _, (left, right) = _common(args, wider([argument.type for argument in args]))
    return Typed(pl.when((left == right).fill_null(False)).then(None).otherwise(args[0].expr), args[0].type)


def _cast(args: list[Typed], kind: str) -> Typed:
    (value,) = args
    target = polars_type(kind)
    if value.type == "BOOLEAN" and kind == "STRING":
        expr: pl.Expr = pl.when(value.expr).then(pl.lit("true")).when(~value.expr).then(pl.lit("false"))
    elif value.type == "DATE" and kind == "STRING":
        expr = value.expr.dt.strftime("%Y-%m-%d")
    elif value.type == "DOUBLE" and kind in _INTEGERS:
        whole = pl.when(value.expr < 0).then(value.expr.ceil()).otherwise(value.expr.floor())
        top = _TOP if kind == "BIGINT" else 2.0**31 - 1  # Spark compares with the bounds as doubles, 2^63 passes
        fits = (whole <= top) & (whole >= (-_TOP if kind == "BIGINT" else -(2.0**31)))
        expr = pl.when(fits).then(_to_bigint(whole)).cast(target, strict=False)
    elif value.type == "STRING" and kind != "STRING":
        raise InternalError(f"no cast of STRING to {kind}")
    elif value.type == "TIMESTAMP" and kind == "DATE":
        expr = value.expr.dt.date()
    else:
        expr = value.expr.cast(target, strict=False)
    return Typed(expr, kind)


def _text(build: Callable[..., pl.Expr], kind: str = "STRING") -> Implementation:
    """Make a function of strings (and whole numbers) that is NULL when any argument is."""

    def apply(args: list[Typed], _: str) -> Typed:
        exprs = [argument.expr for argument in args]
        known = reduce(pl.Expr.and_, [expr.is_not_null() for expr in exprs])
        return Typed(pl.when(known).then(build(*exprs)), kind)

    return apply


def _substring(text: pl.Expr, start: pl.Expr, length: pl.Expr | None = None) -> pl.Expr:
    size = text.str.len_chars().cast(pl.Int64)
    start = start.cast(pl.Int64)
    first = pl.when(start > 0).then(start - 1).when(start < 0).then(size + start).otherwise(0)
    end = first + (pl.lit(2**31 - 1, pl.Int64) if length is None else length.cast(pl.Int64))
    begin = pl.max_horizontal(first, pl.lit(0, pl.Int64))
    return text.str.slice(begin, pl.max_horizontal(end - begin, pl.lit(0, pl.Int64)))


def _left(text: pl.Expr, count: pl.Expr) -> pl.Expr:
    return text.str.slice(pl.lit(0), pl.max_horizontal(count.cast(pl.Int64), pl.lit(0, pl.Int64)))


def _right(text: pl.Expr, count: pl.Expr) -> pl.Expr:
    size = text.str.len_chars().cast(pl.Int64)
    kept = pl.min_horizontal(size, pl.max_horizontal(count.cast(pl.Int64), pl.lit(0, pl.Int64)))
    return text.str.slice(size - kept, kept)


def _instr(text: pl.Expr, part: pl.Expr) -> pl.Expr:
    """Return the position in code points; Polars finds it in bytes."""
    offset = text.str.find(part, literal=True)
    before = text.cast(pl.Binary).bin.slice(0, offset).cast(pl.String).str.len_chars().cast(pl.Int32)
    return pl.when(offset.is_null()).then(pl.lit(0, pl.Int32)).otherwise(before + 1)


def _reverse(text: pl.Expr) -> pl.Expr:
    """Reverse code points; Polars' own reverses graphemes."""
    return text.map_batches(
        lambda values: pl.Series(pc.utf8_reverse(values.to_arrow().cast(pa.large_string()))), return_dtype=pl.String
    )


def _replace(text: pl.Expr, old: pl.Expr, new: pl.Expr | None = None) -> pl.Expr:
    """Replace by splitting and joining, which take another pattern in each row."""
    joined = text.str.split(old).list.join(pl.lit("") if new is None else new)
    return pl.when(old == "").then(text).otherwise(joined)


def _like(args: list[Typed], _: str) -> Typed:
    text, pattern, *escape = (argument.expr for argument in args)
    regex = _each_distinct([pattern, *escape], _like_regex)
    return Typed(
        pl.when(text.is_not_null() & regex.is_not_null()).then(text.str.contains(regex, strict=False)), "BOOLEAN"
    )


def _each_distinct(exprs: list[pl.Expr], convert: Callable[..., str | None]) -> pl.Expr:
    """Convert texts in Python, once for each that is distinct."""

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        size = max(len(column) for column in columns)
        rows = list(zip(*(column.to_list() * (size if len(column) < size else 1) for column in columns), strict=True))
        converted = {row: None if None in row else convert(*row) for row in set(rows)}
        return pl.Series([converted[row] for row in rows], dtype=pl.String)

    return pl.map_batches(exprs, apply, return_dtype=pl.String)


def _like_regex(pattern: str, escape: str = "\\") -> str | None:
    """Return a LIKE pattern as a regular expression; None when its escape stands before a plain character or last."""
    out = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None or escaped not in ("_", "%", escape):
                return None
            out.append(re.escape(escaped))
        else:
            out.append({"_": ".", "%": ".*"}.get(character) or re.escape(character))
    return f"(?s)\\A{''.join(out)}\\z"


def _part(read: Callable[[pl.Expr], pl.Expr]) -> Implementation:
    return lambda args, _: Typed(read(args[0].expr).cast(pl.Int32), "INT")


def _date_step(sign: int) -> Implementation:
    """Move a date; one outside the years 1 to 9999, which no DATE of ours can be, is NULL (and a panic in Polars)."""

    def apply(args: list[Typed], _: str) -> Typed:
        day, count = args
        moved = day.expr.cast(pl.Int32).cast(pl.Int64) + sign * count.expr.cast(pl.Int64)
        known = pl.when(moved.is_between(_FIRST_DAY, _LAST_DAY)).then(moved)
        return Typed(known.cast(pl.Int32).cast(pl.Date), "DATE")

    return apply


def _datediff(args: list[Typed], _: str) -> Typed:
    end, start = (argument.expr.cast(pl.Int32).cast(pl.Int64) for argument in args)
    return Typed((end - start).cast(pl.Int32, strict=False), "INT")


FUNCTIONS: dict[str, Implementation] = {
    "and": lambda args, _: Typed(reduce(pl.Expr.and_, [argument.expr for argument in args]), "BOOLEAN"),
    "or": lambda args, _: Typed(reduce(pl.Expr.or_, [argument.expr for argument in args]), "BOOLEAN"),
    "not": lambda args, _: Typed(~args[0].expr, "BOOLEAN"),
    "is_null": lambda args, _: Typed(args[0].expr.is_null(), "BOOLEAN"),
    "+": _arithmetic(lambda a, b: a + b),
    "-": _arithmetic(lambda a, b: a - b),
    "*": _arithmetic(lambda a, b: a * b),
    "/": _divide,
    "div": _whole_divide,
    "%": _remainder,
    "pmod": _positive_remainder,
    "neg": _negative,
    "abs": _abs,
    "ceil": _rounding(lambda value: value.ceil()),
    "floor": _rounding(lambda value: value.floor()),
    "sign": _sign,
    "sqrt": lambda args, _: Typed(_double(args[0]).sqrt(), "DOUBLE"),
    "greatest": _extreme(lambda a, b: a >= b),
    "least": _extreme(lambda a, b: a <= b),
    "coalesce": _coalesce,
    "nullif": _nullif,
    "cast": _cast,
    "like": _like,
    "upper": _text(lambda text: text.str.to_uppercase()),
    "lower": _text(lambda text: text.str.to_lowercase()),
    "length": _text(lambda text: text.str.len_chars().cast(pl.Int32), "INT"),
    "trim": _text(lambda text, *characters: text.str.strip_chars(*(characters or (pl.lit(" "),)))),
    "ltrim": _text(lambda text, *characters: text.str.strip_chars_start(*(characters or (pl.lit(" "),)))),
    "rtrim": _text(lambda text, *characters: text.str.strip_chars_end(*(characters or (pl.lit(" "),)))),
    "substring": _text(_substring),
    "concat": _text(lambda *parts: pl.concat_str(parts)),
    "replace": _text(_replace),
    "left": _text(_left),
    "right": _text(_right),
    "startswith": _text(lambda text, part: text.str.starts_with(part), "BOOLEAN"),
    "endswith": _text(lambda text, part: text.str.ends_with(part), "BOOLEAN"),
    "contains": _text(lambda text, part: text.str.contains(part, literal=True), "BOOLEAN"),
    "instr": _text(_instr, "INT"),
    "reverse": _text(_reverse),
    "year": _part(lambda day: day.dt.year()),
    "month": _part(lambda day: day.dt.month()),
    "day": _part(lambda day: day.dt.day()),
    "dayofweek": _part(lambda day: day.dt.weekday() % 7 + 1),
    "hour": _part(lambda time: time.dt.hour()),
    "minute": _part(lambda time: time.dt.minute()),
    "second": _part(lambda time: time.dt.second()),
    "date_add": _date_step(1),
    "date_sub": _date_step(-1),
    "datediff": _datediff,
}
"""By operator or function, as `grouping.functions` names them."""
