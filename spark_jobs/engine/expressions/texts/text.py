"""Spark's functions of strings over typed Polars expressions; a string is a sequence of code points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.sql_type import BINARY, BOOLEAN, INT, STRING, SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.texts.search import like, rlike
from spark_jobs.engine.expressions.types import Implementation, Operand, by_value

__all__ = ["BYTES", "FUNCTIONS"]

_LONG_PART = 10_000
"""The largest size of a part, in bytes, for which Polars may make a regular expression."""


def _text(build: Callable[..., pl.Expr], sql_type: SqlType = STRING) -> Implementation:
    """Return the implementation of a function of strings and whole numbers; the result is NULL if an argument is."""

    def apply(args: list[Operand], _: SqlType) -> Operand:
        exprs = [argument.expr for argument in args]
        known = reduce(pl.Expr.and_, [expr.is_not_null() for expr in exprs])
        return Operand(pl.when(known).then(build(*exprs)), sql_type)

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
    """Return the position of a part in code points, converted from Polars' position in bytes."""
    offset = text.str.find(part, literal=True)
    before = text.cast(pl.Binary).bin.slice(0, offset).cast(pl.String).str.len_chars().cast(pl.Int32)
    return pl.when(offset.is_null()).then(pl.lit(0, pl.Int32)).otherwise(before + 1)


def _contains(text: pl.Expr, part: pl.Expr) -> pl.Expr:
    """Tell whether a text contains a part.

    `str.contains` makes a regular expression of the part, and fails if the part is long.
    """

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        frame = pl.DataFrame({"text": columns[0], "part": columns[1]})
        longest = frame["part"].str.len_bytes().to_numpy().max(initial=0)
        text, part = pl.col("text"), pl.col("part")
        if longest > _LONG_PART:
            found = text.str.find(part, literal=True).is_not_null()
        else:
            found = text.str.contains(part, literal=True)
        return frame.select(found).to_series()

    return pl.map_batches([text, part], apply, return_dtype=pl.Boolean)


def _reverse(text: pl.Expr) -> pl.Expr:
    """Reverse the code points of a text; Polars' own function would reverse graphemes."""
    return text.map_batches(
        lambda values: pl.Series(pc.utf8_reverse(values.to_arrow().cast(pa.large_string()))), return_dtype=pl.String
    )


def _replace(text: pl.Expr, old: pl.Expr, new: pl.Expr | None = None) -> pl.Expr:
    """Replace parts of texts by a split and a join, since both accept a different part in each row."""
    joined = text.str.split(old).list.join(pl.lit("") if new is None else new)
    return pl.when(old == "").then(text).otherwise(joined)


