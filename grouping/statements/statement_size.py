"""Limits on the size of a statement's text, checked before parsing, whose time grows with the size."""

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
"""The weight of a word."""
_WEIGHTS = (0, 0, 12, _WORD)
"""The weight of a part, by its kind."""
_LISTED, _EQUALITY = 2, 12
"""The weight of a literal in a long list after IN, and of an equality in a long OR."""
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
    """Check that a statement does not have too many words and signs; constants and commas count as less than one.

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
    """Return the number of words and signs of a text; stop counting above `most`.

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
    """Return the weight of a run, by the separators in it, nearly all of which stand between literals."""
    return run.source.count(",") * _LISTED if run.is_list else run.source.count("=") * _EQUALITY
