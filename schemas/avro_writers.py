"""Writer schemas by the ids of a schema registry: the option `schemas` of CREATE STREAM."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from schemas.avro_columns import AvroMismatch, AvroTypes, check_avro_columns, listed_fields

__all__ = ["CONFLUENT_BYTES", "MOST_ID", "MOST_SCHEMAS", "check_writers", "id_header", "read_writers", "schema_text"]

CONFLUENT_BYTES = 5
"""The number of bytes before a body: a zero byte, and the id of the schema as a big-endian number of four bytes."""
MOST_ID = 2**31 - 1
"""The largest id of a schema, since registries have signed 32-bit numbers as ids."""
MOST_SCHEMAS = 1_000
"""The largest number of schemas of a stream."""
_REFUSED = 'the option "schemas" cannot be used'


def id_header(schema_id: int) -> bytes:
    r"""Return the bytes that stand before each body of a schema.

    Example:
        >>> id_header(258)
        b'\x00\x00\x00\x01\x02'
    """
    return schema_id.to_bytes(CONFLUENT_BYTES, "big")


def read_writers(text: str) -> dict[int, Any]:
    """Return the schemas in the value of the option, by their ids. The schemas are not checked.

    Raises:
        AvroMismatch: The text is no JSON object of ids.

    Example:
        >>> read_writers('{"7": {"type": "record", "name": "R", "fields": []}}')
        {7: {'type': 'record', 'name': 'R', 'fields': []}}
    """
    try:
        found = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as exc:
        raise AvroMismatch(_REFUSED, f"The JSON does not parse: {str(exc) or type(exc).__name__}.") from exc
    if not isinstance(found, dict) or not found:
        raise AvroMismatch(_REFUSED, "The option is no JSON object of schemas by their ids.")
    if len(found) > MOST_SCHEMAS:
        raise AvroMismatch(_REFUSED, f"The option has {len(found)} schemas, and {MOST_SCHEMAS} are the most.")
    for name in found:
        if not _is_id(name):
            raise AvroMismatch(_REFUSED, f'The name "{name[:20]}" is no id: ids are whole numbers from 0 to {MOST_ID}.')
    return {int(name): schema for name, schema in found.items()}


def check_writers(text: str, columns: Iterable[tuple[str, object]]) -> None:
    """Check that each schema can be resolved to the columns, and that each column is in some schema.

    Args:
        text: The value of the option.
        columns: Names and SQL types.

    Raises:
        AvroMismatch: A schema or column does not fit; the error names the first one.
    """
    columns = list(columns)
    fields: dict[str, None] = {}
    for schema_id, schema in read_writers(text).items():
        try:
            written = schema_text(schema)
            check_avro_columns(written, columns, resolved=True)
            fields |= dict.fromkeys(AvroTypes(written).fields)
        except AvroMismatch as error:
            raise AvroMismatch(error.message, f"Schema {schema_id}: {error.detail}", error.field) from error
    for name, _ in columns:
        if name not in fields:
            detail = f"The schemas have the fields: {listed_fields(fields)}."
            raise AvroMismatch(f'column "{name}" is in none of the schemas', detail)


def schema_text(schema: Any) -> str:
    """Return the JSON of a schema.

    Raises:
        AvroMismatch: The schema is nested too deep.
    """
    try:
        return json.dumps(schema)
    except RecursionError as exc:
        raise AvroMismatch(_REFUSED, "A schema is nested too deep.") from exc


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice in one object")
    return found


def _is_id(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 10 and str(int(name)) == name and int(name) <= MOST_ID
