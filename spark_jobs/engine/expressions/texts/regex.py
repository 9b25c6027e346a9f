"""Spark's functions of regular expressions, by Rust's engine: the texts of one pattern are searched together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from grouping.model.sql_type import INT, STRING, SqlType, array_of
from grouping.values.patterns import Groups, occurrences, rust_groups
from grouping.values.replacement import rust_replacement
from spark_jobs.engine.expressions.by_value import distinct_rows, of_one_length
from spark_jobs.engine.expressions.texts.bounded_search import in_steps, searchable
from spark_jobs.engine.expressions.types import Implementation, Operand, polars_type
from spark_jobs.engine.rows.cpu_budget import checked

__all__ = ["REGEX", "split_texts"]

_MARKS = (*range(0xFDD0, 0xFDF0), *range(1, 0x10FFFF))
"""Characters that may mark places in a text, beginning with code points that texts do not use."""

_TWO_OF_JAVA = r"[\x{10000}-\x{10FFFF}]"
"""Matches a character that takes two of Java's chars."""

SeriesSearch = Callable[..., pl.Series]
"""Takes texts, the pattern and further constants; returns a result for each text that is not NULL."""


def _searched(search: SeriesSearch, read: Callable[[str], Groups], sql_type: SqlType) -> Implementation:
    """Return the implementation of a function of a text, a pattern and constants.

    The result is NULL if an argument is NULL, or if the text is too long to search.
    """

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        texts, *others = of_one_length(columns)
        distinct, codes = distinct_rows(others)
        if len(distinct) == 1:
            return _of_one(texts, distinct[0])
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1)).tolist()
        pieces = [
            _of_one(texts.gather(order[start:end]), distinct[int(codes[order[start]])])
            for start, end in checked(zip(starts, [*starts[1:], len(texts)], strict=True))
        ]
        return pl.concat(pieces).gather(np.argsort(order, kind="stable")) if pieces else texts.cast(dtype)

    def _of_one(texts: pl.Series, constants: tuple[Any, ...]) -> pl.Series:
        if None in constants:
            return pl.Series([None], dtype=dtype).new_from_index(0, len(texts))
        pattern, *rest = constants
        groups = read(pattern)
        texts = searchable(texts, groups.size)
        throughout = read is occurrences
        return in_steps(lambda some: search(some, groups, *rest).cast(dtype), texts, groups.size, throughout=throughout)

    dtype = polars_type(sql_type)
    return lambda args, _: Operand(
        pl.map_batches([argument.expr for argument in args], apply, return_dtype=dtype), sql_type
    )


def _extract(texts: pl.Series, pattern: Groups, group: int = 1) -> pl.Series:
    """Return a group of the first occurrence; "" if there is none; NULL if the pattern occurs but has no such group."""
    occurs = texts.str.contains(pattern.text)
    if not 0 <= group <= pattern.number:
        return pl.select(pl.when(~occurs).then(pl.lit(""))).to_series()
    found = texts.str.extract(pattern.text, group + 1).fill_null("")
    return pl.select(pl.when(occurs.is_not_null()).then(found)).to_series()


def _substr(texts: pl.Series, pattern: Groups) -> pl.Series:
    """Return the first occurrence; as in Spark, NULL if there is none or if it is empty."""
    found = texts.str.extract(pattern.text, 1)
    return pl.select(pl.when(found != "").then(found)).to_series()


def _extract_all(texts: pl.Series, pattern: Groups, group: int = 1) -> pl.Series:
    """Return a group of each occurrence; NULL if the pattern occurs but has no such group.

    Polars finds all occurrences, or the groups of one occurrence, but not the groups of all. Therefore each occurrence
    is replaced by its group between two marks, and the text is split at the marks.
    """
    if not 0 <= group <= pattern.number:
        return pl.select(pl.when(~texts.str.contains(pattern.text)).then(pl.lit([], pl.List(pl.String)))).to_series()
    mark = next(mark for mark in map(chr, _MARKS) if not texts.str.contains(mark, literal=True).any())
    marked = texts.str.replace_all(pattern.text, f"{mark}${{{group + 1}}}{mark}")
    return marked.str.split(mark).list.gather_every(2, 1)


def split_texts(texts: pl.Series, pattern: str, limit: int) -> pl.Series:
    """Return the texts between occurrences of a pattern: at most `limit` texts if `limit` is above 0.

    The result is NULL for a text that is too long for the pattern.
    """
    groups = occurrences(pattern)
    texts = searchable(texts, groups.size)
    return in_steps(lambda some: _split(some, groups, limit), texts, groups.size, throughout=True)


def _split(texts: pl.Series, groups: Groups, limit: int) -> pl.Series:
    mark = next(mark for mark in map(chr, _MARKS) if not texts.str.contains(mark, literal=True).any())
    behind = f"${{{groups.number + 2}}}" if groups.ends else ""
    if limit <= 0:
        return texts.str.replace_all(groups.text, mark + behind).str.split(mark)
    marked = texts.str.replace_all(groups.text, f"{mark}${{1}}{mark}{behind}").str.split(mark)
    last = 2 * limit - 2
    parts = [each and each[:last:2] + ["".join(each[last:])] * (len(each) > last) for each in marked.to_list()]
    return pl.Series(parts, dtype=pl.List(pl.String))


def _replace(texts: pl.Series, pattern: Groups, replacement: str) -> pl.Series:
    """Return the text with each occurrence replaced. If a last ``$`` matched before a line end, the line end stays."""
    written = rust_replacement(replacement, pattern.number)
    if written is None:
        return pl.select(pl.when(~texts.str.contains(pattern.text)).then(texts)).to_series()
    return texts.str.replace_all(pattern.text, written + (f"${{{pattern.number + 2}}}" if pattern.ends else ""))


def _instr(texts: pl.Series, pattern: Groups) -> pl.Series:
    """Return the place where the first occurrence begins, counted from 1 in Java's chars; 0 if there is none."""
    at = texts.str.find(pattern.text)
    before = pl.lit(texts).cast(pl.Binary).bin.slice(0, at).cast(pl.String)
    place = before.str.len_chars() + before.str.count_matches(_TWO_OF_JAVA) + 1
    found = pl.when(at.is_null()).then(0).otherwise(place)
    return pl.select(pl.when(texts.is_not_null()).then(found)).to_series()


REGEX: dict[str, Implementation] = {
    "regexp_count": _searched(lambda texts, pattern: texts.str.count_matches(pattern.text), occurrences, INT),
    "regexp_extract": _searched(_extract, rust_groups, STRING),
    "regexp_extract_all": _searched(_extract_all, occurrences, array_of(STRING)),
    "regexp_instr": _searched(_instr, rust_groups, INT),
    "regexp_replace": _searched(_replace, occurrences, STRING),
    "regexp_substr": _searched(_substr, rust_groups, STRING),
}
"""The implementation by function; the names are those in `grouping.functions`."""
