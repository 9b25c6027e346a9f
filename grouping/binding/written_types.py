"""A parser of types written in Spark's DDL: the schema of from_json, and the last argument of variant_get.

sqlglot is not used because it accepts forms that Spark refuses, such as a word after a type.
"""

from __future__ import annotations

import re

from grouping.model.decimal_types import WIDEST
from grouping.model.refusals import unsupported
from grouping.model.sql_type import PLAIN_TYPES, STRING, SqlType, TypeText, struct_of
from grouping.statements.type_tokens import FOREIGN_TYPES

__all__ = ["written_schema", "written_type"]

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
_NESTED_NAMES = ("ARRAY", "MAP", "STRUCT")
_SIZED = ("DECIMAL", *_NESTED_NAMES)
_EXAMPLES = {
    "type": "'INT', 'ARRAY<INT>' and 'STRUCT<id: BIGINT, name: STRING>' are types.",
    "schema": "'id BIGINT, tags ARRAY<STRING>' is a schema.",
}
_MOST_LEVELS = 16
"""The largest number of levels of a nested type; CREATE STREAM has the same limit."""
_MOST_PARTS = 20_000
"""The largest number of types in a written type: the type itself, and all types within it."""


def written_type(text: str) -> SqlType:
    """Return the type that a text names.

    Raises:
        InputError: ``unsupported-query``.

    Example:
        >>> str(written_type("array<struct<id bigint, name: string>>"))
        'ARRAY<STRUCT<id: BIGINT, name: STRING>>'
    """
    return _SparkTypeText(text).read()


def written_schema(text: str) -> SqlType:
    """Return the type that a schema names.

    A schema is a nested type, or a list of columns as in CREATE TABLE. The list names a STRUCT with these fields.

    Raises:
        InputError: ``unsupported-query``.

    Example:
        >>> str(written_schema("id BIGINT NOT NULL, tags ARRAY<STRING>"))
        'STRUCT<id: BIGINT, tags: ARRAY<STRING>>'
    """
    return written_type(text) if _NESTED.match(text) else _SparkTypeText(text, "schema").read_columns()


class _SparkTypeText(TypeText):
    """Reads Spark's spellings, within limits."""

    def __init__(self, text: str, what: str = "type") -> None:
        super().__init__(text)
        self._what = what
        self._levels = 0
        self._parts = 0
        self._colons = True

    def read_columns(self) -> SqlType:
        self._colons = False
        return self._all(_checked(struct_of(self._fields())))

    def _named(self, written: str) -> SqlType:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise unsupported(
                f"a type of more than {_MOST_PARTS:,} parts", "Types are limited in size.", "Leave fields out."
            )
        name = _SYNONYMS.get(written.upper(), written.upper())
        if name not in PLAIN_TYPES and name not in _SIZED:
            raise self._unknown(written)
        if name in _NESTED_NAMES and self._levels == _MOST_LEVELS:
            raise unsupported(
                f"a type of more than {_MOST_LEVELS} levels", "Types are limited in depth.", "Leave levels out."
            )
        self._levels += 1
        colons, self._colons = self._colons, True
        found = _checked(super()._named(name))
        if name == "STRUCT" and not found.fields:
            raise self._wrong()
        self._colons = colons
        self._levels -= 1
        return found

    def _field(self) -> tuple[str, SqlType]:
        name = self._take("word", "quoted")
        if self._colons:
            self._accept(":")
        sql_type = self._type()
        if self._accept("NOT"):
            self._mark("NULL")
        return name, sql_type

    def _wrong(self) -> Exception:
        read = self._text[: self._at].strip()
        detail = f'The error is after "{read[-60:]}".' if read else "A name is missing at the beginning."
        return unsupported(f'{self._what} "{self._text[:60]}"', detail, _EXAMPLES[self._what])

    @staticmethod
    def _unknown(written: str) -> Exception:
        if (known := FOREIGN_TYPES.get(written.upper())) is not None:
            return unsupported(f'type "{written}"', "Spark has no such type.", f"Use {known}.")
        return unsupported(
            f'type "{written[:60]}"', f"The types are {', '.join(sorted(PLAIN_TYPES))}, DECIMAL, ARRAY, MAP and STRUCT."
        )


def _checked(found: SqlType) -> SqlType:
    """Return a type; refuse a type that the evaluator does not support."""
    if found.is_decimal and not (1 <= found.precision <= WIDEST and found.scale <= found.precision):
        raise unsupported(f"DECIMAL({found.precision},{found.scale})", f"A DECIMAL has at most {WIDEST} digits.")
    if found.name == "MAP" and found.key != STRING:
        raise unsupported(f"type {found}", "The keys of a MAP are STRING.")
    if len({name.casefold() for name, _ in found.fields}) < len(found.fields):
        raise unsupported("a STRUCT with two fields of the same name", "Names of fields are not case-sensitive.")
    return found
