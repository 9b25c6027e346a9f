"""Avro writer schemas of source streams: the SQL columns of a schema, and the schema for reading records.

Gateway (CREATE STREAM) and evaluator (decoding) use this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from schemas.avro_limits import MAX_DEPTH

__all__ = ["AvroMismatch", "AvroTypes", "check_avro_columns", "listed_fields", "reading_schema", "single_object_header"]

_PRIMITIVES = {
    "string": "STRING",
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "DOUBLE",
    "double": "DOUBLE",
    "enum": "STRING",
    "bytes": "BINARY",
    "fixed": "BINARY",
}
_NARROW = {"int": ("TINYINT", "SMALLINT"), "float": ("FLOAT",)}
"""Avro type → narrower SQL types that a column may have. Values of an int are then checked against the narrow type."""
_LOGICAL = {
    ("int", "date"): "DATE",
    ("long", "timestamp-millis"): "TIMESTAMP",
    ("long", "timestamp-micros"): "TIMESTAMP",
}
_COUNTS = {
    "local-timestamp-millis": "timestamp_millis({})",
    "local-timestamp-micros": "timestamp_micros({})",
    "local-timestamp-nanos": "timestamp_micros({} div 1000)",
    "timestamp-nanos": "timestamp_micros({} div 1000)",
}
"""Logical type of times → the call that makes a TIMESTAMP. A column for such a field has the plain number."""
_MOST_DIGITS = 38
"""The number of digits of the widest DECIMAL. A decimal with more digits becomes a BINARY."""
_SHOWN = 300
"""The largest number of characters of another library's message in a detail."""
_MOST_LISTED = 20
_READ_AS_TIMES = frozenset(logical for _, logical in _LOGICAL)
_PROMOTED = {
    "int": ("BIGINT", "FLOAT", "DOUBLE"),
    "long": ("FLOAT", "DOUBLE"),
    "bytes": ("STRING",),
    "string": ("BINARY",),
}
"""Avro type → other SQL types that a column may have, by the rules of Avro's schema resolution."""


