"""LIKE and RLIKE with another pattern in each row.

Polars keeps only the last few regular expressions that it compiled. With thousands of patterns that alternate between
rows, compiling would cost 10 µs a row. Therefore the texts with the same pattern are searched together. A LIKE on the
beginning, the end, a part or the whole of a text needs no regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from grouping.model.sql_type import BOOLEAN, SqlType
from grouping.values.like_pattern import is_too_large, like_parts
from grouping.values.patterns import LAST_LINE_END, Presence, rust_pattern
from spark_jobs.engine.expressions.by_value import converted, distinct_rows, of_one_length
from spark_jobs.engine.expressions.texts.bounded_search import in_steps, searchable
from spark_jobs.engine.expressions.types import Operand
from spark_jobs.engine.rows.cpu_budget import checked

__all__ = ["like", "rlike"]

PatternKind = Literal["whole", "start", "end", "part", "regex", "pattern"]
"""``regex`` is the regular expression of a LIKE, ``pattern`` the conditions of an RLIKE."""


class _LikeSearch(NamedTuple):
    """The search for the pattern of a LIKE or RLIKE."""

    kind: PatternKind
    text: str
    size: int = 0
    """The number of elements of the regular expression; 0 if the search has none."""


_BY_TEXT: dict[PatternKind, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "whole": lambda text, wanted: text == wanted,
    "start": lambda text, wanted: text.str.starts_with(wanted),
    "end": lambda text, wanted: text.str.ends_with(wanted),
    "part": lambda text, wanted: text.str.contains(wanted, literal=True),
}
_BY_ONE: dict[PatternKind, Callable[[pl.Series, str], pl.Series]] = {
    "whole": lambda text, wanted: text == wanted,
    "start": lambda text, wanted: text.str.starts_with(wanted),
    "end": lambda text, wanted: text.str.ends_with(wanted),
    "part": lambda text, wanted: text.str.contains(wanted, literal=True),
    "regex": lambda text, wanted: text.str.contains(wanted),
    "pattern": lambda text, wanted: _present(text, rust_pattern(wanted)),
}
"""The search if all rows have the same pattern.

For few rows, this search is many times as fast as the one in `_BY_TEXT`. The difference matters since an OR may have
hundreds of LIKEs.
"""


def like(args: list[Operand], _: SqlType) -> Operand:
    """Compile LIKE; a third argument is the escape character. The result is NULL for a pattern that Spark refuses."""
    return _searched(args, _like_search)


def rlike(args: list[Operand], _: SqlType) -> Operand:
    """Compile RLIKE."""
    return _searched(args, _pattern_search)


def _pattern_search(pattern: str) -> _LikeSearch:
    return _LikeSearch("pattern", pattern, rust_pattern(pattern).size)


def _present(text: pl.Series, pattern: Presence) -> pl.Series:
    """Return for each text whether it satisfies the conditions of `pattern`, which stand for one pattern of Java."""
    found = _found(text, pattern)
    if pattern.twice:
        found |= _found(text.str.replace(LAST_LINE_END, ""), pattern)
    for each in pattern.also:
        found &= _present(text, each)
    for each in pattern.never:
        found &= ~_present(text, each)
    return found


def _found(text: pl.Series, pattern: Presence) -> pl.Series:
    found = text.str.contains(pattern.text)
    return found & ~text.str.contains(pattern.unless) if pattern.unless else found


def _searched(args: list[Operand], search: Callable[..., _LikeSearch | None]) -> Operand:
    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        text, *patterns = of_one_length(columns)
        distinct, codes = distinct_rows(patterns)
        searches = converted(distinct, search)
        if len(searches) == 1 and (only := searches[0]) is not None:
            return in_steps(partial(_by_one, only), searchable(text, only.size), only.size)
        sizes = np.array([one.size if one else 0 for one in searches])
        return _found_by(searchable(text, sizes[codes]), searches, codes)

    return Operand(pl.map_batches([argument.expr for argument in args], apply, return_dtype=pl.Boolean), BOOLEAN)


def _by_one(search: _LikeSearch, text: pl.Series) -> pl.Series:
    return _BY_ONE[search.kind](text, search.text)


def _found_by(text: pl.Series, searches: Sequence[_LikeSearch | None], codes: NDArray[np.int64]) -> pl.Series:
    """Return for each text whether the search with the text's code finds it; NULL if the text or its search is None."""
    found = np.zeros(len(text), np.bool_)
    unknown = text.is_null().to_numpy() | np.array([one is None for one in searches], np.bool_)[codes]
    kinds = np.array([one.kind if one else "" for one in searches])[codes]
    for kind in {one.kind for one in searches if one}:
        rows = np.flatnonzero((kinds == kind) & ~unknown)
        if not rows.size:
            continue
        if kind in ("regex", "pattern"):
            found[rows] = _by_regex(text, rows, codes[rows], searches)
        else:
            wanted = pl.Series([one.text if one else None for one in searches], dtype=pl.String)
            frame = pl.DataFrame({"text": text.gather(rows), "wanted": wanted.gather(codes[rows])})
            found[rows] = frame.select(_BY_TEXT[kind](pl.col("text"), pl.col("wanted")).alias("found"))[
                "found"
            ].to_numpy()
    return pl.Series(found).set(pl.Series(unknown), None)


def _by_regex(
    text: pl.Series, rows: NDArray[np.intp], codes: NDArray[np.int64], searches: Sequence[_LikeSearch | None]
) -> NDArray[np.bool_]:
    """Search the texts of each regular expression together."""
    order = np.argsort(codes, kind="stable")
    texts = text.gather(rows[order])
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1)).tolist()
    found = np.zeros(rows.size, np.bool_)
    for start, end in checked(zip(starts, [*starts[1:], rows.size], strict=True)):
        search = searches[int(codes[order[start]])]
        assert search is not None, "rows without one were left out"
        found[order[start:end]] = in_steps(partial(_by_one, search), texts[start:end], search.size).to_numpy()
    return found


@lru_cache(maxsize=65_536)
def _like_search(pattern: str, escape: str = "\\") -> _LikeSearch | None:
    """Return the search of a LIKE pattern.

    None if an escape character is last or stands before a plain character, or if the pattern is too large, which only
    a pattern from a column can be.
    """
    parts = None if is_too_large(pattern) else like_parts(pattern, escape)
    if parts is None:
        return None
    # Only the part between the outermost % is searched for: much faster than matching the whole text.
    first, last = parts[:1] == ["%"], parts[-1:] == ["%"]
    inner = parts[first : len(parts) - (last and len(parts) > first)]
    if not any(part in ("%", "_") for part in inner):
        kind: PatternKind = "part" if first and last else "end" if first else "start" if last else "whole"
        return _LikeSearch(kind, "".join(part[1:] for part in inner))
    regex = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[1:]) for part in inner)
    start, end = "" if first else "\\A", "" if last else "\\z"
    return _LikeSearch("regex", f"(?s){start}{regex}{end}", len(inner))
