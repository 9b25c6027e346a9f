"""The types that a CAST names."""

from __future__ import annotations

from sqlglot import exp

from grouping.model.decimal_types import WIDEST
from grouping.model.refusals import unsupported
from grouping.model.sql_type import PLAIN_TYPES, STRING, SqlType, array_of, decimal, map_of, struct_of

__all__ = ["cast_type"]

_TYPES = {"TEXT" if name == "STRING" else name: sql_type for name, sql_type in PLAIN_TYPES.items()}
"""Types without parameters, by sqlglot's name."""


def cast_type(target: exp.Expr) -> SqlType:
    """Return the type that a CAST names.

    Raises:
        InputError: ``unsupported-query`` for a type that CAST does not support.
    """
    sql_type = _type(target)
    if sql_type is None:
        known = f"CAST takes {', '.join(map(str, _TYPES.values()))} and DECIMAL(p,s)."
        raise unsupported(
            f"CAST to {target.sql('spark')[:60]}", known, "A VARIANT is also CAST to ARRAY, MAP and STRUCT."
        )
    return sql_type


def _type(target: exp.Expr) -> SqlType | None:
    """Return the type that a node of the parser names; None for an unsupported type."""
    if isinstance(target, exp.ColumnDef):
        return None if target.args.get("constraints") else _type(target.args["kind"])  # a field of a STRUCT
    if not isinstance(target, exp.DataType) or not isinstance(target.this, exp.DataType.Type):
        return None
    match target.this.name:
        case "DECIMAL":
            return _decimal([size.name for size in target.expressions])
        case "ARRAY" | "MAP" | "STRUCT" as name:
            return _nested(name, target.expressions)
        case name:
            return None if target.expressions else _TYPES.get(name)


def _decimal(sizes: list[str]) -> SqlType | None:
    if len(sizes) > 2 or not all(size.isdecimal() for size in sizes):
        return None
    precision, scale = [*map(int, sizes), *(10, 0)[len(sizes) :]]
    return decimal(precision, scale) if 1 <= precision <= WIDEST and scale <= precision else None


def _nested(name: str, parts: list[exp.Expr]) -> SqlType | None:
    kinds = [_type(part) for part in parts]
    known = [sql_type for sql_type in kinds if sql_type is not None]
    if not known or len(known) < len(kinds):
        return None
    if name == "STRUCT":
        names = [part.name for part in parts]
        plain = all(names) and len({one.casefold() for one in names}) == len(names)
        return struct_of(list(zip(names, known, strict=True))) if plain else None
    if name == "ARRAY":
        return array_of(known[0]) if len(known) == 1 else None
    return map_of(STRING, known[1]) if len(known) == 2 and known[0] == STRING else None
