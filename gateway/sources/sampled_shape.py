"""The kinds of values at each place of sampled JSON records, from which columns are inferred."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from grouping.model.column_place import RecordPath
from grouping.model.explode import explode_levels
from grouping.values.iso8601 import parse_timestamp
from spark_jobs.engine.decode.json_exact import WrongRecord, read_json, value_at
from spark_jobs.engine.decode.json_number import JsonNumber

__all__ = ["SampledShape", "observe_record"]

_MOST_LEVELS = 200
"""The deepest nesting of a VARIANT. VARIANT is the type for values that are nested too deeply for a STRUCT."""
_LONGEST_NUMBER = 1_000
_KEYS_OF_A_MAP = 32
"""If the objects at a place have more different keys than this, and each object has few of these keys, the objects
become a MAP."""
_WHOLE = re.compile(r"-?[0-9]+")
_LONGEST_BIGINT = 20
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)
"""Texts that are times: a date, ``T``, a time, and a zone."""


@dataclass(slots=True)
class SampledShape:
    """The values at one place of the records."""

    kinds: set[str] = field(default_factory=set)
    """The kinds of the values, without NULL: ``boolean``, ``whole`` (an integer in the range of BIGINT), ``long`` (any
    other integer), ``number`` (with a fraction or an exponent), ``time``, ``text``, ``array`` and ``object``."""
    objects: int = 0
    fields: dict[str, SampledShape] = field(default_factory=dict)
    seen: int = 0
    """The number of values at this place, including NULLs. For a field, this is the number of objects that have it."""
    element: SampledShape | None = None

    def observe(self, value: object) -> None:
        """Add a value. Its record must have been checked already."""
        self.seen += 1
        if value is None:
            return
        self.kinds.add(_kind(value))
        if isinstance(value, dict):
            self.objects += 1
            for name, each in value.items():
                self.fields.setdefault(name, SampledShape()).observe(each)
        elif isinstance(value, list):
            self.element = self.element or SampledShape()
            for each in value:
                self.element.observe(each)

    def absorb(self, other: SampledShape) -> None:
        """Add the values of another place to this place."""
        self.kinds |= other.kinds
        self.seen += other.seen
        self.objects += other.objects
        for name, each in other.fields.items():
            self.fields.setdefault(name, SampledShape()).absorb(each)
        if other.element is not None:
            self.element = self.element or SampledShape()
            self.element.absorb(other.element)

    @property
    def is_dictionary(self) -> bool:
        """Whether the objects are dictionaries with many possible keys, not records with fixed fields."""
        return (
            len(self.fields) > _KEYS_OF_A_MAP
            and sum(each.seen for each in self.fields.values()) * 4 < len(self.fields) * self.objects
        )


def observe_record(shape: SampledShape, value: bytes | None, explode: str | None) -> None:
    """Add the events of a record.

    Args:
        shape: The shape of the events.
        value: The record's value.
        explode: The path to the elements that are events, in the form of `explode_text`; None if the record is an
            event.

    Raises:
        WrongRecord: The record is not JSON, one of its events is not a JSON object, or no column can hold one of the
            values. The shape is then unchanged.
    """
    record = read_json(value, any_json=True)
    _check(record, 0)
    events = list(_elements(record, explode_levels(explode) if explode else ()))
    if not all(isinstance(event, dict) for event in events):
        raise WrongRecord("The value is JSON but no object.")
    for event in events:
        shape.observe(event)


def _elements(value: object, levels: Sequence[RecordPath]) -> Iterator[object]:
    if not levels:
        yield value
        return
    array = value_at(value, levels[0])
    for each in array if isinstance(array, list) else ():
        yield from _elements(each, levels[1:])


def _check(value: object, level: int) -> None:
    """Check that a column of some type can hold a value.

    Raises:
        WrongRecord: A text is not valid UTF-8, a number is too large, or the value is nested too deeply.
    """
    if level > _MOST_LEVELS:
        raise WrongRecord("The value is nested too deeply.")
    if isinstance(value, JsonNumber):
        if len(value) > _LONGEST_NUMBER or math.isinf(float(value)):
            raise WrongRecord("A number is too large.")
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WrongRecord("A text is no valid UTF-8 or has half of a surrogate pair.") from None
    elif isinstance(value, dict):
        for name, each in value.items():
            _check(name, level)
            _check(each, level + 1)
    elif isinstance(value, list):
        for each in value:
            _check(each, level + 1)


def _kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case JsonNumber():
            if not _WHOLE.fullmatch(value):
                return "number"
            return "whole" if len(value) <= _LONGEST_BIGINT and -(2**63) <= int(value) < 2**63 else "long"
        case str():
            return "time" if _is_time(value) else "text"
        case list():
            return "array"
    return "object"


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        parse_timestamp(text)
    except ValueError:
        return False
    return True