def _padded(*, left: bool) -> Implementation:
    """Return the implementation of lpad or rpad; a negative length means 0, and an empty padding only cuts the text."""

    def pad(text: str, length: int, padding: str = " ") -> str:
        missing = max(length, 0) - len(text)
        if missing <= 0 or not padding:
            return text[: max(length, 0)]
        filling = (padding * (missing // len(padding) + 1))[:missing]
        return filling + text if left else text + filling

    return by_value(pad)


def _repeat(text: str, times: int) -> str:
    return text * max(times, 0)


def _translate(text: str, old: str, new: str) -> str:
    """Replace each character of `old` by the character at its place in `new`, or by nothing if `new` is too short.

    If `old` has a character twice, the first place counts.
    """
    table: dict[int, str | None] = {}
    for i, character in enumerate(old):
        table.setdefault(ord(character), new[i] if i < len(new) else None)
    return text.translate(table)


def _split_part(text: str, delimiter: str, part: int) -> str | None:
    """Return the part with the number `part`; a negative number counts from the end.

    The result is NULL for the number 0, and for the smallest INT, since Java cannot negate it.
    """
    if part in (0, -(2**31)):
        return None
    parts = text.split(delimiter) if delimiter else [text]
    at = part - 1 if part > 0 else len(parts) + part
    return parts[at] if 0 <= at < len(parts) else ""


def _locate(args: list[Operand], sql_type: SqlType) -> Operand:
    """Return the place of a part in a text, searched from a position on; 0 for a position that is NULL or below 1."""
    part, text, *starts = (argument.expr for argument in args)
    if not starts:
        return by_value(lambda part, text: text.find(part) + 1, INT)(args, sql_type)
    found = each_distinct([part, text, *starts], _found, pl.Int32)
    return Operand(pl.when(starts[0].is_null()).then(pl.lit(0, pl.Int32)).otherwise(found), INT)


def _found(part: str, text: str, start: int) -> int:
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def _octets(value: Operand) -> pl.Expr:
    size = value.expr.bin.size() if value.type == BINARY else value.expr.str.len_bytes()
    return size.cast(pl.Int32)


def _length(args: list[Operand], _: SqlType) -> Operand:
    (value,) = args
    size = _octets(value) if value.type == BINARY else value.expr.str.len_chars().cast(pl.Int32)
    return Operand(size, INT)


def _concat_ws(args: list[Operand], _: SqlType) -> Operand:
    """Join the arguments that are not NULL."""
    separator, *parts = (argument.expr for argument in args)
    joined = pl.concat_list(parts).list.join(separator, ignore_nulls=True) if parts else pl.lit("")
    return Operand(pl.when(separator.is_not_null()).then(joined), STRING)


def _joined_bytes(separator: pl.Expr, *parts: pl.Expr) -> pl.Expr:
    lengths = pl.sum_horizontal([_bytes(part) for part in parts])
    count = pl.sum_horizontal([part.is_not_null().cast(pl.Int64) for part in parts])
    return lengths + _bytes(separator) * pl.max_horizontal(count - 1, pl.lit(0, pl.Int64))


def _replaced_bytes(text: pl.Expr, old: pl.Expr, new: pl.Expr | None = None) -> pl.Expr:
    found = pl.when(old != "").then(text.str.count_matches(old, literal=True).cast(pl.Int64)).otherwise(0)
    return _bytes(text) + found * ((0 if new is None else _bytes(new)) - _bytes(old))


def _bytes(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes().cast(pl.Int64)


BYTES: dict[str, Callable[..., pl.Expr]] = {
    "concat": lambda *parts: reduce(pl.Expr.add, map(_bytes, parts)),
    "concat_ws": lambda separator, *parts: _joined_bytes(separator, *parts) if parts else pl.lit(0),
    "replace": _replaced_bytes,
    "repeat": lambda text, times: _bytes(text) * times.cast(pl.Int64),
}
"""By function: the number of bytes of the result, computed from the operands before the result is made."""

FUNCTIONS: dict[str, Implementation] = {
    "like": like,
    "rlike": rlike,
    "upper": _text(lambda text: text.str.to_uppercase()),
    "lower": _text(lambda text: text.str.to_lowercase()),
    "length": _length,
    "octet_length": lambda args, _: Operand(_octets(args[0]), INT),
    "bit_length": lambda args, _: Operand(_octets(args[0]) * 8, INT),
    "trim": _text(lambda text, *characters: text.str.strip_chars(*(characters or (pl.lit(" "),)))),
    "ltrim": _text(lambda text, *characters: text.str.strip_chars_start(*(characters or (pl.lit(" "),)))),
    "rtrim": _text(lambda text, *characters: text.str.strip_chars_end(*(characters or (pl.lit(" "),)))),
    "substring": _text(_substring),
    "split_part": by_value(_split_part),
    "concat": _text(lambda *parts: pl.concat_str(parts)),
    "concat_ws": _concat_ws,
    "replace": _text(_replace),
    "translate": by_value(_translate),
    "left": _text(_left),
    "right": _text(_right),
    "lpad": _padded(left=True),
    "rpad": _padded(left=False),
    "repeat": by_value(_repeat),
    "startswith": _text(lambda text, part: text.str.starts_with(part), BOOLEAN),
    "endswith": _text(lambda text, part: text.str.ends_with(part), BOOLEAN),
    "contains": _text(_contains, BOOLEAN),
    "instr": _text(_instr, INT),
    "locate": _locate,
    "ascii": by_value(lambda text: ord(text[0]) if text else 0, INT),
    "reverse": _text(_reverse),
}
"""The implementation by function; the names are those in `grouping.functions`."""
