"""The schema that Kafka Connect's JSON converter writes with each record (``schemas.enable = true``)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from grouping.model.column_place import RecordPath

__all__ = ["ConnectSchema", "read_schema"]

_LARGEST_SCALE = 10_000
_SCALE = re.compile(r"-?[0-9]{1,5}")


class ConnectSchema(msgspec.Struct, frozen=True):
    """The schema of a value."""

    type: str = ""
    """``struct``, ``int64``, ``bytes``, ``string`` and so on."""
    name: str | None = None
    """The meaning of the value, such as ``io.debezium.time.Date``."""
    field: str | None = None
    """The name of the field in the struct around the value."""
    parameters: dict[str, Any] | None = None
    fields: list[ConnectSchema] | None = None
    """The fields of a struct."""
    items: ConnectSchema | None = None
    """The elements of an array."""
    values: ConnectSchema | None = None
    """The values of a map."""

    def at(self, path: RecordPath) -> ConnectSchema | None:
        """Return the schema of the value at a path; None if the schema has no value there."""
        schema: ConnectSchema | None = self
        for step in path:
            if schema is None:
                return None
            if isinstance(step, int):
                schema = schema.items
            else:
                schema = schema.values or next((each for each in schema.fields or () if each.field == step), None)
        return schema

    @property
    def scale(self) -> int | None:
        """The scale of a Decimal; None if the schema has no usable scale."""
        text = str((self.parameters or {}).get("scale", ""))
        found = int(text) if _SCALE.fullmatch(text) else None
        return found if found is None or abs(found) <= _LARGEST_SCALE else None


_decode = msgspec.json.Decoder(ConnectSchema | None).decode


@lru_cache(maxsize=256)
def read_schema(text: bytes) -> ConnectSchema | None:
    """Read a schema; None for ``null``, and for a text that is no schema.

    Example:
        >>> schema = read_schema(b'{"type": "struct", "fields": [{"type": "int32", "field": "n"}]}')
        >>> schema.at(("n",)).type
        'int32'
    """
    try:
        schema: ConnectSchema | None = _decode(text)
        return schema
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
