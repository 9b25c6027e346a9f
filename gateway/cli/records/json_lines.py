"""Reads JSON lines. Each line is the value of a record, and is published byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from gateway.cli.records.input_lines import BrokenLine, InputLine, input_lines, key_text
from grouping.model.column_place import RecordPath

__all__ = ["json_lines"]

_decode = msgspec.json.Decoder().decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


def json_lines(source: BinaryIO, key_path: RecordPath | None, longest: int) -> Iterator[InputLine]:
    """Yield the records of an input. Empty lines are skipped.

    Args:
        source: The input.
        key_path: The path of the value that becomes the record's key; None for records without a key.
        longest: The largest number of bytes of a record's key and value together.
    """
    for number, (line, size) in enumerate(input_lines(source, longest), 1):
        value = line.rstrip(b"\r\n")
        if not value.strip():
            continue
        try:
            yield InputLine(number, size, _checked(value, key_path, longest), value)
        except BrokenLine as error:
            yield InputLine(number, size, fault=str(error))


def _checked(line: bytes, key_path: RecordPath | None, longest: int) -> bytes | None:
    """Check a line, and return the record's key.

    Raises:
        BrokenLine: The line cannot become a record.
    """
    if len(line) > longest:
        raise BrokenLine(f"the line is longer than {longest:,} bytes, the size of a record")
    try:
        value = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenLine(f"the line is not JSON: {error}") from None
    if not isinstance(value, dict | list):
        raise BrokenLine("the line is JSON, but not an object")
    key = None if key_path is None else _key(line, key_path)
    if len(line) + len(key or b"") > longest:
        raise BrokenLine(f"key and value are longer than {longest:,} bytes, the size of a record")
    return key


def _key(line: bytes, path: RecordPath) -> bytes:
    raw = line
    try:
        for step in path:
            raw = bytes(_fields(raw)[step] if isinstance(step, str) else _elements(raw)[step])
    except (msgspec.ValidationError, KeyError, IndexError):
        raise BrokenLine("the record lacks the key column") from None
    return key_text(raw.strip())
