"""Converters for columns of every type; a converter of nested values is made from the converters of their parts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from grouping.model.change_format import ValueEncoding
from grouping.model.sql_type import TIMESTAMP, SqlType
from spark_jobs.engine.decode.envelopes.canal_values import canal_converter
from spark_jobs.engine.decode.envelopes.connect_schema import ConnectSchema
from spark_jobs.engine.decode.envelopes.connect_values import Convert, scalar_converter
from spark_jobs.engine.decode.envelopes.json_parts import array_parts, object_parts
from spark_jobs.engine.decode.misfit import Misfit

__all__ = ["converter"]

_encode = msgspec.json.Encoder().encode


def converter(
    sql_type: SqlType, schema: ConnectSchema | None, encoding: ValueEncoding, per_second: int = 0
) -> Convert | None:
    """Return the converter of a column's values; None if the values need no conversion.

    Args:
        sql_type: The column's type.
        schema: The schema of the values; None if the record has none.
        encoding: The format of the records, and its options.
        per_second: If the column is a field of the envelope itself with a time since 1970: how many of the field's
            units make a second, such as 1000. Otherwise 0.
    """
    if sql_type.fields:
        return _struct_converter(sql_type, schema, encoding)
    if sql_type.element is not None:
        return _element_converter(sql_type, schema, encoding)
    if encoding.form == "canal-json" and (canal := canal_converter(sql_type)) is not None:
        return canal
    # A value with a schema was written by Kafka Connect, even if the value is in the key of a plain JSON record.
    by_debezium = encoding.form == "debezium-json" or schema is not None
    if by_debezium or (sql_type == TIMESTAMP and encoding.form != "json"):
        return scalar_converter(sql_type, schema, encoding, per_second)
    return None


def _struct_converter(sql_type: SqlType, schema: ConnectSchema | None, encoding: ValueEncoding) -> Convert | None:
    converters = {}
    for name, part in sql_type.fields:
        found = converter(part, None if schema is None else schema.at((name,)), encoding)
        if found is not None:
            converters[name] = found, part

    def convert(raw: bytes) -> bytes:
        parts = object_parts(raw)
        if parts is None:
            return raw
        for name, (each, part) in converters.items():
            if name in parts:
                parts[name] = _converted(each, part, parts[name], name)
        return _written(parts)

    return convert if converters else None


def _element_converter(sql_type: SqlType, schema: ConnectSchema | None, encoding: ValueEncoding) -> Convert | None:
    element = sql_type.element
    assert element is not None, "an ARRAY or a MAP"
    of_element = None if schema is None else schema.values if sql_type.key else schema.items
    found = converter(element, of_element, encoding)
    if found is None:
        return None

    def convert(raw: bytes) -> bytes:
        parts = object_parts(raw) if sql_type.key else None
        if parts is not None:
            return _written({name: _converted(found, element, part, name) for name, part in parts.items()})
        elements = None if sql_type.key else array_parts(raw)
        if elements is None:
            return raw
        return b"[" + b",".join(_converted(found, element, part, at) for at, part in enumerate(elements)) + b"]"

    return convert


def _converted(convert: Callable[[bytes], bytes], sql_type: SqlType, raw: bytes, step: str | int) -> bytes:
    if raw == b"null":
        return raw
    try:
        return convert(raw)
    except ValueError as exc:
        misfit = exc if isinstance(exc, Misfit) else Misfit(str(exc), sql_type)
        misfit.within(step)
        raise misfit from None


def _written(parts: dict[str, bytes]) -> bytes:
    return b"{" + b",".join(_encode(name) + b":" + part for name, part in parts.items()) + b"}"
