"""The form of a schema in which fastavro refuses an index below 0 of a union or an enum.

fastavro looks an index up in a list of the schema. By Python's rules, the index -1 means the last element of the list,
so a malformed body could become a record with wrong values. In a dictionary, the look-up of -1 fails.
"""

from __future__ import annotations

from typing import Any

__all__ = ["index_checked"]


def index_checked(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a parsed schema for reading: the branches of unions and the symbols of enums are dictionaries.

    Reading a body with an index that is not there raises KeyError. To write bodies, use the original schema.

    Example:
        >>> import io
        >>> import fastavro
        >>> optional = {"name": "price", "type": ["null", "double"]}
        >>> schema = fastavro.parse_schema({"type": "record", "name": "R", "fields": [optional]})
        >>> body = bytes([1]) + bytes(8)
        >>> fastavro.schemaless_reader(io.BytesIO(body), schema, None)
        {'price': 0.0}
        >>> fastavro.schemaless_reader(io.BytesIO(body), index_checked(schema), None)
        Traceback (most recent call last):
        KeyError: -1
    """
    known: dict[int, dict[Any, Any]] = {}
    named = {name: _checked(avro, known) for name, avro in schema.get("__named_schemas", {}).items()}
    return {**_checked(schema, known), "__named_schemas": named}


def _checked(avro: Any, known: dict[int, dict[Any, Any]]) -> Any:
    """Return a type in the form for reading.

    Args:
        avro: The type.
        known: By identity, the types with their forms; a named type stands in several places of a parsed schema.
    """
    if isinstance(avro, list):
        return {"type": "union", **_by_index([_checked(branch, known) for branch in avro])}
    if not isinstance(avro, dict):
        return avro
    if id(avro) in known:
        return known[id(avro)]
    checked = known[id(avro)] = dict(avro)
    match avro["type"]:
        case "array":
            checked["items"] = _checked(avro["items"], known)
        case "map":
            checked["values"] = _checked(avro["values"], known)
        case "enum":
            checked["symbols"] = _by_index(avro["symbols"])
        case "record" | "error":
            checked["fields"] = [field | {"type": _checked(field["type"], known)} for field in avro["fields"]]
        case kind:
            checked["type"] = _checked(kind, known)
    return checked


def _by_index(members: list[Any]) -> dict[Any, Any]:
    return dict(enumerate(members))
