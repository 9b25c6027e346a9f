"""The lines of an input. A line becomes a record, or is broken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import msgspec

__all__ = ["BrokenLine", "InputLine", "input_lines", "key_text"]

_MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which some programs write at the beginning of a file."""
_SKIPPED_BYTES = 1 << 20


class BrokenLine(ValueError):
    """A line cannot become a record. The message is the reason, as a sentence without a full stop."""


class InputLine(NamedTuple):
    """A line of the input, and its record."""

    number: int
    """The number of the line, from 1; for a CSV row of several lines, the number of the last line."""
    size: int
    """The number of bytes of the line, including its end."""
    key: bytes | None = None
    value: bytes = b""
    fault: str = ""
    """Why the line cannot become a record; empty for a record."""


def input_lines(source: BinaryIO, longest: int) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of an input, including their ends, each with its number of bytes in the input.

    Args:
        source: The input.
        longest: The largest number of bytes of a line. A longer line is cut, but remains longer than `longest`, so that
            the caller notices it.
    """
    begins = True
    while line := source.readline(longest + 3):
        size = len(line)
        if not line.endswith(b"\n"):
            while rest := source.readline(_SKIPPED_BYTES):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
        if begins:
            line, begins = line.removeprefix(_MARK), False
        yield line, size


def key_text(raw: bytes) -> bytes:
    """Return a record's key from the JSON value of a column: the characters of a string, or else the JSON text.

    Raises:
        BrokenLine: The value is NULL, an object or an array.

    Example:
        >>> key_text(b'"INTC"'), key_text(b"7.50")
        (b'INTC', b'7.50')
    """
    if raw[:1] == b'"':
        return str(msgspec.json.decode(raw)).encode()
    if raw == b"null" or raw[:1] in (b"{", b"["):
        raise BrokenLine("the key column has no text, number or boolean")
    return raw
