"""Records of Debezium for tests: envelopes with the schema that the JSON converter writes."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

__all__ = ["bytes_of", "decimal_schema", "envelope", "field", "schema_of", "variable_schema"]


def bytes_of(unscaled: int) -> str:
    """Return a number as Connect's Decimal writes it: base64 of its fewest bytes."""
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def field(name: str, kind: str, meaning: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the schema of a field."""
    return {"type": kind, "optional": True, "field": name} | ({"name": meaning, "version": 1} if meaning else {}) | more


def decimal_schema(name: str, scale: int | str) -> dict[str, Any]:
    """Return the schema of a Decimal."""
    parameters = {"scale": str(scale), "connect.decimal.precision": "10"}
    return field(name, "bytes", "org.apache.kafka.connect.data.Decimal", parameters=parameters)


def variable_schema(name: str) -> dict[str, Any]:
    """Return the schema of a number with a scale of its own."""
    fields = [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}]
    return field(name, "struct", "io.debezium.data.VariableScaleDecimal", fields=fields)


def schema_of(*fields: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an envelope of rows with some fields."""
    row = {"type": "struct", "optional": True, "fields": list(fields)}
    source = {"type": "struct", "fields": [field("ts_ms", "int64"), field("table", "string")], "field": "source"}
    op = field("op", "string")
    return {"type": "struct", "fields": [row | {"field": "before"}, row | {"field": "after"}, source, op]}


def envelope(change: dict[str, Any], schema: dict[str, Any] | None = None) -> bytes:
    """Return a record: the change alone, or beside its schema."""
    return json.dumps(change if schema is None else {"schema": schema, "payload": change}).encode()
