"""The columns of a JSON topic, inferred from sampled records: CREATE STREAM … FROM TOPIC.

A type is inferred only from values. A field that is null, an empty array or an empty object in all sampled records is
left out, and a warning names the field. Each sampled record that is a JSON object in UTF-8 fits the inferred columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gateway.sources.sampled_shape import SampledShape, observe_record
from grouping.model.catalog import RECORD_FIELDS
from grouping.model.column_place import ColumnPlace, RecordPath, path_text
from grouping.model.errors import InputError
from grouping.model.sql_type import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    TIMESTAMP,
    VARIANT,
    SqlType,
    array_of,
    map_of,
    struct_of,
)
from grouping.model.wording import counted
from schemas.avro_writers import CONFLUENT_BYTES
from spark_jobs.engine.decode.json_exact import WrongRecord

__all__ = ["InferredColumns", "infer_columns", "not_inferable", "shown_fields"]

_MOST_FIELDS = 1_000
"""The largest number of fields on all levels together. The gateway must also be able to read a CREATE STREAM that names
all the columns."""
_MOST_SHOWN = 20
_DEEPEST = 16
"""The deepest nesting of types in a column (`grouping.statements.column_parts`)."""
_WIDEST_ELEMENT = 48
"""The largest number of nested types in an element of an ARRAY or MAP. A larger element becomes a VARIANT. Otherwise,
many short elements could have more values than the decoder allows for a record of this size (`json_extent`)."""
_LONGEST_NAME = 255
_NOT_IN_NAMES = re.compile(r"\W+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DECLARE = "Declare the columns: CREATE STREAM name (column TYPE, …) WITH (topic = '…', format = 'json')."


class InferredColumns(NamedTuple):
    """Columns for a CREATE STREAM."""

    columns: tuple[tuple[str, SqlType], ...]
    """(name, type) in the order of the fields in the records."""
    places: dict[str, str]
    """Column → text of its FROM."""
    warnings: tuple[str, ...]


def infer_columns(
    values: Sequence[bytes | None], topic: str, explode: str | None, framing: str = "raw"
) -> InferredColumns:
    """Return columns that fit sampled records.

    Args:
        values: The values of the records.
        topic: The topic, for refusals.
        explode: The path to the elements that are events, in the form of `explode_text`; None if each record is an
            event.
        framing: ``confluent`` if five bytes precede the JSON text in each record.

    Raises:
        InputError: ``stream-mismatch``: there are no records, no JSON objects, no fields with values, or too many
            fields.

    Example:
        >>> found = infer_columns([b'{"p": 1, "P": "x", "at": "2026-11-21T10:00:00Z"}', b'{"p": 1.5}'], "quotes", None)
        >>> [f"{name} {sql_type}" for name, sql_type in found.columns], found.places
        (['p DOUBLE', 'P_2 STRING', 'at TIMESTAMP'], {'P_2': "'$.P'"})
    """
    shape, faults = SampledShape(), []
    for value in values:
        try:
            observe_record(shape, _unframed(value, framing), explode)
        except WrongRecord as error:
            faults.append(str(error))
    if not shape.objects:
        raise _no_objects(values, topic, explode, faults)
    return _ColumnInference(topic).of(shape, len(values), faults)


def not_inferable(topic: str, detail: str, hint: str) -> InputError:
    """Return the refusal of a topic from which no columns can be inferred."""
    return InputError(
        f'no columns can be inferred from topic "{topic}"', code="stream-mismatch", detail=detail, hint=hint
    )


def shown_fields(names: Sequence[str]) -> str:
    """Return the first names, and the number of further names, for a warning.

    Example:
        >>> shown_fields(["a", "b"]), shown_fields(["a"] * 22)[-10:]
        ('a, b', 'and 2 more')
    """
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _unframed(value: bytes | None, framing: str) -> bytes | None:
    """Return the JSON text of a record.

    Raises:
        WrongRecord: The framing is ``confluent``, and the value does not begin with its five bytes.
    """
    if framing != "confluent" or not value:
        return value
    if len(value) < CONFLUENT_BYTES or value[0]:
        raise WrongRecord("A byte 0 and the id of a schema must come before the JSON text.")
    return value[CONFLUENT_BYTES:]


class _ColumnInference:
    """Chooses columns for the shape of the sampled records."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._count = 0
        self._without_values: list[str] = []
        self._nameless = 0

    def of(self, shape: SampledShape, records: int, faults: Sequence[str]) -> InferredColumns:
        """Return the columns for a shape, with warnings about fields and records that are left out."""
        columns: list[tuple[str, SqlType]] = []
        places: dict[str, str] = {}
        names = _ColumnNames(shape.fields)
        for name, each in shape.fields.items():
            if not _has_path(name):
                self._nameless += 1
            elif (sql_type := self._type(each, (name,), 0)) is not None:
                column = names.column(name)
                columns.append((column, sql_type))
                if column != name:
                    places[column] = str(ColumnPlace("value", (name,)))
        if self._count > _MOST_FIELDS:
            raise self._refusal(f"The sampled records have {self._count} fields, and {_MOST_FIELDS} can be inferred.")
        if not columns:
            raise self._refusal("No field of the sampled records has a value.")
        return InferredColumns(tuple(columns), places, tuple(self._warnings(records, faults)))

    def _refusal(self, detail: str) -> InputError:
        return not_inferable(self._topic, detail, _DECLARE)

    def _warnings(self, records: int, faults: Sequence[str]) -> Iterator[str]:
        if self._without_values:
            shown = shown_fields(self._without_values)
            yield f"Fields without a value in all sampled records are left out: {shown}."
        if self._nameless:
            yield f"Left out, since no path can name them: {counted(self._nameless, 'field')}."
        if faults:
            yield f"{len(faults)} of {records} sampled records do not count, the first because: {faults[0]}"

    def _type(self, shape: SampledShape, path: RecordPath, around: int) -> SqlType | None:
        """Return the type for a place that is nested in `around` other types; None if the place has no values."""
        self._count += 1
        kinds = shape.kinds
        if kinds <= {"array"} or kinds <= {"object"}:
            found = self._nested(shape, path, around) if kinds else None
            if found is None:
                self._without_values.append(path_text(path))
            return found
        if kinds <= {"whole", "long", "number"}:
            return BIGINT if kinds == {"whole"} else DOUBLE if "number" in kinds else VARIANT
        if kinds <= {"time", "text"}:  # a nested TIMESTAMP makes decoding 20 times slower
            return TIMESTAMP if kinds == {"time"} and not around else STRING
        return BOOLEAN if kinds == {"boolean"} else VARIANT

    def _nested(self, shape: SampledShape, path: RecordPath, around: int) -> SqlType | None:
        if around >= _DEEPEST:
            return VARIANT
        if shape.element is not None:
            element = self._element(shape.element, path, around)
            return None if element is None else array_of(element)
        if shape.is_dictionary:
            entry = SampledShape()
            for each in shape.fields.values():
                entry.absorb(each)
            value = self._element(entry, path, around)
            return None if value is None else map_of(STRING, value)
        return self._struct(shape, path, around)

    def _element(self, shape: SampledShape, path: RecordPath, around: int) -> SqlType | None:
        left_out = len(self._without_values)
        element = self._type(shape, path, around + 1)
        if element is None:
            del self._without_values[left_out:]
        elif _places(element) > _WIDEST_ELEMENT:
            del self._without_values[left_out:]
            return VARIANT
        return element

    def _struct(self, shape: SampledShape, path: RecordPath, around: int) -> SqlType | None:
        if not _are_fields(shape.fields):
            return VARIANT
        left_out = len(self._without_values)
        found = [(name, self._type(each, (*path, name), around + 1)) for name, each in shape.fields.items()]
        fields = [(name, sql_type) for name, sql_type in found if sql_type is not None]
        if not fields:
            del self._without_values[left_out:]
            return None
        return struct_of(fields)


