"""VARIANT values: their parts by paths, as values of other types; JSON texts that are read, and written.

A CAST of a VARIANT is variant_get with the path ``$``: one operator, whose type is the type of the part.
"""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Term
from grouping.binding.cast_types import written_type
from grouping.binding.nested import fixed
from grouping.binding.operands import part_of_variant
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN, STRING, VARIANT, SqlType

__all__ = ["VARIANT_CALLS", "variant_call"]

_JSON_NAMES = "STRING BOOLEAN TINYINT SMALLINT INT BIGINT DOUBLE DECIMAL DATE TIMESTAMP BINARY VARIANT".split()
"""Types of the parts that to_json writes; digits of a FLOAT depend on the version of Java."""

VARIANT_CALLS = frozenset(
    ("is_variant_null", "parse_json", "to_json", "try_parse_json", "try_variant_get", "variant_get")
)


def variant_call(name: str, args: Sequence[Bound]) -> Bound:
    """Return one of `VARIANT_CALLS` applied to its arguments.

    Raises:
        InputError: ``type-mismatch`` for too few, too many or the wrong ones; ``unsupported-query`` for a path or type.
    """
    name = name.removeprefix("try_")  # what fails is NULL here anyhow
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


def _check_json(sql_type: SqlType) -> None:
    """See that to_json writes values of a type as Spark does.

    Raises:
        InputError: ``unsupported-query``.
    """
    for part in (sql_type.element, *(field for _, field in sql_type.fields)):
        if part is not None:
            _check_json(part)
    if not sql_type.is_nested and sql_type.name not in _JSON_NAMES:
        raise unsupported(
            f'"to_json" of a value with a {sql_type}',
            f"It takes parts of {', '.join(_JSON_NAMES)} and of nested types.",
        )
