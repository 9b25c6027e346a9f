"""Spark's functions of words, of lists in texts and of similarity, computed value by value, over code points."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

import polars as pl

from grouping.model.sql_type import BOOLEAN, INT, STRING, SqlType, array_of
from grouping.values.printf import Conversion, parse_format
from spark_jobs.engine.expressions.by_value import distinct_rows, each_distinct, of_one_length
from spark_jobs.engine.expressions.nested.json_reader import json_array_length, json_object_keys
from spark_jobs.engine.expressions.texts.urls import part_of_url
from spark_jobs.engine.expressions.types import Implementation, Operand, by_value
from spark_jobs.engine.rows.cpu_budget import checked

__all__ = ["WORDS"]

_SOUNDS = "01230127022455012623017202"
"""The code of each letter from A to Z; a letter with the code 7 is skipped."""
_COMPARED = 10**8
"""The largest number of pairs of characters that `levenshtein` compares; its time grows with the number of pairs."""
_SHORT = 2**31
"""The largest INT plus one: Spark's sums wrap round to the smallest INT at this number."""
_LAST_OF_JAVA = "\uffff"
"""The last character with a single Java char; a later character has two chars, and Spark takes neither for a letter."""


def _initcap(text: str) -> str:
    """Return a text with each word's first character in title case, computed from the original character."""
    words = zip(text.split(" "), text.lower().split(" "), strict=True)
    return " ".join(word[:1].title() + small[len(word[:1].lower()) :] for word, small in words)


def _soundex(text: str) -> str:
    """Return the soundex code of a text that begins with an ASCII letter, as UTF8String.soundex does; else the text."""
    first = text[:1].upper() if text.isascii() or text[:1].isascii() else ""
    if not ("A" <= first <= "Z"):
        return text
    sounds, last = first, _SOUNDS[ord(first) - 65]
    for letter in text[1:]:
        capital = letter.upper() if letter.isascii() else ""
        sound = _SOUNDS[ord(capital) - 65] if "A" <= capital <= "Z" else ""
        if not sound:
            last = "0"
        elif sound != "7":
            if sound not in ("0", last):
                sounds += sound
                if len(sounds) == 4:
                    break
            last = sound
    return sounds.ljust(4, "0")


def _levenshtein(args: list[Operand], _: SqlType) -> Operand:
    """Return the number of edits between two texts; -1 if it exceeds a threshold. A NULL threshold counts as 0."""
    texts = [argument.expr for argument in args[:2]]
    edits = each_distinct(texts, _edits, pl.Int32)
    if len(args) == 2:
        return Operand(edits, INT)
    near = pl.when(edits <= args[2].expr.fill_null(0)).then(edits).otherwise(pl.lit(-1, pl.Int32))
    return Operand(pl.when(edits.is_not_null()).then(near), INT)


def _edits(left: str, right: str) -> int | None:
    """Return the number of edits between two texts, by Hyyrö's bit-parallel form of Myers' algorithm.

    Two texts of 10,000 characters take some 20 ms. None if the product of the lengths is above `_COMPARED`.
    """
    if len(left) * len(right) > _COMPARED:
        return None
    if not left:
        return len(right)
    places: dict[str, int] = {}
    for place, letter in enumerate(left):
        places[letter] = places.get(letter, 0) | 1 << place
    every, top = (1 << len(left)) - 1, 1 << (len(left) - 1)
    more, less, distance = every, 0, len(left)
    for letter in right:
        equal = places.get(letter, 0)
        diagonal = (((equal & more) + more) ^ more) | equal | less
        rises, falls = less | ~(diagonal | more) & every, diagonal & more
        distance += bool(rises & top) - bool(falls & top)
        rises, falls = (rises << 1 | 1) & every, falls << 1 & every
        more, less = (falls | ~(diagonal | rises)) & every, rises & diagonal
    return distance


def _overlay(text: str, put: str, start: int, length: int = -1) -> str:
    """Return a text with a part replaced: Spark's substrings before and after the part, with `put` between them."""
    behind = _wrapped(start + (length if length >= 0 else len(put)))
    return _cut(text, 1, _wrapped(start - 1)) + put + _cut(text, behind, _SHORT - 1)


def _wrapped(number: int) -> int:
    return (number + _SHORT) % (2 * _SHORT) - _SHORT


def _cut(text: str, start: int, length: int) -> str:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = min(begin + length, len(text))
    return text[max(begin, 0) : max(end, 0)]


def _find_in_set(word: str, listed: str) -> int:
    words = listed.split(",")
    return words.index(word) + 1 if "," not in word and word in words else 0


