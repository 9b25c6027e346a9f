"""Declarations of streams and tables: columns with their types, and the options after WITH."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

from grouping.model.catalog import RECORD_FIELDS
from grouping.model.decimal_types import WIDEST
from grouping.model.errors import InputError, near_name
from grouping.model.refusals import unsupported
from grouping.model.sql_type import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VARIANT,
    SqlType,
    array_of,
    decimal,
    map_of,
    struct_of,
)
from grouping.statements.column_place import read_place
from grouping.statements.tokens import Tokens, clipped

__all__ = [
    "OTHER_SPELLINGS",
    "PLAIN_TYPES",
    "Columns",
    "DeclaredColumns",
    "Options",
    "check_options",
    "read_column",
    "read_columns",
    "read_options",
]

Columns = tuple[tuple[str, SqlType], ...]
"""(name, type) in order."""
Options = dict[str, str | int]
Choices = Mapping[str, Sequence[str]]

PLAIN_TYPES = {
    sql_type.name: sql_type
    for sql_type in (STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP, BINARY, VARIANT)
}
"""The types of columns by their names, besides DECIMAL, which has sizes."""
OTHER_SPELLINGS = {
    "BLOB": "BINARY",
    "BOOL": "BOOLEAN",
    "BYTE": "TINYINT",
    "BYTES": "BINARY",
    "CHAR": "STRING",
    "DATETIME": "TIMESTAMP",
    "DEC": "DECIMAL",
    "INTEGER": "INT",
    "JSON": "VARIANT",
    "JSONB": "VARIANT",
    "LONG": "BIGINT",
    "NUMERIC": "DECIMAL",
    "REAL": "FLOAT",
    "SHORT": "SMALLINT",
    "TEXT": "STRING",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "VARCHAR": "STRING",
}
"""Names that other systems have for a type, for the hint only."""
_NESTED = ("STRUCT", "ARRAY", "MAP")
_DEEPEST = 16
"""Types that may stand around a type."""
_DEFAULT_DECIMAL = (10, 0)
_MOST_PARTITIONS = 10_000
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._\-]{1,249}")
"""Kafka's rule for the name of a topic."""


class DeclaredColumns(NamedTuple):
    """The columns in parentheses."""

    columns: Columns
    key: tuple[str, ...]
    """The names of the PRIMARY KEY columns, as they are written."""
    places: dict[str, str]
    """By column, the text of its FROM."""


def read_columns(tokens: Tokens, *, keyed: bool = False) -> DeclaredColumns:
    """Read the columns in parentheses.

    Args:
        tokens: The statement, before the parenthesis.
        keyed: Whether the columns are those of a table, which has a PRIMARY KEY and no FROM.

    Raises:
        InputError: ``syntax-error``, or ``stream-mismatch`` for a name that is there twice.
    """
    tokens.expect_symbol(TokenType.L_PAREN, "(")
    columns: dict[str, tuple[str, SqlType]] = {}
    places: dict[str, str] = {}
    key: tuple[str, ...] = ()
    while True:
        if keyed and columns and tokens.type() is TokenType.PRIMARY_KEY:
            key = _only(key, _key(tokens))
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return DeclaredColumns(tuple(columns.values()), key, places)
        if tokens.word() == "WATERMARK" and tokens.word(1) == "FOR":
            raise _without_watermark("WATERMARK")
        name, sql_type = read_column(tokens, columns, reserved=keyed)
        columns[name.casefold()] = (name, sql_type)
        if keyed and tokens.accept_symbol(TokenType.PRIMARY_KEY):
            key = _only(key, (name,))
        elif keyed and tokens.word() == "FROM":
            raise unsupported(
                "FROM in a TABLE", f'Column "{name}" is the field of its name.', "A column of a STREAM can have FROM."
            )
        elif place := read_place(tokens):
            places[name] = place
        if not tokens.accept_symbol(TokenType.COMMA):
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return DeclaredColumns(tuple(columns.values()), key, places)


