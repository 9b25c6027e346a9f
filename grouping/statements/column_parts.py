"""The parts of a column's declaration after its name: the type, FROM with the place in the record, and keys."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot.tokenizer_core import TokenType

from grouping.model.column_place import ColumnPlace, declared_path, parse_path, place_in_value
from grouping.model.decimal_types import WIDEST
from grouping.model.errors import InputError, near_name
from grouping.model.refusals import unsupported
from grouping.model.sql_type import PLAIN_TYPES, STRING, SqlType, array_of, decimal, map_of, struct_of
from grouping.model.type_names import nearest_type
from grouping.statements.tokens import Tokens, clipped

__all__ = ["declared_key", "read_key", "read_place", "read_type"]

_LONGEST_HEADER = 255

_FORMS = {"STRUCT": "STRUCT<name: type, …>", "ARRAY": "ARRAY<type>", "MAP": "MAP<STRING, type>"}
_NESTED = tuple(_FORMS)
_DEEPEST = 16
"""The largest depth of nested types."""
_DEFAULT_DECIMAL = (10, 0)
_LONGEST_TYPE = 16
"""The largest number of tokens that are read for the type of another system."""
_SIGNS = ("SIGNED", "UNSIGNED", "ZEROFILL")
_OF_BINARY = ("LARGE", "VARYING")
_ZONED = ("WITH", "WITHOUT")
_CONSTRAINTS = """AUTO_INCREMENT CHECK COLLATE COMMENT CONSTRAINT DEFAULT ENCODE GENERATED NOT NULL REFERENCES
    UNIQUE""".split()


def read_type(tokens: Tokens, depth: int = 0) -> SqlType:
    """Read a type.

    Args:
        tokens: The statement, before the type.
        depth: The number of types around the type.

    Raises:
        InputError: ``syntax-error``, ``stream-mismatch`` or ``unsupported-query``.
    """
    word = tokens.word()
    if word in PLAIN_TYPES:
        tokens.index += 1
        _check_behind(tokens, word)
        return PLAIN_TYPES[word]
    if word == "DECIMAL":
        tokens.index += 1
        sql_type = _decimal(tokens)
        _check_behind(tokens, str(sql_type))
        return sql_type
    if word in _NESTED:
        return _nested(tokens, depth)
    nearest = nearest_type(_written(tokens))
    if not word and (nearest is None or not tokens.source()[0].isalpha()):
        raise tokens.unexpected("the type of the column")
    raise InputError(
        f'type "{clipped(tokens.source())}" does not exist',
        code="syntax-error",
        detail=f"The types are {', '.join(PLAIN_TYPES)}, DECIMAL(p,s), STRUCT<name: type, …>, ARRAY<type> and "
        "MAP<STRING, type>.",
        hint=nearest or near_name(clipped(word), (*PLAIN_TYPES, "DECIMAL", *_NESTED)),
    )


def _check_behind(tokens: Tokens, name: str) -> None:
    """Refuse what other systems allow after a type: a length, a sign, brackets, a time zone, a constraint.

    Raises:
        InputError: ``syntax-error`` with the nearest form.
    """
    word = tokens.word()
    detail = "Only DECIMAL(p,s), STRUCT, ARRAY and MAP have anything behind the name of the type."
    hint = nearest_type(f"{name} {_written(tokens)}")
    if tokens.type() is TokenType.L_PAREN:
        what = f'type "{name}" takes no length'
    elif tokens.type() is TokenType.L_BRACKET:
        what = f'an ARRAY is not written "{name}[]"'
    elif word in _SIGNS or word in _OF_BINARY or (word in _ZONED and tokens.word(1) in ("TIME", "LOCAL")):
        what = f'type "{name} {word}" does not exist'
    elif word in _CONSTRAINTS:
        what, detail = f'"{word}" does not belong to a column', "A column has a name, a type, and FROM with a place."
        hint = "Leave it out. Every column may be NULL."
    else:
        return
    raise InputError(what, code="syntax-error", detail=detail, hint=hint)


def _written(tokens: Tokens) -> str:
    """Return the next words in capitals, up to the comma or bracket after the column, or up to a constraint."""
    parts: list[str] = []
    depth = 0
    while len(parts) < _LONGEST_TYPE and (source := tokens.source(len(parts))):
        if depth == 0 and (source in ",)>" or (parts and tokens.word(len(parts)) in _CONSTRAINTS)):
            break
        depth += (source in "(<[") - (source in ")>]")
        parts.append(source.upper())
    return " ".join(parts)


def _nested(tokens: Tokens, depth: int) -> SqlType:
    """Read a STRUCT, ARRAY or MAP."""
    word = tokens.word()
    if depth >= _DEEPEST:
        what = f"a type of more than {_DEEPEST} levels"
        raise unsupported(what, "STRUCT, ARRAY and MAP are limited in depth.", "Declare the deep part as VARIANT.")
    tokens.index += 1
    if not tokens.accept_symbol(TokenType.LT):
        raise tokens.unexpected(f'"<" behind {word}', hint=f"Write {_FORMS[word]}.")
    if word == "STRUCT":
        return _struct(tokens, depth)
    if word == "MAP":
        if tokens.word() != "STRING":
            raise tokens.unexpected("STRING, the type of the keys", hint=f"Write {_FORMS[word]}.")
        tokens.index += 1
        tokens.expect_symbol(TokenType.COMMA, ",")
    element = read_type(tokens, depth + 1)
    tokens.expect_symbol(TokenType.GT, ">")
    return map_of(STRING, element) if word == "MAP" else array_of(element)


def _struct(tokens: Tokens, depth: int) -> SqlType:
    fields: dict[str, tuple[str, SqlType]] = {}
    while True:
        # The text of a `SqlType` has unquoted names before colons, so reserved words are allowed there.
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
    names = [tokens.name("the name of a column")]
    while tokens.accept_symbol(TokenType.COMMA):
        names.append(tokens.name("the name of a column"))
    tokens.expect_symbol(TokenType.R_PAREN, ")")
    return tuple(names)
