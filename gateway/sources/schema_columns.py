"""The columns of CREATE STREAM … FROM TOPIC, for a topic with Avro or Protobuf schemas."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from gateway.sources.inferred_columns import InferredColumns, not_inferable, shown_fields
from grouping.model.catalog import RECORD_FIELDS
from grouping.model.errors import InputError
from grouping.model.query import CreateStream
from grouping.model.sql_type import SqlType
from grouping.process.schema_registry import SchemaAway, SchemaRegistry
from schemas.avro_columns import AvroMismatch, AvroTypes
from schemas.avro_fields import avro_fields
from schemas.avro_writers import CONFLUENT_BYTES, read_writers, schema_text

__all__ = ["columns_of_statement", "registry_columns"]

_DECLARE = "Declare the columns."
_MOST_IDS = 20
"""The largest number of schemas that a registry is asked for. The schemas of the latest records come first."""
_MOST_SECONDS = 5.0
"""How long a registry is asked for further schemas, in seconds."""


def columns_of_statement(statement: CreateStream) -> InferredColumns | None:
    """Return the columns in a statement's schemas or descriptor; None if the statement has neither.

    Raises:
        InputError: ``stream-mismatch``: a schema cannot be used, or has no field that a column can hold.
    """
    try:
        if statement.schema is not None:
            return _columns(statement.topic, [statement.schema], resolved=False)
        if statement.schemas is not None:
            newest = sorted(read_writers(statement.schemas).items(), reverse=True)
            return _columns(statement.topic, [schema_text(schema) for _, schema in newest], resolved=True)
        if statement.descriptor is not None:
            from schemas.proto_columns import proto_fields

            return _inferred(statement.topic, proto_fields(statement.descriptor, statement.message or ""), ())
    except AvroMismatch as error:
        raise InputError(error.message, code="stream-mismatch", detail=error.detail) from error
    return None


def registry_columns(values: Sequence[bytes | None], topic: str, url: str, login: str) -> InferredColumns:
    """Return the columns of the schemas that sampled records name. The schemas come from a registry.

    Args:
        values: The values of the records.
        topic: The topic, for refusals.
        url: The registry.
        login: The login for the registry, percent-encoded as in a URL; empty without a login.

    Raises:
        InputError: With the code ``stream-mismatch``, no record names a schema that can be used. With the code
            ``unavailable``, the registry does not answer.
    """
    ids = list(dict.fromkeys(_schema_id(value) for value in reversed(values) if _names_schema(value)))[:_MOST_IDS]
    if not ids:
        raise InputError(
            f'no record of topic "{topic}" names a schema',
            code="stream-mismatch",
            detail=f"This holds for {len(values)} sampled records: none begins with a byte 0 and the id of a schema.",
            hint="Publish some records first, or declare the columns and the schema.",
        )
    registry, until = SchemaRegistry(url, login), time.monotonic() + _MOST_SECONDS
    written: list[str] = []
    faults: list[str] = []
    try:
        for schema_id in sorted(ids, reverse=True):
            if time.monotonic() > until:
                faults.append(f"The registry was not asked for schema {schema_id}: its answers take too long.")
                continue
            text = registry.schema(schema_id)
            if text is None:
                faults.append(f"The registry does not know schema {schema_id}.")
            elif text.startswith('"'):
                faults.append(json.loads(text))
            else:
                written.append(text)
    except SchemaAway as error:
        hint = "Send the statement again later, or declare the columns."
        raise InputError(
            "no columns can be inferred now", code="unavailable", detail=f"{error.line}.", hint=hint
        ) from error
    if not written:
        raise not_inferable(topic, faults[0], _DECLARE)
    try:
        return _columns(topic, written, resolved=True, faults=faults)
    except AvroMismatch as error:
        raise InputError(error.message, code="stream-mismatch", detail=error.detail) from error


def _names_schema(value: bytes | None) -> bool:
    return value is not None and len(value) >= CONFLUENT_BYTES and value[0] == 0


def _schema_id(value: bytes | None) -> int:
    return int.from_bytes((value or b"")[1:CONFLUENT_BYTES], "big")


def _columns(topic: str, written: Sequence[str], *, resolved: bool, faults: Sequence[str] = ()) -> InferredColumns:
    """Return columns for several schemas: records of each schema can be decoded to these columns.

    Args:
        topic: The topic, for refusals.
        written: The schemas, the newest first. A column gets the type that it has in the newest schema. If the records
            of another schema cannot be read as this type, the type in the next schema is tried.
        resolved: Whether the schema of a record may differ from the schema of the columns (`promote` of
            `AvroTypes.sql_text`).
        faults: Further warnings.
    """
    possible: dict[str, list[str | None]] = {}
    for text in written:
        for name, found in avro_fields(text).items():
            possible.setdefault(name, []).append(found)
    schemas = [AvroTypes(text) for text in written]

    def fits(name: str, sql_type: str) -> bool:
        """Tell whether a column of this type can be read from the records of each schema that has the field."""
        wanted = SqlType.of(sql_type)
        there = (types for types in schemas if name in types.fields)
        found = (types.sql_text(types.fields[name], wanted, promote=resolved) for types in there)
        return all(text is not None and SqlType.of(text) == wanted for text in found)

    fields: dict[str, str | None] = {}
    warnings = list(faults)
    for name, texts in possible.items():
        wanted = [text for text in texts if text is not None]
        fitting = (text for text in wanted if len(wanted) == len(texts) and fits(name, text))
        fields[name] = next(fitting, None)
        if fields[name] is None and len(set(texts)) > 1:
            warnings.append(f'Field "{name}" has no type to which all schemas can be resolved.')
    return _inferred(topic, fields, warnings)


def _inferred(topic: str, fields: Mapping[str, str | None], warnings: Sequence[str]) -> InferredColumns:
    columns: list[tuple[str, SqlType]] = []
    taken, left_out = set(RECORD_FIELDS), []
    for name, text in fields.items():
        if text is None or name.casefold() in taken:
            left_out.append(name)
        else:
            taken.add(name.casefold())
            columns.append((name, SqlType.of(text)))
    if not columns:
        raise not_inferable(topic, "The schemas of its records have no field that a column can hold.", _DECLARE)
    found = list(warnings)
    if left_out:
        found.append(f"Fields that no column can hold are left out: {shown_fields(left_out)}.")
    return InferredColumns(tuple(columns), {}, tuple(found))
