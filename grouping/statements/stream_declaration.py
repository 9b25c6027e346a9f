"""Readers of CREATE STREAM and ALTER STREAM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import msgspec

from grouping.model.change_format import CHANGE_FORMATS, ENVELOPE_FIELDS, is_change_format
from grouping.model.column import EventTime, StreamColumn
from grouping.model.column_place import ColumnPlace, declared_path
from grouping.model.errors import InputError
from grouping.model.explode import explode_levels, explode_text
from grouping.model.query import AlterStream, CreateStream
from grouping.model.refusals import unsupported
from grouping.model.source_access import AccessKind
from grouping.model.wording import counted
from grouping.statements.access import ACCESS_CHOICES, accept_if_not_exists
from grouping.statements.column_parts import declared_key, read_place
from grouping.statements.declaration import (
    DECIMALS,
    NamesAndTypes,
    OptionValues,
    check_decimals,
    check_options,
    read_column,
    read_columns,
    read_options,
)
from grouping.statements.stream_clauses import at_clause, declared_time
from grouping.statements.tokens import Tokens

__all__ = [
    "CHOICES",
    "OPTIONS",
    "check_envelope_field",
    "check_format",
    "check_outer",
    "declared_fields",
    "read_alter_stream",
    "read_stream",
]

CHOICES = {
    "format": ("json", "avro", "protobuf", *CHANGE_FORMATS),
    "start": ("latest", "earliest"),
    "framing": ("single-object", "confluent", "raw"),
    "access": ACCESS_CHOICES,
    "timestamps": ("seconds", "millis", "micros"),
    "decimals": DECIMALS,
}
OPTIONS = (
    "topic",
    "format",
    "partitions",
    "start",
    "schema",
    "schemas",
    "registry",
    "descriptor",
    "message",
    "framing",
    "access",
    "lenient",
    "timestamps",
    "explode",
    "decimals",
    "idle",
)
_FRAMING = {"protobuf": "raw"}
"""Format → default framing. Any other format has ``single-object``, which has a meaning only for Avro."""
_OF_TOPICS = tuple(option for option in OPTIONS if option not in ("topic", "partitions", "decimals"))
"""The options after FROM TOPIC. `topic` and `partitions` are missing, because the clause names an existing topic.
`decimals` is missing, because the option is for a format that the clause does not accept."""
_INFERRED = ("json", "avro", "protobuf")
"""The formats that FROM TOPIC accepts."""
_OF_JSON = ("lenient", "timestamps", "explode")
_CHANGEABLE = ("lenient", "timestamps", "schemas", "idle")


def read_stream(tokens: Tokens) -> CreateStream:
    """Read the rest of CREATE STREAM; the topic itself is checked later.

    Raises:
        InputError: ``syntax-error``, or ``stream-mismatch`` for a contradictory declaration.
    """
    if_not_exists = accept_if_not_exists(tokens)
    name = tokens.stream_name()
    columns: NamesAndTypes = ()
    key: tuple[str, ...] = ()
    places: dict[str, str] = {}
    watermark: EventTime | None = None
    from_topic = tokens.accept("FROM", "TOPIC")
    if from_topic:
        options = _topic_options(tokens)
    else:
        columns, key, places, watermark = read_columns(tokens)
        tokens.expect("WITH")
        options = read_options(tokens, OPTIONS, CHOICES)
    check_options(options, "stream")
    check_decimals(options)
    form = str(options["format"])
    check_format(form, [each for each in _OF_JSON if each in options], places)
    for column, _ in columns:
        if column not in places:
            check_envelope_field(form, column)
    levels = explode_levels(declared_path(str(options["explode"]))) if "explode" in options else ()
    check_outer(places, len(levels))
    return CreateStream(
        name=name,
        columns=columns,
        places=places,
        partition_key=declared_key(columns, key, "PARTITION KEY", f'stream "{name}"'),
        topic=str(options["topic"]),
        format=form,
        partitions=cast(int | None, options.get("partitions")),
        start=cast(Literal["latest", "earliest"], options.get("start", "latest")),
        schema=cast(str | None, options.get("schema")),
        schemas=cast(str | None, options.get("schemas")),
        registry=cast(str | None, options.get("registry")),
        descriptor=cast(str | None, options.get("descriptor")),
        message=cast(str | None, options.get("message")),
        framing=cast(
            Literal["single-object", "confluent", "raw"], options.get("framing", _FRAMING.get(form, "single-object"))
        ),
        access=cast(AccessKind | None, options.get("access")),
        if_not_exists=if_not_exists,
        lenient=bool(options.get("lenient", False)),
        timestamps=str(options.get("timestamps", "")),
        explode=explode_text(levels) if levels else None,
        decimals=cast(str | None, options.get("decimals")),
        from_topic=from_topic or None,
        event_time=declared_time(columns, watermark, cast(int | None, options.get("idle")), name),
    )


def _topic_options(tokens: Tokens) -> OptionValues:
    """Read the topic and the options after FROM TOPIC; the default format is JSON.

    Raises:
        InputError: ``syntax-error``, or ``unsupported-query`` for changes of a database.
    """
    topic = tokens.string("the name of a topic")
    options: OptionValues = {"format": "json"}
    if tokens.accept("WITH"):
        options |= read_options(tokens, _OF_TOPICS, CHOICES)
    if options["format"] not in _INFERRED:
        raise unsupported(
            f"FROM TOPIC with format = '{options['format']}'",
            "Columns are inferred from JSON records, from the schemas of Avro, and from a descriptor of Protobuf.",
            "Declare the columns.",
        )
    return {**options, "topic": topic}


def check_outer(places: Mapping[str, str], levels: int) -> None:
    """Check that no place has more ``^`` than there are arrays around the event. Each ``^`` leads out of one array.

    Args:
        places: By column, the text of its FROM.
        levels: The number of arrays in the path of explode.

    Raises:
        InputError: ``stream-mismatch``.
    """
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


def check_format(form: str, options: Iterable[str], placed: Iterable[str]) -> None:
    """Refuse options and places that only JSON streams can have.

    Args:
        form: The format of the stream.
        options: The names of given options that are for JSON.
        placed: The names of columns with FROM.

    Raises:
        InputError: ``stream-mismatch``.
    """
    if form == "json":
        return
    if is_change_format(form):
        if "explode" in options:
            raise InputError(
                'option "explode" is for JSON only',
                code="stream-mismatch",
                detail=f"A record of format {form} is one event.",
                hint="With format = 'json' and FROM '^.…' each element of an array in a change is an event.",
            )
        return
    for option in options:
        raise InputError(
            f'option "{option}" is for JSON only',
            code="stream-mismatch",
            detail=f"The format of the stream is {form}, in which values have types.",
            hint="Leave it out.",
        )
    for column in placed:
        raise InputError(
            f'column "{column}" cannot have FROM',
            code="stream-mismatch",
            detail=f"FROM is for JSON streams, and the format of the stream is {form}.",
            hint="Name the column as the field of the schema.",
        )


def check_envelope_field(form: str, column: str) -> None:
    """For formats of changes, refuse a column that has no FROM and is not a field of the change itself.

    Raises:
        InputError: ``stream-mismatch``.
    """
    known = ENVELOPE_FIELDS.get(form, (column,))
    if column not in known:
        row = {"maxwell-json": "data", "canal-json": "data[0]"}.get(form, "after")
        raise InputError(
            f'column "{column}" is not a field of a change',
            code="stream-mismatch",
            detail=f"The event of a stream of {form} is the change, with the fields {', '.join(known)}.",
            hint=f"FROM '$.{row}.{column}' is a column of the row.",
        )


def read_alter_stream(tokens: Tokens) -> AlterStream:
    """Read the rest of ALTER STREAM; the stream itself is looked up later.

    Raises:
        InputError: ``syntax-error``; ``stream-mismatch`` for a name that every stream has; ``bad-interval``; or
            ``unsupported-query`` for WATERMARK FOR and PARTITION KEY.
    """
    name = tokens.stream_name()
    is_set = bool(tokens.accept("SET"))
    if at_clause(tokens):
        raise unsupported(
            "another WATERMARK FOR or PARTITION KEY of a stream",
            "The states of queries depend on the declared ones, and must be the same in each replay.",
            "Declare them in CREATE STREAM under another name, over the same topic.",
        )
    if is_set:
        options = read_options(tokens, _CHANGEABLE, CHOICES)
        lenient, timestamps, schemas, idle = map(options.get, _CHANGEABLE)
        return AlterStream(
            name,
            lenient=None if lenient is None else bool(lenient),
            timestamps=None if timestamps is None else str(timestamps),
            schemas=None if schemas is None else str(schemas),
            idle_ms=None if idle is None else int(idle),
        )
    if not (tokens.word() == "ADD" and tokens.word(1) == "COLUMN"):
        hint = "Existing columns cannot be changed. DROP STREAM and CREATE STREAM make another stream."
        raise tokens.unexpected("ADD COLUMN or SET", hint=hint)
    tokens.index += 2
    column, sql_type = read_column(tokens, (), reserved=True)
    return AlterStream(name, StreamColumn(column, str(sql_type), read_place(tokens)))


def declared_fields(statement: CreateStream) -> dict[str, Any]:
    """Return the fields of a `Stream` that depend only on its CREATE STREAM, by name."""
    return {
        "columns": statement.stream_columns,
        "topic": statement.topic,
        "format": statement.format,
        "avro_schema": statement.schema,
        "framing": statement.framing,
        "lenient": statement.lenient,
        "timestamps": statement.timestamps,
        "explode": statement.explode or msgspec.UNSET,
        "decimals": statement.decimals or msgspec.UNSET,
        "schemas": statement.schemas or msgspec.UNSET,
        "registry": statement.registry or msgspec.UNSET,
        "descriptor": statement.descriptor or msgspec.UNSET,
        "message": statement.message or msgspec.UNSET,
        "partition_key": statement.partition_key,
        "declared_time": statement.event_time or msgspec.UNSET,
    }