def _substring_index(text: str, delimiter: str, count: int) -> str | None:
    """Return the text before the `count`-th delimiter; delimiters may overlap.

    For a negative `count`, the delimiters are counted from the end, and the text after the delimiter is returned. None
    for the smallest INT: Spark fails, because it cannot negate this number.
    """
    if count == -(2**31) and delimiter:
        return None
    if not delimiter or not count:
        return ""
    at = -1 if count > 0 else len(text) + 1
    for _ in range(abs(count)):
        at = text.find(delimiter, at + 1) if count > 0 else text.rfind(delimiter, 0, max(at - 1 + len(delimiter), 0))
        if at < 0:
            return text
    return text[:at] if count > 0 else text[at + len(delimiter) :]


def _elt(args: list[Operand], _: SqlType) -> Operand:
    """Return the text with a number among the texts, counted from 1; NULL if no text has this number."""
    place, *texts = (argument.expr for argument in args)
    chosen = pl.lit(None, pl.String)
    for number, text in reversed(list(enumerate(texts, 1))):
        chosen = pl.when(place == number).then(text).otherwise(chosen)
    return Operand(chosen, STRING)


def _mask(args: list[Operand], _: SqlType) -> Operand:
    """Replace letters, digits and others by mask characters; a kind of characters with a NULL mask stays unchanged."""

    def mask(text: str | None, *given: str | None) -> str | None:
        if text is None:
            return None
        masks = (*given, *("X", "x", "n", None)[len(given) :])
        shown = dict(zip(("Lu", "Ll", "Nd"), masks, strict=False))
        return "".join(_masked(letter, shown, masks[3]) for letter in text)

    return Operand(_with_nulls([argument.expr for argument in args], mask), STRING)


def _masked(letter: str, masks: dict[str, str | None], other: str | None) -> str:
    if letter > _LAST_OF_JAVA:
        return letter if other is None else other * 2
    mask = masks.get(unicodedata.category(letter), other)
    return letter if mask is None else mask


def _format_string(args: list[Operand], _: SqlType) -> Operand:
    kinds = [argument.type for argument in args[1:]]

    def form(text: str | None, *values: object) -> str | None:
        if text is None:
            return None
        parts = parse_format(text)
        return "".join(
            _printed(part, values[part.argument], kinds[part.argument]) if isinstance(part, Conversion) else part
            for part in parts
        )

    return Operand(_with_nulls([argument.expr for argument in args], form), STRING)


def _printed(part: Conversion, value: object, sql_type: SqlType) -> str:
    flags, width = part.flags, part.width
    if value is None:
        shown, flags = "NULL" if part.kind == "X" else "null", flags.replace("0", "")
    elif part.kind == "d":
        shown = _decimal(int(value), flags, width)  # type: ignore[call-overload]  # the compiler checks the type
    elif part.kind in "xXo":
        bits = 32 if sql_type.name == "INT" else 64
        digits = format(int(value) % (1 << bits), part.kind)  # type: ignore[call-overload]
        before = {"x": "0x", "X": "0X", "o": "0"}[part.kind] if "#" in flags else ""
        shown = before + (digits.zfill(width - len(before)) if "0" in flags else digits)
    else:
        shown = str(value).lower() if isinstance(value, bool) else str(value)
    missing = " " * (width - len(shown.encode("utf-16-le")) // 2)
    return shown + missing if "-" in flags else missing + shown


def _decimal(value: int, flags: str, width: int) -> str:
    digits = f"{abs(value):,}" if "," in flags else str(abs(value))
    before = "+" if "+" in flags else " " if " " in flags else ""
    before, after = (("(", ")") if "(" in flags else ("-", "")) if value < 0 else (before, "")
    return before + (digits.zfill(width - len(before) - len(after)) if "0" in flags else digits) + after


def _with_nulls(exprs: Sequence[pl.Expr], convert: Callable[..., str | None]) -> pl.Expr:
    """Return `convert` of the values of each row, NULLs included."""

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        distinct, codes = distinct_rows(of_one_length(columns))
        return pl.Series([convert(*row) for row in checked(distinct)], dtype=pl.String).gather(codes)

    return pl.map_batches(list(exprs), apply, return_dtype=pl.String)


def _luhn_check(text: str) -> bool:
    if not text or not all("0" <= letter <= "9" for letter in text):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(text)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


WORDS: dict[str, Implementation] = {
    "elt": _elt,
    "find_in_set": by_value(_find_in_set, INT),
    "format_string": _format_string,
    "initcap": by_value(_initcap),
    "json_array_length": by_value(json_array_length, INT),
    "json_object_keys": by_value(json_object_keys, array_of(STRING)),
    "levenshtein": _levenshtein,
    "luhn_check": by_value(_luhn_check, BOOLEAN),
    "mask": _mask,
    "overlay": by_value(_overlay),
    "parse_url": by_value(part_of_url),
    "soundex": by_value(_soundex),
    "space": by_value(lambda count: " " * max(count, 0)),
    "substring_index": by_value(_substring_index),
}
"""The implementation by function; the names are those in `grouping.functions`."""
