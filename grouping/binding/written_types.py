"""Types as a text of Spark's DDL writes them: the schema of from_json, the last argument of variant_get.

A strict reader of its own: sqlglot passes over what Spark refuses, such as a word behind a type.
"""

from __future__ import annotations

import re

from grouping.model.decimal_types import WIDEST
from grouping.model.refusals import unsupported
from grouping.model.sql_type import STRING, SqlType, array_of, decimal, map_of, struct_of
from grouping.statements.type_tokens import FOREIGN_TYPES

__all__ = ["written_schema", "written_type"]

_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|`(?P<quoted>(?:[^`]|``)+)`|(?P<mark>[<>(),:]))\s*", re.ASCII)
_NESTED = re.compile(r"\s*(?:STRUCT|ARRAY|MAP)\s*<", re.I)
_SYNONYMS = {
    "BYTE": "TINYINT",
    "DEC": "DECIMAL",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "NUMERIC": "DECIMAL",
    "REAL": "FLOAT",
    "SHORT": "SMALLINT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
_PLAIN = frozenset(
    "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE STRING DATE TIMESTAMP BINARY VARIANT".split(),
)
_EXAMPLES = {
    "type": "'INT', 'ARRAY<INT>' and 'STRUCT<id: BIGINT, name: STRING>' are types.",
    "schema": "'id BIGINT, tags ARRAY<STRING>' is a schema.",
}
_MOST_LEVELS = 16
"""Types within one another, as in CREATE STREAM."""
_MOST_PARTS = 20_000
"""Types within a written type, itself included."""


def written_type(text: str) -> SqlType:
    """Return the type that a text names.

    Raises:
        InputError: ``unsupported-query``.

    Example:
        >>> str(written_type("array<struct<id bigint, name: string>>"))
        'ARRAY<STRUCT<id: BIGINT, name: STRING>>'
    """
    return _TypeText(text).read()


def written_schema(text: str) -> SqlType:
    """Return the type that a schema names: a type with parts, or the fields of a STRUCT as columns of a table.

    Raises:
        InputError: ``unsupported-query``.

    Example:
        >>> str(written_schema("id BIGINT NOT NULL, tags ARRAY<STRING>"))
        'STRUCT<id: BIGINT, tags: ARRAY<STRING>>'
    """
    return written_type(text) if _NESTED.match(text) else _TypeText(text, "schema").read_columns()


class _TypeText:
    """Reads one text, from left to right."""

    def __init__(self, text: str, what: str = "type") -> None:
        self._text = text
        self._what = what
        self._at = 0
        self._levels = 0
        self._parts = 0

    def read(self) -> SqlType:
        found = self._type()
        self._end()
        return found

    def read_columns(self) -> SqlType:
        fields = self._fields(colons=False)
        self._end()
        return self._struct(fields)

    def _type(self) -> SqlType:
        self._levels += 1
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise unsupported(
                f"a type of more than {_MOST_PARTS:,} parts", "Types are limited in size.", "Leave fields out."
            )
        written = self._take("word")
        name = _SYNONYMS.get(written.upper(), written.upper())
        match name:
            case "DECIMAL":
                found = self._decimal()
            case "ARRAY" | "MAP" | "STRUCT":
                found = self._nested(name)
            case _ if name in _PLAIN:
                found = SqlType(name)
            case _:
                raise self._unknown(written)
        self._levels -= 1
        return found

    def _nested(self, name: str) -> SqlType:
        if self._levels > _MOST_LEVELS:
            raise unsupported(
                f"a type of more than {_MOST_LEVELS} levels", "Types are limited in depth.", "Leave levels out."
            )
        self._mark("<")
        if name == "ARRAY":
            found = array_of(self._type())
        elif name == "STRUCT":
            found = self._struct(self._fields(colons=True))
        else:
            key = self._type()
            self._mark(",")
            found = map_of(key, self._type())
            if key != STRING:
                raise unsupported(f"type {found}", "The keys of a MAP are STRING.")
        self._mark(">")
        return found

    def _fields(self, *, colons: bool) -> list[tuple[str, SqlType]]:
        fields: list[tuple[str, SqlType]] = []
        while not fields or self._accept(","):
            name = self._take("word", "quoted")
            if colons:
                self._accept(":")
            fields.append((name, self._type()))
            if self._accept("NOT"):
                self._mark("NULL")
        return fields

    def _struct(self, fields: list[tuple[str, SqlType]]) -> SqlType:
        if len({name.casefold() for name, _ in fields}) < len(fields):
            raise unsupported("a STRUCT with two fields of one name", "Names of fields are not case-sensitive.")
        return struct_of(fields)

    def _decimal(self) -> SqlType:
        if not self._accept("("):
            return decimal(10, 0)
        precision, scale = self._number(), 0
        if self._accept(","):
            scale = self._number()
        self._mark(")")
        if not 1 <= precision <= WIDEST or scale > precision:
            raise unsupported(f"DECIMAL({precision},{scale})", f"It has {WIDEST} digits at most.")
        return decimal(precision, scale)

    def _number(self) -> int:
        digits = self._take("word")
        if not digits.isdecimal() or len(digits) > 3:
            raise self._wrong()
        return int(digits)

    def _take(self, *kinds: str) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup not in kinds:
            raise self._wrong()
        self._at = found.end()
        return found[found.lastgroup].replace("``", "`")

    def _accept(self, mark: str) -> bool:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found["quoted"] or found[0].strip().upper() != mark:
            return False
        self._at = found.end()
        return True

    def _mark(self, mark: str) -> None:
        if not self._accept(mark):
            raise self._wrong()

    def _end(self) -> None:
        if self._at < len(self._text):
            raise self._wrong()

    def _wrong(self) -> Exception:
        read = self._text[: self._at].strip()
        detail = f'It cannot be read behind "{read[-60:]}".' if read else "It begins with no name."
        return unsupported(f'{self._what} "{self._text[:60]}"', detail, _EXAMPLES[self._what])

    def _unknown(self, written: str) -> Exception:
        if (known := FOREIGN_TYPES.get(written.upper())) is not None:
            return unsupported(f'type "{written}"', "Spark has no such type.", f"Use {known}.")
        return unsupported(
            f'type "{written[:60]}"', f"There are {', '.join(sorted(_PLAIN))}, DECIMAL, ARRAY, MAP and STRUCT."
        )
