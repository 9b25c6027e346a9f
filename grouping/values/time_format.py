"""The reader of patterns of date_format and to_timestamp. Letters that cannot have exactly Spark's meaning are refused.

A pattern is a sequence of fields (a letter, possibly repeated), texts and optional parts, as Java's DateTimeFormatter
reads it.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import NamedTuple

from grouping.model.errors import InputError

__all__ = ["PatternPart", "read_format"]

_WRITTEN = {
    **dict.fromkeys("y", 6),
    **dict.fromkeys("ML", 4),
    **dict.fromkeys("dHhkKms", 2),
    **dict.fromkeys("D", 3),
    **dict.fromkeys("E", 4),
    **dict.fromkeys("S", 9),
    "a": 1,
    **dict.fromkeys("Qq", 4),
    **dict.fromkeys("Xx", 3),
    **dict.fromkeys("Z", 3),
}
"""The letters with which times can be written, each with its largest number of repetitions."""
_READ = frozenset(
    "y yy yyyy M MM MMM MMMM L LL LLL LLLL d dd H HH h hh k kk K KK m mm s ss DDD a X XX XXX".split()
    + ["S" * count for count in range(1, 10)]
)
_NUMERIC = frozenset("yMLdHhkKmsDS")
_FIELD_OF = {"L": "M", "h": "H", "k": "H", "K": "H"}
"""Letter → another letter for the same field."""
_HALF_DAYS = frozenset("hK")


class PatternPart(NamedTuple):
    """A part of a pattern."""

    letter: str
    """The letter of a field; ``[`` or ``]`` for the beginning or end of an optional part; "" for a literal text."""
    times: int
    text: str
    """The characters of a literal text."""


_LONGEST = 1000
"""The largest number of characters of a pattern. The limit is needed because each letter may be a part."""


def read_format(pattern: str, *, reads: bool) -> list[PatternPart]:
    """Return the parts of a pattern.

    Args:
        pattern: The pattern, as for Spark.
        reads: Whether the pattern reads texts; otherwise it writes times.

    Raises:
        InputError: ``unsupported-query``, with the part that would not be exact.
    """
    if len(pattern) > _LONGEST:
        raise _refused(pattern, f"it has more than {_LONGEST:,} characters")
    parts = list(_parts(pattern))
    for part in parts:
        field = part.letter * part.times
        known = field in _READ if reads else part.times <= _WRITTEN.get(part.letter, 0)
        if part.letter and part.letter not in "[]" and not known:
            raise _refused(pattern, f'"{field}" cannot be {"read" if reads else "written"}')
    if reads:
        _check_read(pattern, parts)
    return parts


def _parts(pattern: str) -> list[PatternPart]:
    found: list[PatternPart] = []
    depth = 0
    pieces = pattern.split("'")
    if len(pieces) % 2 == 0:
        raise _refused(pattern, "a quote is not closed")
    for number, piece in enumerate(pieces):
        if number % 2:
            found.append(PatternPart("", 1, piece or "'"))
            continue
        if number and not piece and number + 1 < len(pieces):
            found.append(PatternPart("", 1, "'"))  # two quotes side by side within a quoted text
            continue
        for letter, run in groupby(piece):
            count = len(list(run))
            depth += count * ((letter == "[") - (letter == "]"))
            if letter in "{}#" or depth < 0:
                raise _refused(pattern, f'"{letter}" has a meaning of its own')
            if letter.isascii() and letter.isalpha():
                found.append(PatternPart(letter, count, ""))
            elif letter in "[]":
                found += [PatternPart(letter, 1, "")] * count
            else:
                found.append(PatternPart("", 1, letter * count))
    if depth:
        raise _refused(pattern, "a bracket is not closed")
    return found


def _check_read(pattern: str, parts: list[PatternPart]) -> None:
    letters = [part.letter for part in parts if part.letter and part.letter not in "[]"]
    fields = [_FIELD_OF.get(letter, letter) for letter in letters]
    if len(set(fields)) < len(fields):
        raise _refused(pattern, "a field occurs twice")
    if ("a" in letters) != bool(_HALF_DAYS & set(letters)):
        raise _refused(pattern, "a and h or K belong together")
    if "D" in fields and {"M", "d"} & set(fields):
        raise _refused(pattern, "D is combined with M or d")
    for one, other in pairwise(part for part in parts if part.letter not in ("[", "]")):
        touching = {one.letter, other.letter} <= _NUMERIC and one.letter and other.letter
        if touching and (1 in (one.times, other.times) or "S" in (one.letter, other.letter)):
            raise _refused(pattern, "numbers without a fixed width follow each other")
    if not all(part.text.isascii() for part in parts):
        raise _refused(pattern, "a text in it is not ASCII")


def _refused(pattern: str, why: str) -> InputError:
    return InputError(
        f'format "{pattern[:60]}" is not supported',
        code="unsupported-query",
        detail=f"{why[0].upper()}{why[1:]}.",
        hint="Formats are made of letters such as yyyy-MM-dd HH:mm:ss.SSS; other letters stand in single quotes.",
    )
