"""The parts of a column's declaration after its name: the type, FROM with the place in the record, and keys."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot.tokenizer_core import TokenType

from grouping.model.column_place import ColumnPlace, declared_path, parse_path, place_in_value
from grouping.model.decimal_types import WIDEST
from grouping.model.errors import InputError, near_name
from grouping.model.foreign_types import nearest_type
from grouping.model.refusals import unsupported
from grouping.model.sql_type import PLAIN_TYPES, STRING, SqlType, array_of, decimal, map_of, struct_of
from grouping.model.type_names import CONSTRAINTS
from grouping.statements.tokens import Tokens, clipped

__all__ = ["declared_key", "read_key", "read_place", "read_type"]

_LONGEST_HEADER = 255

_NESTED = ("STRUCT", "ARRAY", "MAP")
_DEEPEST = 16
"""The largest depth of nested types."""
_DEFAULT_DECIMAL = (10, 0)
_LONGEST_TYPE = 200
"""The largest number of tokens that are read for the type of another system."""
_BEHIND = ("ARRAY", "LARGE", "LIST", "SIGNED", "UNSIGNED", "VARYING", "ZEROFILL")
"""Words that may follow a type's name in other systems, and belong to the name."""
_ZONED = ("WITH", "WITHOUT")
_UNKNOWN = 'Use "STRING" for a text, or "VARIANT" for any JSON value.'
_ELSEWHERE = {
    "HEADER": "Write FROM HEADER 'name' after the type.",
    "HEADERS": "Leave the column out: _headers has all headers.",
    "KEY": "Write FROM KEY after the type.",
    "METADATA": "Leave the column out: _time, _key, _partition, _offset and _headers need no declaration.",
}
"""Word after a type in ksqlDB or Flink → the hint."""


def read_type(tokens: Tokens, depth: int = 0) -> SqlType:
    """Read a type.

    Args:
        tokens: The statement, before the type.
        depth: The number of types around the type.

    Raises:
        InputError: ``syntax-error``, ``stream-mismatch`` or ``unsupported-query``.
    """
    word = tokens.word()
    if word in PLAIN_TYPES or word == "DECIMAL" or word in _NESTED:
        sql_type = _known_type(tokens, word, depth)
        _check_behind(tokens, str(sql_type))
        return sql_type
    nearest = nearest_type(_written(tokens))
    if not word and not (nearest and tokens.source()[:1].isalpha()):
        raise tokens.unexpected("the type of the column", hint=nearest)
    raise InputError(
        f'type "{clipped(tokens.source())}" does not exist',
        code="syntax-error",
        detail=f"The types are {', '.join(PLAIN_TYPES)}, DECIMAL(p,s), STRUCT<name: type, …>, ARRAY<type> and "
        "MAP<STRING, type>.",
        hint=nearest or _UNKNOWN,
    )


def _known_type(tokens: Tokens, word: str, depth: int) -> SqlType:
    if word in _NESTED:
        return _nested(tokens, depth)
    tokens.index += 1
    return _decimal(tokens) if word == "DECIMAL" else PLAIN_TYPES[word]


def _check_behind(tokens: Tokens, name: str) -> None:
    """Refuse what other systems allow after a type: a length, a sign, brackets, a time zone, a constraint.

    Raises:
        InputError: ``syntax-error`` with the nearest form.
    """
    word, symbol = tokens.word(), tokens.source()
    is_known = word in _BEHIND or (word in _ZONED and tokens.word(1) in ("TIME", "LOCAL"))
    if tokens.type() is TokenType.L_PAREN:
        what = f'type "{name}" takes no length'
    elif tokens.type() is TokenType.L_BRACKET:
        what = f'an ARRAY is not written "{name}[]"'
    elif symbol in ("-", "?") or is_known:
        what = f'type "{name} {word or symbol}" does not exist'
    elif word in CONSTRAINTS or word in _ELSEWHERE:
        raise InputError(
            f'"{word}" does not belong to a column',
            code="syntax-error",
            detail="A column has a name, a type, and FROM with a place.",
            hint=_ELSEWHERE.get(word, "Leave it out. Every column may be NULL."),
        )
    else:
        return
    raise InputError(
        what,
        code="syntax-error",
        detail="Only DECIMAL(p,s), STRUCT, ARRAY and MAP have anything after the name of the type.",
        hint=nearest_type(f"{name} {_written(tokens)}"),
    )


def _written(tokens: Tokens) -> str:
    """Return the rest of the type and the tokens after it, as written."""
    sources = (tokens.source(ahead) for ahead in range(_LONGEST_TYPE))
    return " ".join(source for source in sources if source)


