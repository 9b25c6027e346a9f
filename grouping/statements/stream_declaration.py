"""CREATE STREAM: a topic that is read as events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from grouping.model.column_place import ColumnPlace
from grouping.model.errors import InputError
from grouping.model.explode import explode_levels, explode_text
from grouping.model.query import CreateStream
from grouping.model.source_access import AccessKind
from grouping.model.wording import counted
from grouping.statements.access import ACCESS_CHOICES, accept_if_not_exists
from grouping.statements.declaration import check_options, read_columns, read_options
from grouping.statements.tokens import Tokens

__all__ = ["CHOICES", "OPTIONS", "read_stream"]

CHOICES = {
    "format": ("json", "avro"),
    "start": ("latest", "earliest"),
    "framing": ("single-object", "confluent", "raw"),
    "access": ACCESS_CHOICES,
    "timestamps": ("seconds", "millis", "micros"),
}
OPTIONS = ("topic", "format", "partitions", "start", "schema", "framing", "access", "lenient", "timestamps", "explode")


def read_stream(tokens: Tokens) -> CreateStream:
    """Read the rest of CREATE STREAM; the topic itself is checked later.

    Raises:
        InputError: ``syntax-error``, or ``stream-mismatch`` where the declaration contradicts itself.
    """
    if_not_exists = accept_if_not_exists(tokens)
    name = tokens.stream_name()
    columns, _, places = read_columns(tokens)
    tokens.expect("WITH")
    options = read_options(tokens, OPTIONS, CHOICES)
    check_options(options, "stream")
    for option in ("lenient", "timestamps", "explode"):
        if option in options and options["format"] != "json":
            raise InputError(
                f'option "{option}" is for JSON only',
                code="stream-mismatch",
                detail=f"The format of the stream is {options['format']}, in which values have types.",
                hint="Leave it out.",
            )
    if places and options["format"] != "json":
        raise InputError(
            f'column "{next(iter(places))}" cannot have FROM',
            code="stream-mismatch",
            detail=f"FROM is for JSON streams, and the format of the stream is {options['format']}.",
            hint="Name the column as the field of the schema.",
        )
    levels = explode_levels(str(options["explode"])) if "explode" in options else ()
    _check_outer(places, len(levels))
    return CreateStream(
        name=name,
        columns=columns,
        places=places,
        topic=str(options["topic"]),
        format=cast(Literal["json", "avro"], options["format"]),
        partitions=cast(int | None, options.get("partitions")),
        start=cast(Literal["latest", "earliest"], options.get("start", "latest")),
        schema=cast(str | None, options.get("schema")),
        framing=cast(Literal["single-object", "confluent", "raw"], options.get("framing", "single-object")),
        access=cast(AccessKind | None, options.get("access")),
        if_not_exists=if_not_exists,
        lenient=bool(options.get("lenient", False)),
        timestamps=str(options.get("timestamps", "")),
        explode=explode_text(levels) if levels else None,
    )


def _check_outer(places: Mapping[str, str], levels: int) -> None:
    """Check that each ``^`` leads to a value around the event."""
    for name, text in places.items():
        place = ColumnPlace.of(text)
        if place.level > levels:
            arrays = f"explode has {counted(levels, 'array')}" if levels else "the stream has no explode"
            raise InputError(
                f'column "{name}" lies outside of the record',
                code="stream-mismatch",
                detail=f"Each ^ leads out of one array of explode, and {arrays}.",
                hint="FROM '$.name' is a field of the event itself.",
            )
