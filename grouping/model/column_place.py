"""The place of a column in the record: the text after FROM in a declaration."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from grouping.model.errors import InputError

__all__ = ["STEP", "ColumnPlace", "RecordPath", "declared_path", "parse_path", "path_text", "place_in_value"]

RecordPath = tuple[str | int, ...]
"""Steps from the top of a JSON value: names of fields, and places in an array from 0."""

STEP = re.compile(r"""\.([^.\[\]'"\s*]+)|\["([^"]+)"\]|\['([^']+)'\]|\[(0|[1-9][0-9]{0,8})\]""")
"""A step of a path."""
_BARE = re.compile(r"""[^.\[\]'"\s*]+""")
_FILTER = "?("
"""The beginning of a filter of JSONPath."""
_MOST_STEPS = 32
_LONGEST = 1_000
_LAST_ELEMENT = 255
"""The largest index of an element: the decoder has a field for each element up to the index."""
_SHOWN = 60
_PLACE = re.compile(r"(KEY|HEADER)?(?: ?'((?:[^']|'')*)')?")


class ColumnPlace(NamedTuple):
    """The place in a record from which a column is read."""

    kind: Literal["value", "outer", "header", "key"]
    """``value`` is the event itself. ``outer`` is a value around the event, if the event is an element of an array."""
    path: RecordPath | None = None
    """The path in the value or in a JSON key. None for a header and for the whole key."""
    header: str = ""
    """The header's name."""
    level: int = 0
    """For ``outer``: the number of arrays between the event and the value around it."""

    def __str__(self) -> str:
        """Return the text after FROM in one canonical spelling.

        Example:
            >>> str(ColumnPlace("value", ("data", "p"))), str(ColumnPlace("header", header="ce_type"))
            ("'$.data.p'", "HEADER 'ce_type'")
        """
        if self.kind == "header":
            return f"HEADER {_quoted(self.header)}"
        path = "" if self.path is None else _quoted(self.path_text)
        return f"KEY {path}".rstrip() if self.kind == "key" else path

    @property
    def path_text(self) -> str:
        """The path as text; empty for a header and for the whole key."""
        if self.path is None:
            return ""
        text = path_text(self.path)
        return "^" * self.level + text[1:] if self.level else text

    @classmethod
    @lru_cache(maxsize=10_000)
    def of(cls, text: str) -> ColumnPlace:
        r"""Return the place from the text that `str` made.

        Example:
            >>> ColumnPlace.of("KEY '$[\"a b\"]'")
            ColumnPlace(kind='key', path=('a b',), header='', level=0)
        """
        found = _PLACE.fullmatch(text)
        assert found is not None, "the catalog holds texts of places"
        inner = None if found[2] is None else found[2].replace("''", "'")
        if found[1] == "HEADER":
            return cls("header", header=inner or "")
        if found[1] == "KEY" or inner is None:
            return cls("key", None if inner is None else parse_path(inner))
        return place_in_value(inner)


def place_in_value(text: str) -> ColumnPlace:
    """Return the place that a path names: in the event, or with ``^`` in a value around the event.

    Raises:
        InputError: ``syntax-error``.

    Example:
        >>> place_in_value("^^.resource[0]")
        ColumnPlace(kind='outer', path=('resource', 0), header='', level=2)
    """
    rest = text.lstrip("^")
    if level := len(text) - len(rest):
        return ColumnPlace("outer", parse_path(f"${rest}"), level=level)
    return ColumnPlace("value", parse_path(text))


def declared_path(text: str) -> str:
    """Return the path of a declaration unchanged, and refuse a filter of JSONPath.

    `parse_path` reads a filter as the name of a field, since stored paths may have such names without quotes.

    Raises:
        InputError: ``syntax-error`` for a filter.

    Example:
        >>> declared_path("$.data['a?(b)']")
        "$.data['a?(b)']"
    """
    if any(_FILTER in (step[1] or "") for step in STEP.finditer(text)):
        raise InputError(
            f'path "{text[:_SHOWN]}" has a filter',
            code="syntax-error",
            detail="A path has names and numbers of elements only, and ?( begins a filter.",
            hint="A column of type ARRAY has all elements; a field with such a name is quoted, as in '$[\"a?(b)\"]'.",
        )
    return text


def parse_path(text: str) -> RecordPath:
    """Return the steps of a path.

    Raises:
        InputError: ``syntax-error``.

    Example:
        >>> parse_path('$.data["id.orig_h"][0]'), parse_path("$")
        (('data', 'id.orig_h', 0), ())
    """
    steps: list[str | int] = []
    at = 1
    while text.startswith("$") and at < len(text) and (step := STEP.match(text, at)) is not None:
        steps.append(int(step[4]) if step[4] else step[1] or step[2] or step[3])
        at = step.end()
    if not text.startswith("$") or at < len(text):
        raise InputError(
            f'path "{text[:_SHOWN]}" cannot be read',
            code="syntax-error",
            detail=f"Character {min(at, len(text)) if text.startswith('$') else 0} cannot begin a step of a path.",
            hint="A path is $ and then .name, [\"name\"] or [0], as in '$.data.price'.",
        )
    if len(steps) > _MOST_STEPS or len(text) > _LONGEST:
        raise InputError(
            f'path "{text[:_SHOWN]}" is too long',
            code="syntax-error",
            detail=f"A path has at most {_MOST_STEPS} steps and {_LONGEST} characters.",
        )
    if any(isinstance(step, int) and step > _LAST_ELEMENT for step in steps):
        raise InputError(
            f'path "{text[:_SHOWN]}" names an element beyond the limit',
            code="syntax-error",
            detail=f"The last element that a path can name is [{_LAST_ELEMENT}].",
            hint="A column of type ARRAY has all elements.",
        )
    return tuple(steps)


def path_text(path: RecordPath) -> str:
    """Return a path as text.

    Example:
        >>> path_text(("data", "id.orig_h", 0))
        '$.data["id.orig_h"][0]'
    """
    return "$" + "".join(map(_step_text, path))


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _BARE.fullmatch(step) and _FILTER not in step:
        return f".{step}"
    return f"['{step}']" if '"' in step else f'["{step}"]'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