def _nested(tokens: Tokens, depth: int) -> SqlType:
    """Read a STRUCT, ARRAY or MAP."""
    word = tokens.word()
    if depth >= _DEEPEST:
        what = f"a type of more than {_DEEPEST} levels"
        raise unsupported(what, "STRUCT, ARRAY and MAP are limited in depth.", "Declare the deep part as VARIANT.")
    if tokens.type(1) is not TokenType.LT or (word == "MAP" and tokens.word(2) != "STRING"):
        hint = nearest_type(_written(tokens))
        tokens.index += 1
        wanted = "STRING, the type of the keys" if tokens.accept_symbol(TokenType.LT) else f'"<" after {word}'
        raise tokens.unexpected(wanted, hint=hint)
    tokens.index += 2
    if word == "STRUCT":
        return _struct(tokens, depth)
    if word == "MAP":
        tokens.index += 1
        tokens.expect_symbol(TokenType.COMMA, ",")
    element = read_type(tokens, depth + 1)
    tokens.expect_symbol(TokenType.GT, ">")
    return map_of(STRING, element) if word == "MAP" else array_of(element)


def _struct(tokens: Tokens, depth: int) -> SqlType:
    fields: dict[str, tuple[str, SqlType]] = {}
    while True:
        # The text of a `SqlType` has a colon after each field's name, and no quotes. So a reserved word is allowed
        # before a colon.
        name = tokens.name("the name of a field", reserved=tokens.type(1) is not TokenType.COLON)
        if name.casefold() in fields:
            raise InputError(
                f'field "{name}" is declared twice',
                code="stream-mismatch",
                detail="Names of fields are not case-sensitive.",
            )
        tokens.accept_symbol(TokenType.COLON)
        fields[name.casefold()] = (name, read_type(tokens, depth + 1))
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


def read_place(tokens: Tokens) -> str:
    """Read FROM and the place, if they come next.

    Returns:
        The text of the place; empty without FROM.

    Raises:
        InputError: ``syntax-error``.
    """
    if not tokens.accept("FROM"):
        return ""
    if tokens.accept("HEADER"):
        name = tokens.string("the name of a header")
        if not 0 < len(name) <= _LONGEST_HEADER:
            raise InputError(
                "the name of the header is empty or too long",
                code="syntax-error",
                detail=f"The name of a header has 1 to {_LONGEST_HEADER} characters.",
            )
        return str(ColumnPlace("header", header=name))
    if tokens.accept("KEY"):
        path = parse_path(declared_path(tokens.string("a path"))) if tokens.type() is TokenType.STRING else None
        return str(ColumnPlace("key", path))
    if tokens.type() is not TokenType.STRING:
        raise tokens.unexpected("a path such as '$.data.price', HEADER 'name' or KEY")
    return str(place_in_value(declared_path(tokens.string("a path"))))


def declared_key(columns: Iterable[tuple[str, SqlType]], key: Iterable[str], kind: str, source: str) -> tuple[str, ...]:
    """Return the columns of a key by their declared names.

    Args:
        columns: All columns.
        key: The names of the key's columns, in any case.
        kind: PRIMARY KEY or PARTITION KEY.
        source: The kind and the name of the declared object, for errors.

    Raises:
        InputError: ``unknown-column``, ``unsupported-query`` for a type without equality, or ``syntax-error`` for a
            column that is named twice.
    """
    types = dict(columns)
    declared = {column.casefold(): column for column in types}
    spelt: list[str] = []
    for column in key:
        found = declared.get(column.casefold())
        if found is None:
            raise InputError(
                f'column "{column}" does not exist',
                code="unknown-column",
                detail=f"The {kind} of {source} names it; there are {', '.join(declared.values())}.",
                hint=near_name(column, list(declared.values())),
            )
        if not types[found].is_ordered:
            raise InputError(
                f'column "{found}" cannot be in the {kind}',
                code="unsupported-query",
                detail=f"The column is {types[found]}, and keys need values that can be compared.",
            )
        if found in spelt:
            raise InputError(f'column "{column}" is in the {kind} twice', code="syntax-error", detail="Once is enough.")
        spelt.append(found)
    return tuple(spelt)


def read_key(tokens: Tokens) -> tuple[str, ...]:
    """Read the columns of a key in parentheses.

    Raises:
        InputError: ``syntax-error``.
    """
    tokens.expect_symbol(TokenType.L_PAREN, "(")
    names = tokens.names("the name of a column")
    tokens.expect_symbol(TokenType.R_PAREN, ")")
    return names
