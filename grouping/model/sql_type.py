"""SQL types as values, with the only reader and writer of their texts.

Plans, streams, constant tables and catalog records store the text, so stored data is readable JSON and does not depend
on this class. A stored struct has a ``type_text``, from which its ``type`` is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "NUMERIC",
    "PLAIN_TYPES",
    "SMALLINT",
    "STRING",
    "TIMESTAMP",
    "TINYINT",
    "TypeText",
    "UNKNOWN",
    "VARIANT",
    "WHOLE_BITS",
    "SqlType",
    "array_of",
    "decimal",
    "map_of",
    "set_of",
    "struct_of",
]


class SqlType(msgspec.Struct, frozen=True, cache_hash=True):
    """A type of columns, constants or results; equal types compare equal, however they were made.

    Example:
        >>> str(SqlType("DECIMAL", 10, 2)), SqlType.of("SET<BIGINT>").element == BIGINT
        ('DECIMAL(10,2)', True)
    """

    name: str
    """The word before any parameters, such as ``DECIMAL``."""
    precision: int = 0
    """For DECIMAL: the number of digits."""
    scale: int = 0
    """For DECIMAL: the number of digits after the point."""
    element: SqlType | None = None
    """For SET and ARRAY: the type of members; for MAP: the type of values."""
    key: SqlType | None = None
    """For MAP: the type of keys."""
    fields: tuple[tuple[str, SqlType], ...] = ()
    """For STRUCT: names and types of fields, in order."""

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(text: str) -> SqlType:
        """Return the type from its text; names of types may be in any case. The empty text is `UNKNOWN`.

        Raises:
            ValueError: The text is no type.

        Example:
            >>> str(SqlType.of("struct<id: int, tags: array<string>>"))
            'STRUCT<id: INT, tags: ARRAY<STRING>>'
        """
        return TypeText(text).read() if text else UNKNOWN

    def __str__(self) -> str:
        return _written(self)

    def __repr__(self) -> str:
        return f"SqlType.of({str(self)!r})"

    @property
    def is_decimal(self) -> bool:
        """Whether the type is a DECIMAL of any size."""
        return self.name == "DECIMAL"

    @property
    def is_set(self) -> bool:
        """Whether the type is that of the values after IN."""
        return self.name == "SET"

    @property
    def is_number(self) -> bool:
        """Whether values are numbers."""
        return self.name in _NUMBERS

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers: TINYINT, SMALLINT, INT and BIGINT."""
        return self.name in WHOLE_BITS

    @property
    def is_nested(self) -> bool:
        """Whether values have parts: ARRAY, MAP and STRUCT."""
        return self.name in _NESTED

    @property
    def is_sized(self) -> bool:
        """Whether values differ in size: texts, bytes, and types with parts."""
        return self.name in _SIZED

    @property
    def is_ordered(self) -> bool:
        """Whether equality and order are defined for values: not for types with parts, and not for VARIANT."""
        return self.name not in _UNORDERED

    @property
    def member(self) -> SqlType:
        """The type of a single value: for a SET the type of its members, otherwise the type itself."""
        return self.element if self.element is not None and self.is_set else self

    def is_like(self, other: SqlType) -> bool:
        """Tell whether values of the two types can be compared; all numbers can.

        Example:
            >>> decimal(10, 2).is_like(DOUBLE), DATE.is_like(TIMESTAMP)
            (True, False)
        """
        return self == other or (self.is_number and other.is_number)


WHOLE_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""The types of whole numbers with their number of bits, the narrowest first."""
_NUMBERS = frozenset((*WHOLE_BITS, "FLOAT", "DOUBLE", "DECIMAL", "NUMERIC"))
_NESTED = frozenset(("ARRAY", "MAP", "STRUCT"))
_UNORDERED = _NESTED | {"VARIANT"}
_SIZED = _UNORDERED | {"STRING", "BINARY"}

STRING = SqlType("STRING")
BOOLEAN = SqlType("BOOLEAN")
TINYINT = SqlType("TINYINT")
SMALLINT = SqlType("SMALLINT")
INT = SqlType("INT")
BIGINT = SqlType("BIGINT")
FLOAT = SqlType("FLOAT")
DOUBLE = SqlType("DOUBLE")
DATE = SqlType("DATE")
TIMESTAMP = SqlType("TIMESTAMP")
BINARY = SqlType("BINARY")
VARIANT = SqlType("VARIANT")
NUMERIC = SqlType("NUMERIC")
"""Type of a number that no BIGINT holds, in a comparison with a column of whole numbers or DECIMALs. The number is kept
exactly. No column has this type.
"""
UNKNOWN = SqlType("")
"""Type, in a plan, of a result whose type depends on the types of the row's constants."""

