"""Functions of VARIANT and JSON: parts of a VARIANT by path, parsing and writing of JSON texts.

A CAST of a VARIANT is bound as variant_get with the path ``$``. The type of variant_get is the type to which the part
is converted.
"""

from __future__ import annotations

from collections.abc import Callable

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.nested import fixed
from grouping.binding.operands import part_of_variant
from grouping.binding.written_types import written_schema, written_type
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN, STRING, VARIANT, SqlType

__all__ = ["VARIANT_CALLS"]

_JSON_NAMES = "STRING BOOLEAN TINYINT SMALLINT INT BIGINT DOUBLE DECIMAL DATE TIMESTAMP BINARY VARIANT".split()
"""Types of the parts that to_json writes. FLOAT is missing, because its digits depend on the version of Java."""


def _variant_get(name: str, value: Bound, path: Bound, kind: Bound | None = None) -> Bound:
    _check_argument(name, value, VARIANT)
    steps = str(fixed(path, STRING, "a path").value)
    return part_of_variant(
        value, steps, VARIANT if kind is None else written_type(str(fixed(kind, STRING, "a type").value))
    )


def _parse_json(name: str, text: Bound) -> Bound:
    _check_argument(name, text, STRING)
    return Term(name, (text,), VARIANT)


def _is_variant_null(name: str, value: Bound) -> Bound:
    _check_argument(name, value, VARIANT)
    return Term(name, (value,), BOOLEAN)


def _to_json(name: str, value: Bound) -> Bound:
    if value.type.is_nested:
        _check_json(value.type)
    else:
        _check_argument(name, value, VARIANT)
    return Term(name, (value,), STRING)


def _check_argument(name: str, value: Bound, wanted: SqlType) -> None:
    if value.type != wanted:
        raise mismatch(
            f'an argument of "{name}" is {value.type}',
            f"The argument must be {wanted}.",
            "parse_json(text) makes a VARIANT of a JSON text." if value.type == STRING else None,
        )


_READ_NAMES = "STRING BOOLEAN TINYINT SMALLINT INT BIGINT DOUBLE DECIMAL DATE TIMESTAMP".split()
"""Types of the parts that from_json reads. FLOAT is missing, because Spark's JSON parser rounds it in its own way."""


def _from_json(name: str, text: Bound, schema: Bound) -> Bound:
    """Return a JSON text parsed by a schema.

    Raises:
        InputError: ``type-mismatch`` for the wrong arguments, ``unsupported-query`` for a schema that is not supported.
    """
    sql_type = written_schema(str(fixed(schema, STRING, "the schema of from_json").value))
    if not sql_type.is_nested:
        raise unsupported(f"from_json to {sql_type}", "The schema must be a STRUCT, an ARRAY or a MAP.", "Use CAST.")
    _check_read(sql_type)
    if is_null(text):
        text = Constant(None, STRING)
    if text.type != STRING:
        raise mismatch(f'an argument of "from_json" is {text.type}', "The argument must be STRING.")
    return Term("from_json", (text, Value(str(sql_type), "STRING")), sql_type)


def _check_read(sql_type: SqlType) -> None:
    """Check that from_json reads values of a type as Spark does.

    Raises:
        InputError: ``unsupported-query``.
    """
    for part in _parts(sql_type):
        _check_read(part)
    if not sql_type.is_nested and sql_type.name not in _READ_NAMES:
        raise unsupported(
            f"from_json to a {sql_type}",
            f"The types of parts are {', '.join(_READ_NAMES)} and nested types.",
            {"FLOAT": "Use DOUBLE.", "BINARY": "unbase64 reads a STRING."}.get(
                sql_type.name, "variant_get(parse_json(text), path) is a VARIANT."
            ),
        )


def _parts(sql_type: SqlType) -> list[SqlType]:
    """Return the types of a type's parts."""
    return [field for _, field in sql_type.fields] + ([sql_type.element] if sql_type.element is not None else [])


def _check_json(sql_type: SqlType) -> None:
    """Check that to_json writes values of a type as Spark does.

    Raises:
        InputError: ``unsupported-query``.
    """
    for part in _parts(sql_type):
        _check_json(part)
    if not sql_type.is_nested and sql_type.name not in _JSON_NAMES:
        raise unsupported(
            f'"to_json" of a value with a {sql_type}',
            f"The types of parts are {', '.join(_JSON_NAMES)} and nested types.",
        )


VARIANT_CALLS: dict[str, Callable[..., Bound]] = {
    "from_json": _from_json,
    "is_variant_null": _is_variant_null,
    "parse_json": _parse_json,
    "to_json": _to_json,
    "variant_get": _variant_get,
}
"""Binders by function, called with the function's name and the bound arguments."""
