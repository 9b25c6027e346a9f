"""The values that a path finds in a JSON text, as Spark's get_json_object gathers them.

``[*]`` follows Hive: if ``[*]`` finds a single value, this value is the result; several values are returned as an
array. ``[*][*]`` makes a single array.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from grouping.values.json_path import EVERY, JsonPath
from spark_jobs.engine.expressions.nested.json_reader import HALF, JsonText, NoJsonError, plainly_quoted

__all__ = ["json_object"]


def json_object(text: str, path: JsonPath) -> str | None:
    """Return the value at a path: a string without quotes, another value as JSON; None if the path finds nothing.

    Example:
        >>> json_object('{"user": {"id": 7, "tags": ["a", 1.50]}}', ("user", "tags"))
        '["a",1.5]'
        >>> json_object('{"items": [{"sku": "a"}, {"sku": "b"}, {}]}', ("items", EVERY, "sku"))
        '["a","b"]'
        >>> json_object('{"items": [{"sku": "a"}, {}]}', ("items", EVERY, "sku"))
        '"a"'
    """
    found: list[str] = []
    try:
        if not _Gatherer(text).gather(path, _Style.RAW, found):
            return None
    except NoJsonError:
        return None
    result = " ".join(found)
    return None if HALF.search(result) else result


class _Style(Enum):
    RAW = auto()
    """A string without quotes."""
    QUOTED = auto()
    FLATTEN = auto()
    """The elements of an array in place of the array."""


class _Gatherer(JsonText):
    def gather(self, path: JsonPath, style: _Style, into: list[str]) -> bool:
        """Read a value, and append to `into` what the path finds in it; tell whether the path finds anything."""
        begins = self.peek()
        if not path:
            return self._whole(begins, style, into)
        step, rest = path[0], path[1:]
        if begins == "{" and isinstance(step, str):
            return self._field(step, rest, style, into)
        if begins == "[" and step == EVERY:
            return self._each(rest, style, into)
        if begins == "[" and isinstance(step, int):
            if rest[:1] == (EVERY,):
                style = _Style.QUOTED
            found = False
            for place in self._places():
                if place == step:
                    found = self.gather(rest, style, into)
                else:
                    self.copy()
            return found
        self.copy()
        return False

    def _whole(self, begins: str, style: _Style, into: list[str]) -> bool:
        if begins == "[" and style is _Style.FLATTEN:
            return self._flattened(into)
        into.append(self.string() if begins in "\"'" and style is _Style.RAW else self.copy())
        return True

    def _flattened(self, into: list[str]) -> bool:
        """Append an array's elements, with those of nested arrays in place of these arrays; tell whether any exist."""
        before, depth = len(into), 0
        while True:
            if not self.accept("["):
                into.append(self.copy())
            elif not self.accept("]"):
                depth += 1
                continue
            while depth and self.accept("]"):
                depth -= 1
            if not depth:
                return len(into) > before
            self.expect(",")

    def _field(self, name: str, rest: JsonPath, style: _Style, into: list[str]) -> bool:
        """Gather from the first field with the name `name` in which the rest of the path finds a value."""
        found = False
        for key in self.fields():
            if key == name and not found and not self.is_null():
                found = self.gather(rest, style, into)
            else:
                self.copy()
        return found

    def _each(self, rest: JsonPath, style: _Style, into: list[str]) -> bool:
        """Gather from each element of an array."""
        parts: list[str] = []
        doubled = rest[:1] == (EVERY,)
        buffered = not doubled and style is not _Style.QUOTED
        written, self.quote = self.quote, plainly_quoted if buffered else self.quote
        within = _Style.FLATTEN if doubled or style is _Style.FLATTEN else _Style.QUOTED
        count = sum([self.gather(rest[doubled:], within, parts) for _ in self._places()])
        self.quote = written
        array = f"[{','.join(parts)}]"
        if not buffered or count > 1:
            into.append(array)
        elif count == 1:
            into.append(array[1:-1])
        return count > 0

    def _places(self) -> Iterator[int]:
        """Yield the place of each element of an array; the caller then reads the element."""
        place = 0
        for _ in self.values():
            yield place
            place += 1
