"""CREATE STREAM: columns with their types, and the options after WITH."""

from __future__ import annotations

import re
from typing import Literal, cast

from sqlglot.tokenizer_core import TokenType

from grouping.model.catalog import RECORD_FIELDS
from grouping.model.errors import InputError, near_name
from grouping.model.query import CreateStream
from grouping.statements.tokens import Tokens, clipped

__all__ = ["read_stream"]

Columns = tuple[tuple[str, str], ...]

_PLAIN_TYPES = ("STRING", "BOOLEAN", "INT", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP")
_OTHER_SPELLINGS = {
    "BOOL": "BOOLEAN",
    "BYTE": "INT",
    "CHAR": "STRING",
    "DATETIME": "TIMESTAMP",
    "DEC": "DECIMAL",
    "FLOAT": "DOUBLE",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "NUMERIC": "DECIMAL",
    "REAL": "DOUBLE",
    "SHORT": "INT",
    "SMALLINT": "INT",
    "TEXT": "STRING",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TINYINT": "INT",
    "VARCHAR": "STRING",
}
"""Names that other systems have for a type, for the hint only."""
_DIGITS = 38
"""Spark's largest DECIMAL precision."""
_DEFAULT_DECIMAL = (10, 0)
_CHOICES = {
    "format": ("json", "avro"),
    "start": ("latest", "earliest"),
    "framing": ("single-object", "confluent", "raw"),
}
_OPTIONS = ("topic", "format", "partitions", "start", "schema", "framing")
_MOST_PARTITIONS = 10_000
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._\-]{1,249}")
"""Kafka's rule for the name of a topic."""


def read_stream(tokens: Tokens) -> CreateStream:
    """Read what follows CREATE STREAM; what the topic is like is checked later.

    Raises:
        InputError: ``syntax-error``, or ``stream-mismatch`` where the declaration contradicts itself.
    """
    name = tokens.stream_name()
    columns = _columns(tokens)
    tokens.expect("WITH")
    options = _options(tokens)
    for required in ("topic", "format"):
        if required not in options:
            raise InputError(
                f'option "{required}" is missing',
                code="syntax-error",
                detail="A stream needs a topic and a format.",
                hint="WITH (topic = 'quotes', format = 'json') has both.",
            )
    _check_options(options)
    return CreateStream(
        name=name,
        columns=columns,
        topic=str(options["topic"]),
        format=cast(Literal["json", "avro"], options["format"]),
        partitions=cast(int | None, options.get("partitions")),
        start=cast(Literal["latest", "earliest"], options.get("start", "latest")),
        schema=cast(str | None, options.get("schema")),
        framing=cast(Literal["single-object", "confluent", "raw"], options.get("framing", "single-object")),
    )


def _columns(tokens: Tokens) -> Columns:
    tokens.expect_symbol(TokenType.L_PAREN, "(")
    columns: dict[str, tuple[str, str]] = {}
    while True:
        name = tokens.name("the name of a column")
        folded = name.casefold()
        if folded in columns or folded in RECORD_FIELDS:
            raise InputError(
                f'column "{name}" exists already',
                code="stream-mismatch",
                detail="Every stream has it, from the source record."
                if folded in RECORD_FIELDS
                else "Names of columns are not case-sensitive.",
                hint="Choose another name.",
            )
        columns[folded] = (name, _type(tokens))
        if not tokens.accept_symbol(TokenType.COMMA):
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return tuple(columns.values())


def _type(tokens: Tokens) -> str:
    word = tokens.word()
    if word in _PLAIN_TYPES:
        tokens.index += 1
        return word
    if word == "DECIMAL":
        tokens.index += 1
        return _decimal(tokens)
    if not word:
        raise tokens.unexpected("the type of the column")
    nearest = _OTHER_SPELLINGS.get(word)
    raise InputError(
        f'type "{clipped(tokens.source())}" does not exist',
        code="syntax-error",
        detail=f"The types are {', '.join(_PLAIN_TYPES)} and DECIMAL(p,s).",
        hint=f'Use "{nearest}".' if nearest else near_name(clipped(word), (*_PLAIN_TYPES, "DECIMAL")),
    )


def _decimal(tokens: Tokens) -> str:
    precision, scale = _DEFAULT_DECIMAL
    if tokens.accept_symbol(TokenType.L_PAREN):
        precision = tokens.number("the precision", highest=_DIGITS)
        if tokens.accept_symbol(TokenType.COMMA):
            zero = tokens.source() == "0"
            if zero:
                tokens.index += 1
            scale = 0 if zero else tokens.number("the scale", highest=precision)
        tokens.expect_symbol(TokenType.R_PAREN, ")")
    return f"DECIMAL({precision},{scale})"


def _options(tokens: Tokens) -> dict[str, str | int]:
    options: dict[str, str | int] = {}
    tokens.expect_symbol(TokenType.L_PAREN, "(")
    while True:
        option = tokens.word().lower()
        if option not in _OPTIONS:
            raise _unknown_option(tokens)
        if option in options:
            raise InputError(f'option "{option}" is given twice', code="syntax-error")
        tokens.index += 1
        tokens.expect_symbol(TokenType.EQ, "=")
        if option == "partitions":
            options[option] = tokens.number("how many partitions", highest=_MOST_PARTITIONS)
        else:
            options[option] = _choice(option, tokens.string(f"the {option}"))
        if not tokens.accept_symbol(TokenType.COMMA):
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return options


def _unknown_option(tokens: Tokens) -> InputError:
    if not tokens.word():
        return tokens.unexpected("the name of an option")
    return InputError(
        f'option "{clipped(tokens.source())}" does not exist',
        code="syntax-error",
        detail=f"The options are {', '.join(_OPTIONS)}.",
        hint=near_name(clipped(tokens.source()), _OPTIONS),
    )


def _choice(option: str, value: str) -> str:
    choices = _CHOICES.get(option)
    if choices and value not in choices:
        raise InputError(
            f'{option} "{clipped(value)}" does not exist',
            code="syntax-error",
            detail=f"The choices are {', '.join(choices)}.",
            hint=near_name(clipped(value), choices),
        )
    return value


def _check_options(options: dict[str, str | int]) -> None:
    topic = str(options["topic"])
    if not _TOPIC.fullmatch(topic):
        raise InputError(
            f'topic "{clipped(topic)}" cannot exist',
            code="stream-mismatch",
            detail='Kafka\'s topics have 1 to 249 ASCII letters, digits, "_", "." and "-".',
        )
    if options["format"] == "avro" and "schema" not in options:
        raise InputError(
            'option "schema" is missing',
            code="stream-mismatch",
            detail="An Avro stream needs the schema that its records are written with.",
            hint='Add schema = \'{"type": "record", …}\'.',
        )
    surplus = [option for option in ("schema", "framing") if option in options]
    if options["format"] == "json" and surplus:
        raise InputError(
            f'option "{surplus[0]}" is for Avro only',
            code="stream-mismatch",
            detail="The format of the stream is json.",
            hint="Leave it out, or choose format = 'avro'.",
        )