def read_column(tokens: Tokens, taken: Container[str], *, reserved: bool = False) -> tuple[str, SqlType]:
    """Read the name and the type of a column.

    Args:
        tokens: The statement, before the name.
        taken: The names of other columns, in lower case.
        reserved: Whether the names of the record's own fields are taken, too.

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
            detail="Every stream has it, from the source record."
            if own
            else "Names of columns are not case-sensitive.",
            hint="Choose another name.",
        )
    return name, _type(tokens)


def _key(tokens: Tokens) -> tuple[str, ...]:
    """Read PRIMARY KEY and its columns."""
    tokens.index += 1
    tokens.expect_symbol(TokenType.L_PAREN, "(")
    names = [tokens.name("the name of a column")]
    while tokens.accept_symbol(TokenType.COMMA):
        names.append(tokens.name("the name of a column"))
    tokens.expect_symbol(TokenType.R_PAREN, ")")
    return tuple(names)


def _only(before: tuple[str, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    if before:
        raise InputError(
            "there are two PRIMARY KEYs",
            code="syntax-error",
            detail="A table has one.",
            hint="Name all of its columns at the end: PRIMARY KEY (a, b).",
        )
    return key


def _type(tokens: Tokens, depth: int = 0) -> SqlType:
    word = tokens.word()
    if word in PLAIN_TYPES:
        tokens.index += 1
        return PLAIN_TYPES[word]
    if word == "DECIMAL":
        tokens.index += 1
        return _decimal(tokens)
    if word in _NESTED:
        return _nested(tokens, depth)
    if not word:
        raise tokens.unexpected("the type of the column")
    nearest = OTHER_SPELLINGS.get(word)
    raise InputError(
        f'type "{clipped(tokens.source())}" does not exist',
        code="syntax-error",
        detail=f"The types are {', '.join(PLAIN_TYPES)}, DECIMAL(p,s), STRUCT<name: type, …>, ARRAY<type> and "
        "MAP<STRING, type>.",
        hint=f'Use "{nearest}".' if nearest else near_name(clipped(word), (*PLAIN_TYPES, "DECIMAL", *_NESTED)),
    )


def _nested(tokens: Tokens, depth: int) -> SqlType:
    """Read a type that holds others."""
    word = tokens.word()
    if depth >= _DEEPEST:
        what = f"a type of more than {_DEEPEST} levels"
        raise unsupported(what, "STRUCT, ARRAY and MAP are limited in depth.", "Declare the deep part as VARIANT.")
    tokens.index += 1
    tokens.expect_symbol(TokenType.LT, "<")
    if word == "STRUCT":
        return _struct(tokens, depth)
    if word == "MAP":
        if tokens.word() != "STRING":
            raise tokens.unexpected("STRING, the type of the keys")
        tokens.index += 1
        tokens.expect_symbol(TokenType.COMMA, ",")
    element = _type(tokens, depth + 1)
    tokens.expect_symbol(TokenType.GT, ">")
    return map_of(STRING, element) if word == "MAP" else array_of(element)


def _struct(tokens: Tokens, depth: int) -> SqlType:
    fields: dict[str, tuple[str, SqlType]] = {}
    while True:
        name = tokens.name("the name of a field")
        if name.casefold() in fields:
            raise InputError(
                f'field "{name}" is there twice',
                code="stream-mismatch",
                detail="Names of fields are not case-sensitive.",
            )
        tokens.accept_symbol(TokenType.COLON)
        fields[name.casefold()] = (name, _type(tokens, depth + 1))
        if not tokens.accept_symbol(TokenType.COMMA):
            tokens.expect_symbol(TokenType.GT, ">")
            return struct_of(tuple(fields.values()))


def _decimal(tokens: Tokens) -> SqlType:
    precision, scale = _DEFAULT_DECIMAL
    if tokens.accept_symbol(TokenType.L_PAREN):
        precision = tokens.number("the precision", highest=WIDEST)
        if tokens.accept_symbol(TokenType.COMMA):
            zero = tokens.source() == "0"
            if zero:
                tokens.index += 1
            scale = 0 if zero else tokens.number("the scale", highest=precision)
        tokens.expect_symbol(TokenType.R_PAREN, ")")
    return decimal(precision, scale)


def read_options(tokens: Tokens, known: Sequence[str], choices: Choices) -> Options:
    """Read the options after WITH.

    Args:
        tokens: The statement, before the parenthesis.
        known: The options that the statement has.
        choices: The values of those that have only some.
    """
    options: Options = {}
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
            options[option] = tokens.number("how many partitions", highest=_MOST_PARTITIONS)
        else:
            options[option] = _choice(option, tokens.string(f"the {option}"), choices)
        if not tokens.accept_symbol(TokenType.COMMA):
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return options


def _without_watermark(what: str) -> InputError:
    return InputError(
        f"{what} is not supported",
        code="unsupported-query",
        detail="The time of an event is that of its record.",
        hint="Leave it out; a query has that time as _time.",
    )


def _unknown_option(tokens: Tokens, known: Sequence[str]) -> InputError:
    if not tokens.word():
        return tokens.unexpected("the name of an option")
    if tokens.word() == "IDLE" and "start" in known:  # of a stream
        return _without_watermark('option "idle"')
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


def check_options(options: Options, what: str) -> None:
    """Refuse options that contradict themselves; `what` is declared: a stream or a table."""
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
            f'topic "{clipped(topic)}" cannot exist',
            code="stream-mismatch",
            detail='Kafka\'s topics have 1 to 249 ASCII letters, digits, "_", "." and "-".',
        )
    if options["format"] == "avro" and "schema" not in options:
        raise InputError(
            'option "schema" is missing',
            code="stream-mismatch",
            detail=f"An Avro {what} needs the schema that its records are written with.",
            hint='Add schema = \'{"type": "record", …}\'.',
        )
    surplus = [option for option in ("schema", "framing") if option in options]
    if options["format"] != "avro" and surplus:
        raise InputError(
            f'option "{surplus[0]}" is for Avro only',
            code="stream-mismatch",
            detail=f"The format of the {what} is {options['format']}.",
            hint="Leave it out, or choose format = 'avro'.",
        )