def _places(sql_type: SqlType) -> int:
    return 1 + sum(_places(each) for _, each in sql_type.fields)


def _has_path(name: str) -> bool:
    """Tell whether FROM can name a field."""
    return 0 < len(name) <= _LONGEST_NAME and not _CONTROL.search(name) and not ('"' in name and "'" in name)


def _are_fields(names: Iterable[str]) -> bool:
    """Tell whether a STRUCT can have fields with these names. Names that differ only in case are equal names."""
    folded = [name.casefold() for name in names]
    return len({*folded}) == len(folded) and all(
        0 < len(name) <= _LONGEST_NAME and not _CONTROL.search(name) and "`" not in name for name in names
    )


class _ColumnNames:
    """Chooses a column name for each field: the field's own name if possible."""

    def __init__(self, fields: Iterable[str]) -> None:
        """Take the names of all fields, since a changed name must differ from the names of other fields."""
        self._fields = {name.casefold() for name in fields}
        self._taken = set(RECORD_FIELDS)

    def column(self, name: str) -> str:
        """Return a free name for the column of a field.

        Example:
            >>> names = _ColumnNames(["id.orig_h", "id_orig_h", "ID_ORIG_H", "_time"])
            >>> [names.column(name) for name in ("id.orig_h", "id_orig_h", "ID_ORIG_H", "_time", "7-day")]
            ['id_orig_h_2', 'id_orig_h', 'ID_ORIG_H_3', '_time_2', '_7_day']
        """
        found = name
        if not name.isidentifier() or name.casefold() in self._taken:
            plain = name if name.isidentifier() else _NOT_IN_NAMES.sub("_", name).strip("_")
            found = plain = plain if plain.isidentifier() else f"_{plain}"
            number = 2
            while found.casefold() in self._taken | self._fields:
                found, number = f"{plain}_{number}", number + 1
        self._taken.add(found.casefold())
        return found


def _no_objects(values: Sequence[bytes | None], topic: str, explode: str | None, faults: Sequence[str]) -> InputError:
    """Return the refusal of a topic whose sample has no events."""
    if not values:
        return InputError(
            f'topic "{topic}" has no records',
            code="stream-mismatch",
            detail="Columns are inferred from the latest records, and none could be read within some seconds.",
            hint=f"Publish some records first. {_DECLARE}",
        )
    if not faults:
        return InputError(
            f'the sampled records of topic "{topic}" have no events',
            code="stream-mismatch",
            detail=f"There is no element at {explode} in {counted(len(values), 'record')}.",
            hint=_DECLARE,
        )
    hint = _DECLARE
    filled = [value for value in values if value]
    if filled and filled[0].lstrip()[:1] == b"[" and not explode:
        hint = "WITH (explode = '$') makes an event of each element of an array."
    elif filled and filled[0][:1] == b"\x00":
        hint = (
            "The records begin with a byte 0 and the id of a schema. Write WITH (framing = 'confluent') and the format."
        )
    return InputError(
        f'the records of topic "{topic}" are not JSON objects',
        code="stream-mismatch",
        detail=f"This holds for {len(faults)} of {len(values)} sampled records, for the first because: {faults[0]}",
        hint=hint,
    )
