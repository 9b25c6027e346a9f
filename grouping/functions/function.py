"""The arguments of a function."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Function"]


class Function(NamedTuple):
    """The arguments that a function takes; `result_type` has the types of results."""

    params: tuple[str, ...]
    """Kind of each argument: the name of a type (``DOUBLE`` takes every number); ``WHOLE`` (INT, BIGINT); ``NUMBER``
    (any); ``DAY`` (DATE or TIMESTAMP); ``BYTES`` (BINARY or STRING); ``TEXT`` (these, or a type cast to STRING);
    ``HEXED`` (``TEXT`` or ``WHOLE``); ``VALUE`` (any type without parts); ``LIKE`` (a pattern); ``SECONDS``
    (DECIMAL(16,6)); ``SCALE``, ``COUNT``, ``PATTERN``, ``ESCAPE`` (a character), ``GROUPS`` and ``OCCURRENCES``
    (patterns used for more than their presence), ``REPLACEMENT``, ``MASK`` (a character, or NULL), ``KEY`` (of a URL's
    query) and ``ZONE``, which are constants; ``UNIT``, ``FIELD``, ``FORMAT`` and ``PRINTF``, which are part of a
    query's shape; ``PRINTED`` and ``WRITTEN`` (shown by a format); or ``COMMON``: these arguments are widened to a
    common type."""
    optional: int = 0
    """How many of the last parameters may be left out."""
    variadic: bool = False
    """Whether the last parameter may be repeated."""
