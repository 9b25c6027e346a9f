"""CREATE TABLE: a topic of which the latest row for each key is read."""

from __future__ import annotations

from typing import Literal, cast

from grouping.model.errors import InputError, near_name
from grouping.model.query import CreateTable
from grouping.model.source_access import AccessKind
from grouping.statements.access import ACCESS_CHOICES, accept_if_not_exists
from grouping.statements.declaration import NamesAndTypes, check_options, read_columns, read_options
from grouping.statements.tokens import Tokens

__all__ = ["read_table"]

_CHOICES = {
    "format": ("json", "avro", "debezium-json"),
    "framing": ("single-object", "confluent", "raw"),
    "access": ACCESS_CHOICES,
}
_OPTIONS = ("topic", "format", "partitions", "schema", "framing", "access")


def read_table(tokens: Tokens) -> CreateTable:
    """Read the rest of CREATE TABLE; the topic itself is checked later.

    Raises:
        InputError: ``syntax-error``, or ``stream-mismatch`` where the declaration contradicts itself.
    """
    if_not_exists = accept_if_not_exists(tokens)
    name = tokens.stream_name()
    columns, key, _ = read_columns(tokens, keyed=True)
    tokens.expect("WITH")
    options = read_options(tokens, _OPTIONS, _CHOICES)
    check_options(options, "table")
    return CreateTable(
        name=name,
        columns=columns,
        key=_spelt_as_declared(name, columns, key),
        topic=str(options["topic"]),
        format=cast(Literal["json", "avro", "debezium-json"], options["format"]),
        partitions=cast(int | None, options.get("partitions")),
        schema=cast(str | None, options.get("schema")),
        framing=cast(Literal["single-object", "confluent", "raw"], options.get("framing", "single-object")),
        access=cast(AccessKind | None, options.get("access")),
        if_not_exists=if_not_exists,
    )


def _spelt_as_declared(table: str, columns: NamesAndTypes, key: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of the PRIMARY KEY by their declared names."""
    if not key:
        raise InputError(
            f'table "{table}" has no PRIMARY KEY',
            code="syntax-error",
            detail="A table holds the latest row for each key.",
            hint="Write PRIMARY KEY behind a column, or PRIMARY KEY (a, b) behind the last one.",
        )
    declared = {column.casefold(): column for column, _ in columns}
    types = dict(columns)
    spelt: list[str] = []
    for column in key:
        found = declared.get(column.casefold())
        if found is None:
            raise InputError(
                f'column "{column}" does not exist',
                code="unknown-column",
                detail=f'The PRIMARY KEY of table "{table}" names it; there are {", ".join(declared.values())}.',
                hint=near_name(column, list(declared.values())),
            )
        if not types[found].is_ordered:
            raise InputError(
                f'column "{found}" cannot be in the PRIMARY KEY',
                code="unsupported-query",
                detail=f"It is {types[found]}, and rows are found by values that compare.",
            )
        if found in spelt:
            raise InputError(
                f'column "{column}" is in the PRIMARY KEY twice', code="syntax-error", detail="Once is enough."
            )
        spelt.append(found)
    return tuple(spelt)
