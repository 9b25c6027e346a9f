"""Paths of get_json_object, as Spark reads them."""

from __future__ import annotations

import re

from grouping.model.errors import InputError
from grouping.model.wording import counted

__all__ = ["EVERY", "JsonPath", "parse_json_path"]

JsonPath = tuple[str | int, ...]
"""The steps of a path: the name of a field, the index of an element from 0, or `EVERY`."""
EVERY = -1
"""The step to every element of an array."""

_STEP = re.compile(r"\.([^.\[]+)|\['([^'?]+)'\]|\[([0-9]{1,9})\]|\[(\*)\]")


def parse_json_path(text: str) -> JsonPath:
    """Return a path's steps.

    Raises:
        InputError: ``unsupported-query`` for wildcards of fields, and for malformed paths (Spark returns NULL for
        these).

    Example:
        >>> parse_json_path("$.items[0]['unit price']"), parse_json_path("$.items[*].sku")
        (('items', 0, 'unit price'), ('items', -1, 'sku'))
    """
    steps: list[str | int] = []
    at = 1
    while text.startswith("$") and at < len(text):
        step = _STEP.match(text, at)
        if step is None or "*" in (step[1], step[2]):
            break
        steps.append(EVERY if step[4] else int(step[3]) if step[3] else step[1] or step[2])
        at = step.end()
    if not text.startswith("$") or at < len(text):
        raise InputError(
            f'path "{text[:60]}" is not supported',
            code="unsupported-query",
            detail=f"After {counted(min(at, len(text)), 'character')} no further field or element can be read.",
            hint="A path is $ and then .name, ['name'], [0] or [*].",
        )
    return tuple(steps)
