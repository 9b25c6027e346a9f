"""Limits on the size of a statement's text, checked before parsing, since large texts take long to parse."""

from __future__ import annotations

import re
from functools import lru_cache

from grouping.model.errors import InputError
from grouping.statements.literal_runs import LiteralRun, cut_runs

__all__ = ["check_bytes", "check_words", "words"]

_PARTS = re.compile(
    r"(--[^\n]*|/\*.*?(?:\*/|\Z))"  # comments
    r"|('[^']*(?:''[^']*)*'|[0-9]\w*(?:\.\w*)?|,)"  # constants, and the commas between them
    r'|("[^"]*"|`[^`]*`|\w+|[^\s\w])',  # names, keywords and signs
    re.DOTALL,
)
_WORD = 24
"""The weight of a word or sign. Constants, commas and parts of long lists weigh less."""
_WEIGHTS = (0, 0, 12, _WORD)
"""The weight of a part by its group in `_PARTS`: (no group), comment, constant or comma, word or sign."""
_LISTED, _EQUALITY = 2, 12
"""The weights in runs that `literal_runs` cuts out: of a literal after IN, and of an equality in an OR."""
_PER_WORD = _WORD // _LISTED


def check_bytes(text: str, limit: int) -> None:
    """Check that a command's text is not too long.

    Raises:
        InputError: ``command-too-large``.
    """
    if len(text) * 4 > limit and (size := len(text.encode("utf-8", "surrogatepass"))) > limit:
        raise InputError(
            "the command is too large",
            code="command-too-large",
            detail=f"Its text has {size} bytes, and the limit is {limit}.",
        )


def check_words(text: str, limit: int) -> None:
    """Check that a statement does not have too many words and signs. A constant or a comma counts as half a word.

    Raises:
        InputError: ``quota-exceeded``.
    """
    if len(text) > limit and words(text, limit) > limit:
        raise InputError(
            "the statement is too large",
            code="quota-exceeded",
            detail=f"The statement has more than {limit:,} words and signs; two constants or commas count as one, and "
            f"{_PER_WORD} constants of a long list after IN.",
            hint="Write an OR of equalities as IN, or divide the query into several.",
        )


@lru_cache(maxsize=100)
def words(text: str, most: int) -> int:
    """Return the weight of a text in words, rounded up; stop counting above `most`.

    Example:
        >>> words("SELECT a FROM s WHERE a IN (1, 2, 3)", 100), words("SELECT a FROM s", 2)
        (12, 3)
    """
    cut = cut_runs(text)
    weight = sum(_weight(run) for run in cut.runs.values())
    for part in _PARTS.finditer(cut.rest):
        weight += _WEIGHTS[part.lastindex or 0]
        if weight > _WORD * most:
            break
    return -(-weight // _WORD)


def _weight(run: LiteralRun) -> int:
    """Return the weight of a run from its separators; the few that stand within strings are counted too."""
    return run.source.count(",") * _LISTED if run.is_list else run.source.count("=") * _EQUALITY
