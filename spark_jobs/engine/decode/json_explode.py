"""Records with an array of events: cuts them into the elements, and the JSON texts of the values around the elements.

A typed decoder decodes all elements of an array at once. If an element must be read exactly, the array is cut into the
texts of its elements. If the cutter refuses a value, the value is read exactly (`json_exact`), and new texts of its
elements are made from the values that were read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from grouping.model.catalog import StreamColumn
from grouping.model.column_place import ColumnPlace, RecordPath, path_text
from grouping.model.explode import explode_text
from grouping.values.variant import MISSING
from spark_jobs.engine.decode.json_events import REFUSALS, Element, needs_escape
from spark_jobs.engine.decode.json_exact import WrongRecord, json_kind, read_json, value_at
from spark_jobs.engine.decode.json_layers import layers_of
from spark_jobs.engine.decode.json_number import JsonNumber
from spark_jobs.engine.rows.arrays import Ints

__all__ = ["Exploder", "ExplodedRecord"]

CutArray = Callable[[bytes], list[Any]]

_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Matches halves of surrogate pairs, except halves that represent bytes of invalid UTF-8 (``surrogateescape``)."""


class ExplodedRecord(NamedTuple):
    """A record, cut into the elements of the array of each level."""

    layers: list[list[Any]]
    """First the record, then for each level the elements of its arrays as texts.

    The last layer has the events, as texts or decoded.
    """
    parents: list[list[int]]
    """For each level, the index of each element's parent in the preceding layer."""

    def around(self, level: int) -> Ints:
        """Return for each event the index of the value that encloses it, `level` levels further out."""
        if level == len(self.parents):
            return np.zeros(len(self.layers[-1]), np.int64)
        places = np.arange(len(self.layers[-1]))
        for parents in self.parents[::-1][:level]:
            places = np.array(parents, np.int64)[places]
        return places


class Exploder:
    """Cuts the records of one stream."""

    def __init__(self, levels: Sequence[RecordPath], element: Element | None = None) -> None:
        """Take the paths.

        Args:
            levels: The path to the array of each level (`grouping.model.explode.explode_levels`).
            element: The type of the events. With this type, all events of an array can be decoded at once.
        """
        self._levels = [
            (path, _cut_at(path), explode_text(tuple(levels[:number])) + path_text(path)[1:])
            for number, path in enumerate(levels)
        ]
        self._decode = None if element is None else _decode_at(levels[-1], element)
        self._any_json = not levels[0] or isinstance(levels[0][0], int)

    def __call__(self, value: bytes | None, *, decoded: bool = False) -> ExplodedRecord:
        """Return the elements of a record; there are none if an array is empty, missing or null.

        Args:
            value: The record.
            decoded: Whether to decode the events, if the decoder can read them at once.

        Raises:
            WrongRecord: The record is no JSON object, or has another value at the place of an array.
        """
        if value is None:
            raise WrongRecord("The record has no value.")
        record = ExplodedRecord([[value]], [])
        last = len(self._levels) - 1
        for number, (path, cut, shown) in enumerate(self._levels):
            found: list[Any] = []
            parents: list[int] = []
            for place, part in enumerate(record.layers[-1]):
                elements = self._decode(part) if decoded and number == last and self._decode is not None else None
                if elements is None:
                    try:
                        elements = cut(part)
                    except REFUSALS:
                        elements = _cut_exactly(part, path, shown, any_json=number > 0 or self._any_json)
                found += elements
                parents += [place] * len(elements)
            record.layers.append(found)
            record.parents.append(parents)
        return record


def _cut_at(path: RecordPath) -> CutArray:
    """Return a function that cuts the array at a path into texts."""
    array = _array_at(path, list[msgspec.Raw], lax=False)
    return _refused if array is None else lambda value: list(map(bytes, array(value)))


def _decode_at(path: RecordPath, element: Element) -> Callable[[bytes], list[Any] | None] | None:
    """Return a function that decodes the array at a path; its result is None if an element must be read exactly."""
    array = _array_at(path, list[element.struct], lax=element.lax)  # type: ignore[name-defined]
    if array is None:
        return None

    def decode(value: bytes) -> list[Any] | None:
        try:
            found = array(value)
            return found if element.finished is None else list(map(element.finished, found))
        except REFUSALS:
            return None

    return decode


def _array_at(path: RecordPath, array: Any, *, lax: bool) -> CutArray | None:
    """Return a decoder of the array at a path; None for a path with names that JSON writes with escapes."""
    column = StreamColumn("elements", "VARIANT", str(ColumnPlace("value", path)))
    if needs_escape(column):
        return None
    [layer] = layers_of([column], [array | None], {}, named=True, lax=lax)
    return lambda value: layer.values({"": [layer.decode(value)]}, 0)[0] or []


def _refused(_: bytes) -> list[bytes]:
    raise msgspec.DecodeError


def _cut_exactly(value: bytes, path: RecordPath, shown: str, *, any_json: bool) -> list[bytes]:
    array = value_at(read_json(value, any_json=any_json), path)
    if array is MISSING or array is None:
        return []
    if not isinstance(array, list):
        raise WrongRecord(f"The value has {json_kind(array)} at {shown}, and explode takes an array.")
    try:
        return [_text(each).encode("utf-8", "surrogateescape") for each in array]
    except RecursionError:
        raise WrongRecord("The value is nested too deeply.") from None


def _text(value: Any) -> str:
    """Return the JSON text of a value that was read exactly."""
    match value:
        case JsonNumber():
            return str(value)
        case str():
            return _HALVES.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
        case list():
            return f"[{','.join(map(_text, value))}]"
        case dict():
            return "{" + ",".join(f"{_text(name)}:{_text(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)