class AvroMismatch(ValueError):
    """The schema is not valid, or does not fit the columns of a stream (``stream-mismatch``)."""

    def __init__(
        self, message: str, detail: str, field: tuple[str, str] | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        """The message in lower case, with names in quotes."""
        self.detail = detail
        """The reason, in full sentences."""
        self.field = field
        """The Avro schema, and the name of the column that does not fit it; None for any other error."""
        self.hint = hint
        """The column to declare; None if the hint follows from `field`, or if there is none."""


def check_avro_columns(schema_text: str, columns: Iterable[tuple[str, object]], *, resolved: bool = False) -> None:
    """Check that the schema has a field of the right type for each column.

    Args:
        schema_text: The writer's schema, JSON.
        columns: Names and SQL types (`grouping.model.sql_type`). A type without parts may be given as text.
        resolved: Whether Avro's schema resolution applies, since records may be written with several schemas. Fields
            are then promoted to the types of their columns, and a column without a field is NULL.

    Raises:
        AvroMismatch: The schema is nested too deep, or has no field, or a field of another type, for a column. The
            error names the first such column.

    Example:
        >>> schema = '{"type": "record", "name": "Quote", "fields": [{"name": "price", "type": ["null", "double"]}]}'
        >>> check_avro_columns(schema, [("price", "DOUBLE")])
        >>> check_avro_columns(schema, [("price", "BIGINT")])
        Traceback (most recent call last):
        schemas.avro_columns.AvroMismatch: column "price" is not a BIGINT in the Avro schema
    """
    schema = _parse(schema_text)
    if _is_deep(schema_text):
        raise AvroMismatch("the Avro schema cannot be used", f"The schema is nested deeper than {MAX_DEPTH} levels.")
    types = AvroTypes(schema)
    for name, kind in columns:
        if name not in types.fields:
            if resolved:
                continue
            there = listed_fields(types.fields)
            message, detail = f'column "{name}" is not in the Avro schema', f"The schema has the fields: {there}."
            raise AvroMismatch(message, detail, (schema_text, name))
        found = types.sql_text(types.fields[name], kind, promote=resolved)
        if found is None or _normal(found) != _normal(kind):
            what = f"is of type {found}" if found else "has a type that no column can hold"
            detail = f"The field {what} there.{types.advice(types.fields[name], name, kind)}"
            raise AvroMismatch(f'column "{name}" is not a {kind} in the Avro schema', detail, (schema_text, name))


def listed_fields(names: Iterable[str]) -> str:
    """Return names in quotes for an error message; with ``…`` after the first 20.

    Example:
        >>> listed_fields("ab"), listed_fields([]), listed_fields("x" * 21)[-6:]
        ('"a", "b"', 'none', '"x", …')
    """
    quoted = [f'"{name}"' for name in names]
    return ", ".join(quoted[:_MOST_LISTED]) + (", …" if len(quoted) > _MOST_LISTED else "") or "none"


class AvroTypes:
    """The types of a record schema's fields, with named types looked up."""

    def __init__(self, schema: str | dict[str, Any]) -> None:
        """Take the schema as text or as parsed JSON.

        Raises:
            AvroMismatch: The text is no Avro schema of a record.
        """
        parsed = _parse(schema) if isinstance(schema, str) else schema
        self.fields: dict[str, Any] = {field["name"]: field["type"] for field in parsed["fields"]}
        self._named = parsed["__named_schemas"]

    def found(self, avro: Any) -> dict[str, Any]:
        """Return the definition of a type. A union of null and one other type stands for the other type.

        For any other union, the result is {}.

        Example:
            >>> text = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "long"]}]}'
            >>> types = AvroTypes(text)
            >>> types.found(types.fields["a"])
            {'type': 'long'}
        """
        if isinstance(avro, list):
            others = [member for member in avro if member != "null"]
            return self.found(others[0]) if len(others) == 1 else {}
        if isinstance(avro, str):
            return self.found(self._named[avro]) if avro in self._named else {"type": avro}
        definition: dict[str, Any] = avro
        return definition

    def sql_text(self, avro: Any, wanted: object, *, promote: bool = False) -> str | None:
        """Return the text of the SQL type of an Avro type, given the declared type; None if no SQL type fits.

        A record becomes a STRUCT of the declared fields that the schema has. Other fields are skipped, as in JSON, so
        the text for a recursive schema is only as deep as the declared type.

        Args:
            avro: The Avro type.
            wanted: The declared type.
            promote: Whether types are promoted to the declared types by Avro's schema resolution, and missing fields
                are NULL.
        """
        kind, logical = (definition := self.found(avro)).get("type"), definition.get("logicalType")
        match kind:
            case "record":
                of = {field["name"]: field["type"] for field in definition["fields"]}
                texts = [
                    f"{name}: {self.sql_text(of[name], field, promote=promote) if name in of else field}"
                    for name, field in getattr(wanted, "fields", ())
                    if name in of or promote
                ]
                return f"STRUCT<{', '.join(texts)}>"
            case "array" | "map":
                part = definition["items" if kind == "array" else "values"]
                element = self.sql_text(part, getattr(wanted, "element", None), promote=promote)
                return element and (f"ARRAY<{element}>" if kind == "array" else f"MAP<STRING, {element}>")
            case "bytes" | "fixed" if logical == "decimal" and definition["precision"] <= _MOST_DIGITS:
                precision, scale = definition["precision"], definition.get("scale", 0)
                if promote and precision < getattr(wanted, "precision", 0) and scale == getattr(wanted, "scale", 0):
                    return str(wanted)
                return f"DECIMAL({precision},{scale})"
        if logical is None and str(wanted) in _NARROW.get(str(kind), ()):
            return str(wanted)
        if promote and logical is None and str(wanted) in _PROMOTED.get(str(kind), ()):
            return str(wanted)
        return _LOGICAL.get((str(kind), str(logical))) or _PRIMITIVES.get(str(kind))

    def advice(self, avro: Any, name: str, wanted: object) -> str:
        """Return a blank and a sentence about a field that cannot be a column of the declared type; "" without advice.

        Args:
            avro: The Avro type of the field.
            name: The name of the field.
            wanted: The declared type.
        """
        if isinstance(avro, list) and len(members := [each for each in avro if each != "null"]) > 1:
            kinds = [str(each.get("logicalType", each.get("type"))) for each in map(self.found, members)]
            return f" The union is of {', '.join(kinds[:-1])} and {kinds[-1]}."
        definition = self.found(avro)
        if definition.get("type") == "record" and not getattr(wanted, "fields", ()):
            return f" The record's fields are {listed_fields(field['name'] for field in definition['fields'])}."
        call = _COUNTS.get(str(definition.get("logicalType")))
        return f" {call.format(name)} is its time." if call and str(wanted) == "TIMESTAMP" else ""


def single_object_header(schema_text: str) -> bytes:
    """Return the ten bytes before each record in Avro's single-object encoding: C3 01 and the schema's fingerprint.

    Example:
        >>> single_object_header('{"type": "record", "name": "Empty", "fields": []}').hex()
        'c301348671a2a5670915'
    """
    canonical = to_parsing_canonical_form(_parse(schema_text))
    return b"\xc3\x01" + bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))


