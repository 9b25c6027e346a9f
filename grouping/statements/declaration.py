"""Declarations of streams and tables: columns with their types, and the options after WITH."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

from grouping.model.catalog import RECORD_FIELDS, Stream
from grouping.model.column import EventTime
from grouping.model.errors import InputError, near_name
from grouping.model.query import CreateStream, CreateTable
from grouping.model.sql_type import SqlType
from grouping.settings.registries import registry_url
from grouping.statements.column_parts import read_key, read_place, read_type
from grouping.statements.stream_clauses import at_clause, read_idle, read_stream_clauses, refuse_watermark
from grouping.statements.tokens import Tokens, clipped
from schemas.avro_columns import AvroMismatch, check_avro_columns
from schemas.avro_fields import column_hint
from schemas.avro_writers import check_writers

__all__ = [
    "DECIMALS",
    "DeclaredColumns",
    "NamesAndTypes",
    "OptionValues",
    "check_decimals",
    "check_options",
    "check_schemas",
    "read_column",
    "read_columns",
    "read_options",
]

NamesAndTypes = tuple[tuple[str, SqlType], ...]
"""Pairs (name, type), in the order of the columns."""
OptionValues = dict[str, str | int]
Choices = Mapping[str, Sequence[str]]

DECIMALS = ("string", "base64")
"""The choices of the option `decimals`."""
_MOST_PARTITIONS = 10_000
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._\-]{1,249}")
"""Kafka's rule for the name of a topic."""
_KEY_OF_STREAM = "A PRIMARY KEY is for CREATE TABLE; a stream has PARTITION KEY (…)."


class DeclaredColumns(NamedTuple):
    """The columns in parentheses."""

    columns: NamesAndTypes
    key: tuple[str, ...]
    """The columns of PRIMARY KEY (of a table) or PARTITION KEY (of a stream), as written."""
    places: dict[str, str]
    """By column, the text of its FROM."""
    watermark: EventTime | None = None
    """WATERMARK FOR of a stream, with the column as written; None without the clause."""


def read_columns(tokens: Tokens, *, keyed: bool = False) -> DeclaredColumns:
    """Read the columns in parentheses.

    Args:
        tokens: The statement, before the parenthesis.
        keyed: Whether the columns belong to a table, which has a PRIMARY KEY.

    Raises:
        InputError: ``syntax-error``, or ``stream-mismatch`` for a name that occurs twice.
    """
    tokens.expect_symbol(TokenType.L_PAREN, "(")
    columns: dict[str, tuple[str, SqlType]] = {}
    places: dict[str, str] = {}
    key: tuple[str, ...] = ()
    while True:
        if keyed and columns and tokens.accept_symbol(TokenType.PRIMARY_KEY):
            key = _only(key, read_key(tokens))
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return DeclaredColumns(tuple(columns.values()), key, places)
        if not keyed and columns and at_clause(tokens):
            key, watermark = read_stream_clauses(tokens)
            return DeclaredColumns(tuple(columns.values()), key, places, watermark)
        if keyed:
            refuse_watermark(tokens)
        elif tokens.type() is TokenType.PRIMARY_KEY:
            raise tokens.unexpected("a column", hint=_KEY_OF_STREAM)
        name, sql_type = read_column(tokens, columns, reserved=keyed)
        columns[name.casefold()] = (name, sql_type)
        place = read_place(tokens)
        if keyed and tokens.accept_symbol(TokenType.PRIMARY_KEY):
            key = _only(key, (name,))
            place = place or read_place(tokens)
        if place:
            places[name] = place
        if not tokens.accept_symbol(TokenType.COMMA):
            if tokens.type() is TokenType.PRIMARY_KEY:
                raise tokens.unexpected('")"', hint=_KEY_OF_STREAM)
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return DeclaredColumns(tuple(columns.values()), key, places)


