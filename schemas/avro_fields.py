"""The SQL columns of an Avro schema, for CREATE STREAM … FROM TOPIC."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from schemas.avro_columns import AvroMismatch, AvroTypes, check_avro_columns

__all__ = ["MOST_FIELDS", "avro_fields", "column_hint", "declared_hint", "too_many_fields"]

MOST_FIELDS = 1_000
"""The largest number of fields on all levels. With this limit, the gateway can parse the statement with all columns."""
_MOST_DIGITS = 38
"""The largest number of digits of a DECIMAL."""
_LONGEST_NAME = 255
_UNION = 'Leave the column out, or let the writer use a union of null and one other type: ["null", "string"].'
_DEEPEST = 16
"""The largest depth of nested types in a column."""


def avro_fields(schema: str) -> dict[str, str | None]:
    """Return the SQL types of a record's fields, by name; None for a field that gets no column.

    Some fields get no column: unions of two types other than null, records that contain themselves, types that are
    nested too deep, decimals of more than 38 digits, bytes of another logical type, and fields with names that are too
    long or that Avro does not allow. A STRUCT leaves these fields out.

    Args:
        schema: The JSON of a record's schema.

    Raises:
        AvroMismatch: The text is no schema of a record, or has more than 1,000 fields on all levels.

    Example:
        >>> price = '{"name": "price", "type": ["null", "double"]}, {"name": "either", "type": ["string", "int"]}'
        >>> avro_fields(f'{{"type": "record", "name": "Quote", "fields": [{price}]}}')
        {'price': 'DOUBLE', 'either': None}
    """
    check_avro_columns(schema, ())
    types = AvroTypes(schema)
    return _FieldTypes(types).of(types.fields)


def column_hint(error: AvroMismatch) -> str | None:
    """Return the hint with the declaration that fits the schema; None if the error has no such hint.

    Example:
        >>> schema = '{"type": "record", "name": "Quote", "fields": [{"name": "price", "type": ["null", "double"]}]}'
        >>> column_hint(AvroMismatch("", "", (schema, "price"))), column_hint(AvroMismatch("", "", (schema, "prise")))
        ('Declare "price DOUBLE".', 'Did you mean "price"?')
    """
    if error.field is None:
        return error.hint
    schema, name = error.field
    try:
        fields = avro_fields(schema)
    except AvroMismatch:
        return None
    types = AvroTypes(schema)
    if name in fields and (definition := types.found(types.fields[name])).get("type") in ("bytes", "fixed"):
        return f'Declare "{name} {types.sql_text(definition, None)}".'
    return declared_hint(name, fields, _UNION)


def declared_hint(name: str, fields: Mapping[str, str | None], otherwise: str) -> str | None:
    """Return the hint for a column that does not fit the fields of a schema; None if no field has a similar name.

    Args:
        name: The name of the column.
        fields: The SQL types of the fields, by name; None for a field that gets no column.
        otherwise: The hint for such a field.

    Example:
        >>> declared_hint("price", {"price": "DOUBLE"}, ""), declared_hint("prise", {"price": "DOUBLE"}, "")
        ('Declare "price DOUBLE".', 'Did you mean "price"?')
    """
    if name not in fields:
        near = difflib.get_close_matches(name, fields, n=1)
        return f'Did you mean "{near[0]}"?' if near else None
    return f'Declare "{name} {fields[name]}".' if fields[name] else otherwise


def too_many_fields() -> AvroMismatch:
    """Return the refusal of a schema with more than `MOST_FIELDS`."""
    return AvroMismatch(
        "the schema has too many fields", f"At most {MOST_FIELDS:,} fields of all levels can be columns."
    )


def _is_name(name: str) -> bool:
    """Tell whether Avro allows a name, and a column can have the name; fastavro takes any text."""
    return name.isascii() and name.isidentifier() and len(name) <= _LONGEST_NAME


class _FieldTypes:
    """Writes the SQL types of a schema's fields."""

    def __init__(self, types: AvroTypes) -> None:
        self._types = types
        self._count = 0

    def of(self, fields: dict[str, Any]) -> dict[str, str | None]:
        return {name: self._text(avro, ()) if _is_name(name) else None for name, avro in fields.items()}

    def _text(self, avro: Any, around: tuple[str, ...]) -> str | None:
        """Return the SQL type of an Avro type within types of the given names; None if no column can have the type."""
        self._count += 1
        if self._count > MOST_FIELDS:
            raise too_many_fields()
        definition = self._types.found(avro)
        kind, logical = definition.get("type"), definition.get("logicalType")
        if len(around) > _DEEPEST:
            return None
        match kind:
            case "record":
                name = definition["name"]
                return None if name in around else self._struct(definition, (*around, name))
            case "array" | "map":
                part = self._text(definition["items" if kind == "array" else "values"], (*around, ""))
                return part and (f"ARRAY<{part}>" if kind == "array" else f"MAP<STRING, {part}>")
            case "bytes" | "fixed" if logical == "decimal" and definition["precision"] > _MOST_DIGITS:
                return None
            case "bytes" | "fixed" if logical not in (None, "decimal"):
                return None
            case "float":
                return "FLOAT"
        return self._types.sql_text(avro, None)

    def _struct(self, definition: dict[str, Any], around: tuple[str, ...]) -> str | None:
        parts: dict[str, str] = {}
        for field in definition["fields"]:
            text = self._text(field["type"], around)
            if text is not None and _is_name(field["name"]):
                parts.setdefault(field["name"].casefold(), f"{field['name']}: {text}")
        return f"STRUCT<{', '.join(parts.values())}>" if parts else None