PLAIN_TYPES = {
    sql_type.name: sql_type
    for sql_type in (STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP, BINARY, VARIANT)
}
"""The types of columns without parameters, by their names."""
_PLAIN = PLAIN_TYPES | {NUMERIC.name: NUMERIC}
_WITH_PARTS = _NESTED | {"SET"}
_MOST_SIZE_DIGITS = 3
"""The largest number of digits in which a text writes a precision or a scale."""
_DEFAULT_SIZE = (10, 0)
"""Precision and scale of a plain DECIMAL, as in Spark."""


def decimal(precision: int, scale: int) -> SqlType:
    """Return DECIMAL(precision,scale)."""
    return SqlType("DECIMAL", precision, scale)


@lru_cache(maxsize=4096)
def set_of(element: SqlType) -> SqlType:
    """Return the type of the values after IN."""
    return SqlType("SET", element=element)


def array_of(element: SqlType) -> SqlType:
    """Return ARRAY<element>."""
    return SqlType("ARRAY", element=element)


def map_of(key: SqlType, value: SqlType) -> SqlType:
    """Return MAP<key, value>."""
    return SqlType("MAP", element=value, key=key)


def struct_of(fields: Sequence[tuple[str, SqlType]]) -> SqlType:
    """Return STRUCT<name: type, …>."""
    return SqlType("STRUCT", fields=tuple(fields))


_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@lru_cache(maxsize=4096)
def _written(sql_type: SqlType) -> str:
    if sql_type.is_decimal:
        return f"DECIMAL({sql_type.precision},{sql_type.scale})"
    if sql_type.key is not None:
        return f"MAP<{sql_type.key}, {sql_type.element}>"
    if sql_type.element is not None:
        return f"{sql_type.name}<{sql_type.element}>"
    if sql_type.name == "STRUCT":
        return f"STRUCT<{', '.join(f'{_written_name(name)}: {field}' for name, field in sql_type.fields)}>"
    return sql_type.name


def _written_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|`(?P<quoted>(?:[^`]|``)+)`|(?P<mark>[<>(),:]))\s*", re.ASCII)


class TypeText:
    """Reads the text of a type from left to right; a subclass in `binding.written_types` reads Spark's spellings."""

    def __init__(self, text: str) -> None:
        """Take the text."""
        self._text = text
        self._at = 0

    def read(self) -> SqlType:
        """Return the type from the whole text.

        Raises:
            ValueError: The text is no type.
        """
        return self._all(self._type())

    def _all(self, found: SqlType) -> SqlType:
        if self._at < len(self._text):
            raise self._wrong()
        return found

    def _type(self) -> SqlType:
        return self._named(self._take("word"))

    def _named(self, written: str) -> SqlType:
        """Return the type of a name and of the parameters that follow."""
        name = written.upper()
        if name == "DECIMAL":
            return decimal(*self._sizes())
        if name not in _WITH_PARTS:
            if name not in _PLAIN:
                raise self._wrong()
            return _PLAIN[name]
        self._mark("<")
        found = self._with_parts(name)
        self._mark(">")
        return found

    def _with_parts(self, name: str) -> SqlType:
        if name == "STRUCT":
            return struct_of(() if self._next(">") else self._fields())
        if name == "MAP":
            key = self._type()
            self._mark(",")
            return map_of(key, self._type())
        return SqlType(name, element=self._type())

    def _sizes(self) -> tuple[int, int]:
        if not self._accept("("):
            return _DEFAULT_SIZE
        precision = self._number()
        scale = self._number() if self._accept(",") else 0
        self._mark(")")
        return precision, scale

    def _fields(self) -> list[tuple[str, SqlType]]:
        fields = [self._field()]
        while self._accept(","):
            fields.append(self._field())
        return fields

    def _field(self) -> tuple[str, SqlType]:
        name = self._take("word", "quoted")
        self._mark(":")
        return name, self._type()

    def _number(self) -> int:
        digits = self._take("word")
        if not digits.isdecimal() or len(digits) > _MOST_SIZE_DIGITS:
            raise self._wrong()
        return int(digits)

    def _mark(self, mark: str) -> None:
        if not self._accept(mark):
            raise self._wrong()

    def _accept(self, mark: str) -> bool:
        found = self._next(mark)
        if found is not None:
            self._at = found.end()
        return found is not None

    def _next(self, mark: str) -> re.Match[str] | None:
        """Return the next token if it is `mark`: a sign, or a word in capitals, which the text may have in any case."""
        found = _TOKEN.match(self._text, self._at)
        return found if found and not found["quoted"] and found[0].strip().upper() == mark else None

    def _take(self, *groups: str) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup not in groups:
            raise self._wrong()
        self._at = found.end()
        return found[found.lastgroup].replace("``", "`")

    def _wrong(self) -> Exception:
        return ValueError(f'"{self._text}" writes no type, from character {self._at} on')
