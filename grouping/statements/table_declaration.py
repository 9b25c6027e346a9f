"""The reader of CREATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from grouping.model.change_format import CHANGE_FORMATS, is_change_format
from grouping.model.column_place import ColumnPlace
from grouping.model.errors import InputError
from grouping.model.query import CreateTable
from grouping.model.refusals import unsupported
from grouping.model.source_access import AccessKind
from grouping.statements.access import ACCESS_CHOICES, accept_if_not_exists
from grouping.statements.column_parts import declared_key
from grouping.statements.declaration import (
    DECIMALS,
    check_decimals,
    check_options,
    read_columns,
    read_options,
)
from grouping.statements.tokens import Tokens

__all__ = ["read_table"]

_CHOICES = {
    "format": ("json", "avro", *CHANGE_FORMATS),
    "framing": ("single-object", "confluent", "raw"),
    "access": ACCESS_CHOICES,
    "decimals": DECIMALS,
    "timestamps": ("seconds", "millis", "micros"),
}
_OPTIONS = ("topic", "format", "partitions", "schema", "framing", "access", "decimals", "timestamps")


def read_table(tokens: Tokens) -> CreateTable:
    """Read the rest of CREATE TABLE; the topic itself is checked later.

    Raises:
        InputError: ``syntax-error``, or ``stream-mismatch`` for a contradictory declaration.
    """
    if_not_exists = accept_if_not_exists(tokens)
    name = tokens.stream_name()
    columns, key, places, _ = read_columns(tokens, keyed=True)
    if not key:
        raise InputError(
            f'table "{name}" has no PRIMARY KEY',
            code="syntax-error",
            detail="A table holds the latest row for each key.",
            hint="Write PRIMARY KEY after a column, or PRIMARY KEY (a, b) after the last column.",
        )
    tokens.expect("WITH")
    options = read_options(tokens, _OPTIONS, _CHOICES)
    check_options(options, "table")
    check_decimals(options)
    form = str(options["format"])
    if "timestamps" in options and not is_change_format(form):
        raise InputError(
            'option "timestamps" is for changes only',
            code="stream-mismatch",
            detail=f"The format of the table is {form}; the formats of changes are {', '.join(CHANGE_FORMATS)}.",
            hint="Leave it out, and write TIMESTAMPs as ISO 8601.",
        )
    _check_places(form, places)
    return CreateTable(
        name=name,
        columns=columns,
        key=declared_key(columns, key, "PRIMARY KEY", f'table "{name}"'),
        topic=str(options["topic"]),
        format=form,
        partitions=cast(int | None, options.get("partitions")),
        schema=cast(str | None, options.get("schema")),
        framing=cast(Literal["single-object", "confluent", "raw"], options.get("framing", "single-object")),
        access=cast(AccessKind | None, options.get("access")),
        if_not_exists=if_not_exists,
        places=places or None,
        decimals=cast(str | None, options.get("decimals")),
        timestamps=cast(str | None, options.get("timestamps")),
    )


def _check_places(form: str, places: Mapping[str, str]) -> None:
    """Refuse places that a table's format does not allow: Avro allows none, JSON only FROM KEY, others also paths."""
    kinds = {"avro": (), "json": ("key",)}.get(form, ("key", "value"))
    for name, text in places.items():
        if ColumnPlace.of(text).kind not in kinds:
            detail = f'Column "{name}" is read from the field of the same name.'
            raise unsupported("FROM in a TABLE", detail, "A column of a STREAM can have FROM.")
