"""Finds values inside a JSON text and returns them as JSON texts; the rest is skipped, and no value is decoded."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from grouping.model.column_place import RecordPath

__all__ = ["BLANKS", "JsonParts", "array_parts", "object_parts", "opened"]

BLANKS = b" \t\r\n"
"""The characters that JSON allows around a value."""
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _PathStep:
    """A value that paths lead to or through."""

    __slots__ = ("below", "columns", "opens")

    def __init__(self) -> None:
        self.below: dict[str | int, _PathStep] = {}
        self.columns: list[int] = []
        self.opens = False


class JsonParts:
    """Finds the values at some paths."""

    def __init__(self, paths: Sequence[RecordPath], opens: Collection[RecordPath] = ()) -> None:
        """Prepare to find the values at some paths.

        Args:
            paths: The paths.
            opens: Paths to values that may be strings with JSON in them. Paths of `paths` may lead into this inner
                JSON.
        """
        self._count = len(paths)
        self._root = _PathStep()
        for number, path in enumerate(paths):
            self._step(path).columns.append(number)
        for path in opens:
            self._step(path).opens = True

    def _step(self, path: RecordPath) -> _PathStep:
        node = self._root
        for step in path:
            node = node.below.setdefault(step, _PathStep())
        return node

    def find(self, value: bytes) -> list[bytes | None]:
        """Return the JSON text of the value at each path; None for a missing value.

        Raises:
            msgspec.MsgspecError: The text is no JSON.

        Example:
            >>> JsonParts([("a", "b"), ("c",)]).find(b'{"a": {"b": 1.50}}')
            [b'1.50', None]
        """
        found: list[bytes | None] = [None] * self._count
        _walk(self._root, value.strip(BLANKS), found)
        return found


def _walk(node: _PathStep, value: bytes, found: list[bytes | None]) -> None:
    for number in node.columns:
        found[number] = value
    if not node.below:
        return
    if node.opens:
        value = opened(value)
    if value[:1] == b"{":
        fields = _decode_object(value)
        for step, below in node.below.items():
            if isinstance(step, str) and (part := fields.get(step)) is not None:
                _walk(below, bytes(part), found)
    elif value[:1] == b"[":
        elements = _decode_array(value)
        for step, below in node.below.items():
            if isinstance(step, int) and step < len(elements):
                _walk(below, bytes(elements[step]), found)


def object_parts(value: bytes) -> dict[str, bytes] | None:
    """Return the fields of an object; None for any other text."""
    if value.lstrip(BLANKS)[:1] != b"{":
        return None
    try:
        return {name: bytes(part) for name, part in _decode_object(value).items()}
    except _REFUSALS:
        return None


def array_parts(value: bytes) -> list[bytes] | None:
    """Return the elements of an array; None for any other text."""
    try:
        return list(map(bytes, _decode_array(value)))
    except _REFUSALS:
        return None


def opened(value: bytes) -> bytes:
    r"""Return the object that a JSON string holds as text; return any other value unchanged.

    Example:
        >>> opened(rb'"{\"n\": 1}"'), opened(b'"abc"')
        (b'{"n": 1}', b'"abc"')
    """
    if value[:1] != b'"':
        return value
    try:
        text = _decode_text(value).strip().encode()
    except _REFUSALS:
        return value
    return text if text[:1] == b"{" else value