def read_column(tokens: Tokens, taken: Container[str], *, reserved: bool = False) -> tuple[str, SqlType]:
    """Read the name and the type of a column.

    Args:
        tokens: The statement, before the name.
        taken: The names of other columns, in lower case.
        reserved: Whether names of fields of the record, such as `_time`, count as taken too.

    Raises:
        InputError: ``syntax-error``, or ``stream-mismatch`` for a name that is taken.
    """
    name = tokens.name("the name of a column")
    folded = name.casefold()
    own = reserved and folded in RECORD_FIELDS
    if own or folded in taken:
        raise InputError(
            f'column "{name}" exists already',
            code="stream-mismatch",
            detail="Every stream has this field, from the source record."
            if own
            else "Names of columns are not case-sensitive.",
            hint="Choose another name.",
        )
    return name, read_type(tokens)


def _only(before: tuple[str, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    if before:
        raise InputError(
            "there are two PRIMARY KEYs",
            code="syntax-error",
            detail="A table has one.",
            hint="Name all of its columns at the end: PRIMARY KEY (a, b).",
        )
    return key


def read_options(tokens: Tokens, known: Sequence[str], choices: Choices) -> OptionValues:
    """Read the options after WITH.

    Args:
        tokens: The statement, before the parenthesis.
        known: The options that the statement has.
        choices: The allowed values of options with a fixed choice.
    """
    options: OptionValues = {}
    tokens.expect_symbol(TokenType.L_PAREN, "(")
    while True:
        option = tokens.word().lower()
        if option not in known:
            raise _unknown_option(tokens, known)
        if option in options:
            raise InputError(f'option "{option}" is given twice', code="syntax-error")
        tokens.index += 1
        tokens.expect_symbol(TokenType.EQ, "=")
        if option == "partitions":
            options[option] = tokens.number("the number of partitions", highest=_MOST_PARTITIONS)
        elif option == "lenient":
            options[option] = _boolean(tokens)
        elif option == "idle":
            options[option] = read_idle(tokens)
        else:
            options[option] = _choice(option, tokens.string(f"the {option}"), choices)
        if not tokens.accept_symbol(TokenType.COMMA):
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return options


def _boolean(tokens: Tokens) -> bool:
    value = tokens.word()
    if value not in ("TRUE", "FALSE"):
        raise tokens.unexpected("TRUE or FALSE, without quotes")
    tokens.index += 1
    return value == "TRUE"


def _unknown_option(tokens: Tokens, known: Sequence[str]) -> InputError:
    if not tokens.word():
        return tokens.unexpected("the name of an option")
    return InputError(
        f'option "{clipped(tokens.source())}" does not exist',
        code="syntax-error",
        detail=f"The options are {', '.join(known)}.",
        hint=near_name(clipped(tokens.source()), known),
    )


def _choice(option: str, value: str, choices: Choices) -> str:
    some = choices.get(option)
    if some and value not in some:
        raise InputError(
            f'{option} "{clipped(value)}" does not exist',
            code="syntax-error",
            detail=f"The choices are {', '.join(some)}.",
            hint=near_name(clipped(value), some),
        )
    return value


def check_options(options: OptionValues, what: str) -> None:
    """Refuse missing or contradictory options; `what` is the kind of the declared object: stream or table."""
    for required in ("topic", "format"):
        if required not in options:
            raise InputError(
                f'option "{required}" is missing',
                code="syntax-error",
                detail=f"A {what} needs a topic and a format.",
                hint="WITH (topic = 'quotes', format = 'json') has both.",
            )
    topic = str(options["topic"])
    if not _TOPIC.fullmatch(topic):
        raise InputError(
            f'"{clipped(topic)}" cannot be the name of a topic',
            code="stream-mismatch",
            detail='The name of a Kafka topic has 1 to 249 ASCII letters, digits, "_", "." and "-".',
        )
    _check_descriptor(options)
    if options["format"] == "avro":
        _check_schemas(options, what)
        return
    framings = {"json": ("confluent",), "protobuf": ("confluent", "raw")}.get(str(options["format"]), ())
    for option in ("schema", "schemas", "registry"):
        if option in options:
            raise InputError(
                f'option "{option}" is for Avro only',
                code="stream-mismatch",
                detail=f"The format of the {what} is {options['format']}.",
                hint=f"Leave {option} out, or choose format = 'avro'.",
            )
    if "framing" in options and (what != "stream" or options["framing"] not in framings):
        taken = " or ".join(f"framing = '{each}'" for each in framings) if what == "stream" else ""
        raise InputError(
            f"framing = '{clipped(str(options['framing']))}' is not for format = '{options['format']}'",
            code="stream-mismatch",
            detail=f"A {what} of this format takes {taken or 'no framing'}.",
            hint="Leave framing out.",
        )


def _check_descriptor(options: OptionValues) -> None:
    """Check that Protobuf records, and no others, have a descriptor and the name of their message."""
    for option in ("descriptor", "message"):
        if options["format"] == "protobuf" and option not in options:
            raise InputError(
                f'option "{option}" is missing',
                code="stream-mismatch",
                detail="Protobuf records are read by a descriptor and the full name of their message.",
                hint="protoc --include_imports --descriptor_set_out writes a descriptor; give it in base64.",
            )
        if options["format"] != "protobuf" and option in options:
            raise InputError(
                f'option "{option}" is for Protobuf only',
                code="stream-mismatch",
                detail=f"The format is {options['format']}.",
                hint="Leave it out, or choose format = 'protobuf'.",
            )


def _check_schemas(options: OptionValues, what: str) -> None:
    """Check that an Avro declaration has exactly one of the options `schema`, `schemas` and `registry`."""
    given = [option for option in ("schema", "schemas", "registry") if option in options]
    if not given:
        raise InputError(
            'option "schema" is missing',
            code="stream-mismatch",
            detail=f"An Avro {what} needs the schema that its records are written with.",
            hint='Add schema = \'{"type": "record", …}\'.',
        )
    if len(given) > 1:
        raise InputError(
            f'the options "{given[0]}" and "{given[1]}" contradict each other',
            code="stream-mismatch",
            detail="schema is the only schema, schemas has a schema for each id, and a registry has them all.",
            hint="Leave one of them out.",
        )
    if given != ["schema"] and options.get("framing") != "confluent":
        raise InputError(
            f"option \"{given[0]}\" is for framing = 'confluent' only",
            code="stream-mismatch",
            detail="Only records with this framing name the id of their schema.",
            hint="Add framing = 'confluent', or give a single schema.",
        )
    if "registry" in options:
        options["registry"] = _registry(str(options["registry"]))


def _registry(text: str) -> str:
    """Return the URL of a registry in canonical form; errors do not quote the text, which may contain a password."""
    url = registry_url(text)
    if url is None or "@" in text:
        raise InputError(
            "the registry's URL cannot be used",
            code="stream-mismatch",
            detail="A registry's URL is http:// or https://, a host and perhaps a port and a path, without a login.",
            hint="An operator gives the login, with the URL in CQ_STREAMS_REGISTRIES.",
        )
    return url


def check_schemas(source: CreateStream | CreateTable | Stream, columns: Iterable[tuple[str, object]]) -> None:
    """Check that columns fit the schemas that records are written with.

    Args:
        source: The declaration, with a schema, with schemas by their ids (which replace the schema), or with a
            descriptor.
        columns: Names and types.

    Raises:
        InputError: stream-mismatch.
    """
    schema = source.avro_schema if isinstance(source, Stream) else source.schema
    schemas = None if isinstance(source, CreateTable) else source.schemas or None
    try:
        if not isinstance(source, CreateTable) and source.descriptor:
            from schemas.proto_columns import check_proto_columns

            check_proto_columns(source.descriptor, source.message or "", columns)
        elif schemas is not None:
            check_writers(schemas, columns)
        elif schema is not None:
            check_avro_columns(schema, columns)
    except AvroMismatch as error:
        raise InputError(error.message, code="stream-mismatch", detail=error.detail, hint=column_hint(error)) from error


def check_decimals(options: OptionValues) -> None:
    """Refuse the option `decimals` with a format other than Debezium's.

    Raises:
        InputError: ``stream-mismatch``.
    """
    if "decimals" in options and options["format"] != "debezium-json":
        raise InputError(
            'option "decimals" is for Debezium only',
            code="stream-mismatch",
            detail=f"The format is {options['format']}, in which the text of a DECIMAL is a decimal number.",
            hint="Leave it out, or choose format = 'debezium-json'.",
        )