def reading_schema(schema_text: str, columns: Iterable[str]) -> dict[str, Any]:
    """Return the parsed schema with which fastavro reads the records.

    Logical types are kept only for DATE and TIMESTAMP columns. Otherwise fastavro would round decimals to their
    precision, and a bad value in a field without a column would make the record unreadable. Decimals are read as bytes,
    and times within nested columns as numbers.

    Raises:
        AvroMismatch: The text is no Avro schema of a record.
    """
    wanted = frozenset(columns)
    schema = _parse(schema_text)
    fields = [
        {"name": field["name"], "type": _without_logical(field["type"], field["name"] in wanted)}
        for field in schema["fields"]
    ]
    parsed: dict[str, Any] = fastavro.parse_schema({"type": "record", "name": schema["name"], "fields": fields})  # type: ignore[assignment]
    return parsed


def _parse(text: str) -> dict[str, Any]:
    """Return the record schema in fastavro's normal form: with full names, and with the key ``__named_schemas``."""
    message = "the Avro schema cannot be used"
    try:
        schema = fastavro.parse_schema(json.loads(text))
    except Exception as exc:  # errors of fastavro have no common base class, and some are TypeError or KeyError
        raise AvroMismatch(message, f"The schema does not parse: {str(exc)[:_SHOWN] or type(exc).__name__}.") from exc
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise AvroMismatch(message, "The schema is not of a record.")
    if not _has_texts_as_names(schema):
        raise AvroMismatch(message, "The name of a field is no text.")
    try:
        to_parsing_canonical_form(schema).encode()
    except UnicodeEncodeError:
        raise AvroMismatch(message, "The schema has half of a surrogate pair.") from None
    names = [field["name"] for field in schema["fields"]]
    if len(set(names)) < len(names):
        raise AvroMismatch(message, "The schema has two fields of one name.")
    return schema


def _has_texts_as_names(schema: Any) -> bool:
    """Tell whether the names of all fields are texts; fastavro takes any JSON."""
    waiting = [schema]
    while waiting:
        avro = waiting.pop()
        if isinstance(avro, list):
            waiting += avro
        elif isinstance(avro, dict):
            fields = avro.get("fields", [])
            if not all(isinstance(field["name"], str) for field in fields):
                return False
            waiting += [field["type"] for field in fields] + [avro[key] for key in ("items", "values") if key in avro]
    return True


def _is_deep(text: str) -> bool:
    """Return whether a schema's JSON is nested so deeply that recursive code may exhaust the stack."""
    level: list[Any] = [json.loads(text)]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
        level = [inner for inner in level if isinstance(inner, dict | list)]
    return bool(level)


def _normal(kind: object) -> str:
    return re.sub(r"\s+", "", str(kind).upper())


def _without_logical(avro: Any, keep_times: bool) -> Any:
    if isinstance(avro, list):
        return [_without_logical(member, keep_times) for member in avro]
    if not isinstance(avro, dict):
        return avro
    plain = {key: value for key, value in avro.items() if not key.startswith("__") and key != "logicalType"}
    if keep_times and avro.get("logicalType") in _READ_AS_TIMES:
        plain["logicalType"] = avro["logicalType"]
    for key in ("items", "values"):
        if key in plain:
            plain[key] = _without_logical(plain[key], False)
    if "fields" in plain:
        plain["fields"] = [
            {"name": field["name"], "type": _without_logical(field["type"], False)} for field in plain["fields"]
        ]
    return plain
