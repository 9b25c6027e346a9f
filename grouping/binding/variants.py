"""VARIANT values: their parts by paths, as values of other types; JSON texts that are read, and written.

A CAST of a VARIANT is variant_get with the path ``$``: one operator, whose type is the type of the part.
"""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.nested import fixed
from grouping.binding.operands import part_of_variant
from grouping.binding.written_types import written_schema, written_type
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN, STRING, VARIANT, SqlType
from grouping.model.wording import are

__all__ = ["VARIANT_CALLS", "variant_call"]

_JSON_NAMES = "STRING BOOLEAN TINYINT SMALLINT INT BIGINT DOUBLE DECIMAL DATE TIMESTAMP BINARY VARIANT".split()
"""Types of the parts that to_json writes; digits of a FLOAT depend on the version of Java."""

VARIANT_CALLS = frozenset(
    ("from_json", "is_variant_null", "parse_json", "to_json", "try_parse_json", "try_variant_get", "variant_get")
)


def variant_call(name: str, args: Sequence[Bound]) -> Bound:
    """Return one of `VARIANT_CALLS` applied to its arguments.

    Raises:
        InputError: ``type-mismatch`` for too few, too many or the wrong ones; ``unsupported-query`` for a path or type.
    """
    name = name.removeprefix("try_")  # failures are NULL here anyhow
    if name == "from_json":
        return _from_json(*args)
    most = 3 if name == "variant_get" else 1
    if not max(most - 1, 1) <= len(args) <= most:
        takes = "2 arguments or 3" if most == 3 else "1 argument"
        raise mismatch(f'function "{name}" takes {takes}', f"There are {len(args)}.")
    wanted = STRING if name == "parse_json" else VARIANT
    value = args[0]
    if name == "to_json" and value.type.is_nested:
        _check_json(value.type)
        return Term("to_json", (value,), STRING)
    if value.type != wanted:
        raise mismatch(
            f'an argument of "{name}" is {value.type}',
            f"It must be {wanted}.",
            "parse_json(text) makes a VARIANT of a JSON text." if value.type == STRING else None,
        )
    match name:
        case "variant_get":
            path = str(fixed(args[1], STRING, "a path").value)
            sql_type = written_type(str(fixed(args[2], STRING, "a type").value)) if len(args) == 3 else VARIANT
            return part_of_variant(value, path, sql_type)
        case "parse_json":
            return Term(name, (value,), VARIANT)
        case "to_json":
            return Term(name, (value,), STRING)
    return Term(name, (value,), BOOLEAN)


_READ_NAMES = "STRING BOOLEAN TINYINT SMALLINT INT BIGINT DOUBLE DECIMAL DATE TIMESTAMP".split()
"""Types of the parts that from_json reads; Jackson rounds a FLOAT in its own way."""


def _from_json(*args: Bound) -> Bound:
    """Return the value that a JSON text is by a schema.

    Raises:
        InputError: ``type-mismatch`` for the wrong arguments, ``unsupported-query`` for a schema and for options.
    """
    if len(args) == 3:
        raise unsupported("from_json with options", "It reads as with none: what is broken is NULL.", "Leave them out.")
    if len(args) != 2:
        raise mismatch('function "from_json" takes 2 arguments', f"There {are(len(args))} {len(args)}.")
    text, schema = args
    sql_type = written_schema(str(fixed(schema, STRING, "the schema of from_json").value))
    if not sql_type.is_nested:
        raise unsupported(f"from_json to {sql_type}", "A schema is a STRUCT, an ARRAY or a MAP.", "Use CAST.")
    _check_read(sql_type)
    if is_null(text):
        text = Constant(None, STRING)
    if text.type != STRING:
        raise mismatch(f'an argument of "from_json" is {text.type}', "It must be STRING.")
    return Term("from_json", (text, Value(str(sql_type), "STRING")), sql_type)


def _check_read(sql_type: SqlType) -> None:
    """See that from_json reads values of a type as Spark does.

    Raises:
        InputError: ``unsupported-query``.
    """
    for part in _parts(sql_type):
        _check_read(part)
    if not sql_type.is_nested and sql_type.name not in _READ_NAMES:
        raise unsupported(
            f"from_json to a {sql_type}",
            f"It reads parts of {', '.join(_READ_NAMES)} and of nested types.",
            {"FLOAT": "Use DOUBLE.", "BINARY": "unbase64 reads a STRING."}.get(
                sql_type.name, "variant_get(parse_json(text), path) is a VARIANT."
            ),
        )


def _parts(sql_type: SqlType) -> list[SqlType]:
    """Return the types of a type's parts."""
    return [field for _, field in sql_type.fields] + ([sql_type.element] if sql_type.element is not None else [])


def _check_json(sql_type: SqlType) -> None:
    """See that to_json writes values of a type as Spark does.

    Raises:
        InputError: ``unsupported-query``.
    """
    for part in _parts(sql_type):
        _check_json(part)
    if not sql_type.is_nested and sql_type.name not in _JSON_NAMES:
        raise unsupported(
            f'"to_json" of a value with a {sql_type}',
            f"It takes parts of {', '.join(_JSON_NAMES)} and of nested types.",
        )
