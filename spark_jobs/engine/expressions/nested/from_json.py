"""from_json: reads a JSON text by a schema, as Spark does; a value that is broken or has a wrong type becomes NULL.

A fault makes the smallest field, array or map around it NULL. If the rest of the text cannot be read, all fields of an
outermost STRUCT are NULL; an outermost ARRAY or MAP is NULL itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import polars as pl

from grouping.model.sql_type import SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.nested.json_reader import encodable
from spark_jobs.engine.expressions.nested.json_tokens import BrokenJsonError, JsonTokens, Token
from spark_jobs.engine.expressions.nested.json_trees import NoTreeError, tree_reader
from spark_jobs.engine.expressions.nested.json_values import VALUE_READERS, expect
from spark_jobs.engine.expressions.types import Operand, polars_type

__all__ = ["from_json", "read_json"]

T = TypeVar("T")

_PER_BYTE = 16
_BESIDES = 10_000
"""The number of places that any text may take in addition to `_PER_BYTE` places for each of its characters.

`decode.json_extent` defines what takes a place.
"""


class _BoundedText(JsonTokens):
    """A text with a limit on the values made from it.

    Without the limit, ``[{},{},…]`` read as STRUCTs of a hundred fields would take hundreds of times the text's bytes.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._places = _PER_BYTE * len(text) + _BESIDES

    def take(self, places: int) -> None:
        """Reserve places for values; raises _TooLargeError if too few are left."""
        self._places -= places
        if self._places < 0:
            raise _TooLargeError


JsonValueReader = Callable[[_BoundedText], Any]


class _TooLargeError(Exception):
    """The values of a text take too many places."""


class _PartlyReadError(Exception):
    """A nested value is broken inside; the exception has the value with the fields that could be read."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def from_json(text: Operand, sql_type: SqlType) -> pl.Expr:
    """Compile from_json, whose schema is the result's type."""
    quick, reader = tree_reader(sql_type), _reader(sql_type)

    def read(each: str) -> Any:
        try:
            return quick(each)
        except NoTreeError:
            return _root(each, sql_type, reader)

    return each_distinct([text.expr], read, polars_type(sql_type))


def read_json(text: str, sql_type: SqlType) -> Any:
    """Return the result of from_json for a text, token by token.

    Example:
        >>> read_json('{"n": 1, "s": 2.50, "t": "x"', SqlType.of("STRUCT<n: INT, s: STRING>"))
        {'n': None, 's': None}
        >>> read_json('{"n": "1", "s": 2.50}', SqlType.of("STRUCT<n: INT, s: STRING>"))
        {'n': None, 's': '2.5'}
    """
    return _root(text, sql_type, _reader(sql_type))


def _root(text: str, sql_type: SqlType, reader: JsonValueReader) -> Any:
    tokens = _BoundedText(text)
    try:
        if tokens.next() is None:
            return None
        if tokens.current is Token.OBJECT and sql_type.name == "ARRAY":
            return _single(tokens, sql_type)
        if tokens.current is not Token.NULL:
            return reader(tokens)
    except _PartlyReadError as partly:
        return partly.value
    except BrokenJsonError:
        pass
    except _TooLargeError:
        return None
    return {name: None for name, _ in sql_type.fields} if sql_type.fields else None


def _single(tokens: _BoundedText, sql_type: SqlType) -> list[Any]:
    """Return an array whose only element is the text's object. The type is an ARRAY of STRUCTs, the text an object."""
    element = sql_type.element
    if element is None or not element.fields:
        raise BrokenJsonError
    try:
        return [_reader(element)(tokens)]
    except _PartlyReadError as partly:
        return [partly.value]


def _reader(sql_type: SqlType) -> JsonValueReader:
    """Return a reader of values of a type; the value begins at the current token, or after the current name."""
    read = _READERS[sql_type.name](sql_type)

    def reader(tokens: _BoundedText) -> Any:
        while tokens.current is Token.NAME:
            tokens.next()
        if tokens.current is Token.STRING:
            tokens.string()  # a broken string is a fault for any type, and Jackson goes on after it
        return None if tokens.current in (None, Token.NULL) else read(tokens)

    return reader


def _struct(sql_type: SqlType) -> JsonValueReader:
    readers = {name: _reader(field) for name, field in sql_type.fields}

    def read(tokens: _BoundedText) -> dict[str, Any]:
        expect(tokens, Token.OBJECT)
        tokens.take(len(readers))
        row: dict[str, Any] = dict.fromkeys(readers)
        broken = False
        while tokens.next() not in (None, Token.OBJECT_END):
            name = tokens.name
            if name is None or name not in readers:
                tokens.skip_children()
                continue
            try:
                row[name] = readers[name](tokens)
            except _PartlyReadError as partly:
                row[name], broken = partly.value, True
            except BrokenJsonError:
                broken = True
                tokens.skip_children()
        return _whole_or_partly(row, broken=broken)

    return read


def _array(sql_type: SqlType) -> JsonValueReader:
    assert sql_type.element is not None, "an ARRAY"
    element = _reader(sql_type.element)

    def read(tokens: _BoundedText) -> list[Any]:
        expect(tokens, Token.ARRAY)
        values: list[Any] = []
        broken = False
        while tokens.next() not in (None, Token.ARRAY_END):
            try:
                values.append(element(tokens))
            except _PartlyReadError as partly:
                values.append(partly.value)
                broken = True
        return _whole_or_partly(values, broken=broken)

    return read


def _map(sql_type: SqlType) -> JsonValueReader:
    """Return a reader of maps. A map keeps all entries of a repeated key. A broken value makes the whole map broken."""
    assert sql_type.element is not None, "a MAP"
    element = _reader(sql_type.element)

    def read(tokens: _BoundedText) -> list[dict[str, Any]]:
        expect(tokens, Token.OBJECT)
        entries: list[dict[str, Any]] = []
        partial = broken = False
        while tokens.next() not in (None, Token.OBJECT_END):
            key = encodable(tokens.name or "")
            try:
                entries.append({"key": key, "value": element(tokens)})
            except _PartlyReadError as partly:
                entries.append({"key": key, "value": partly.value})
                partial = True
            except BrokenJsonError:
                broken = True
                tokens.skip_children()
        if broken:
            raise BrokenJsonError
        return _whole_or_partly(entries, broken=partial)

    return read


def _whole_or_partly(value: T, *, broken: bool) -> T:
    if broken:
        raise _PartlyReadError(value)
    return value


_READERS: dict[str, Callable[[SqlType], JsonValueReader]] = {
    **VALUE_READERS,
    "ARRAY": _array,
    "MAP": _map,
    "STRUCT": _struct,
}
"""The function that makes a type's reader, by the name of the type."""
