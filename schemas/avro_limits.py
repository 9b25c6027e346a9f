"""Limits on the contents of an Avro body, checked before fastavro decodes the body.

fastavro makes a list of 10^8 nulls from five bytes, and follows a recursive schema until the C stack overflows, which
Python cannot catch. Few schemas allow such bodies; for all other schemas, `body_check` returns None and records need no
check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["MAX_DEPTH", "body_check", "body_fault"]

MAX_DEPTH = 128
"""The largest number of levels of nested records, arrays and maps, and of a schema's JSON."""
_PER_BYTE = 4
"""The largest number of values per byte of a body. In an array of records with one INT, for example, each byte has two
values: the record and the INT.
"""
_BESIDES = 10_000
"""The number of values that a body may have in addition to `_PER_BYTE` for each byte."""

_LEAST_BYTES = {"null": 0, "float": 4, "double": 8}
"""Primitive type → the least number of bytes of a value. For any other primitive type, the number is 1."""


def body_check(schema: dict[str, Any]) -> Callable[[bytes, int], None] | None:
    """Return a check of bodies of a parsed schema before decoding; None if the schema itself limits every body.

    The check takes a record's value and the position at which the body begins. The check raises ValueError for an
    oversized body, and ValueError or EOFError for a body that does not fit the schema.

    Example:
        >>> import fastavro
        >>> node = {"name": "next", "type": ["null", "Node"]}
        >>> check = body_check(fastavro.parse_schema({"type": "record", "name": "Node", "fields": [node]}))
        >>> check(bytes([2] * 9 + [0]), 0)
        >>> check(bytes([2] * 999 + [0]), 0)
        Traceback (most recent call last):
        ValueError: it is nested deeper than 128 levels
    """
    named = schema["__named_schemas"]
    try:
        surplus, _ = _Extent(named).of(schema, 0)
    except _NoBound:
        surplus = _BESIDES + 1
    if surplus <= _BESIDES:
        return None
    return lambda value, start: _Body(named, value, start).walk(schema, 0)


def body_fault(schema: dict[str, Any], value: bytes, start: int) -> tuple[str, str] | None:
    """Return the field at which a body does not fit its schema, and the reason; None if the scan finds no fault.

    Args:
        schema: The parsed schema of a record.
        value: The record's value.
        start: The position at which the body begins.

    Example:
        >>> import fastavro
        >>> price = {"name": "price", "type": "double"}
        >>> body_fault(fastavro.parse_schema({"type": "record", "name": "R", "fields": [price]}), bytes(7), 0)
        ('price', 'it is cut short')
    """
    body = _Body(schema["__named_schemas"], value, start)
    for field in schema["fields"]:
        try:
            body.walk(field["type"], 1)
        except (ValueError, EOFError) as exc:
            return field["name"], str(exc)
    return None


class _NoBound(Exception):  # noqa: N818 - no error: it never leaves this module
    """The schema does not bound the size or depth of bodies."""


class _Extent:
    """Upper bounds for a schema's bodies: the number of values beyond `_PER_BYTE` for each byte, and of levels."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        self._known: dict[str, tuple[int, int] | None] = {}
        """Name of a type → its bounds; None while they are computed: a record without bounds is recursive."""

    def of(self, avro: Any, level: int) -> tuple[int, int]:
        """Return upper bounds for a value of a type: the values beyond the allowance for its bytes, and the levels.

        Raises:
            _NoBound: There is no upper bound.
        """
        if level > MAX_DEPTH:
            raise _NoBound
        if isinstance(avro, list):
            members = [self.of(member, level) for member in avro]
            return max((surplus for surplus, _ in members), default=0) - _PER_BYTE, max(
                (depth for _, depth in members), default=0
            )
        if isinstance(avro, str):
            return self._record(self._named[avro], level) if avro in self._named else (_surplus(_least(avro)), 0)
        match avro["type"]:
            case "array":
                return self._items(avro["items"], 0, level)
            case "map":
                return self._items(avro["values"], _surplus(1), level)
            case "fixed":
                return _surplus(avro["size"]), 0
        return self._record(avro, level)

    def _items(self, item: Any, key: int, level: int) -> tuple[int, int]:
        surplus, depth = self.of(item, level + 1)
        if surplus + key > 0:
            raise _NoBound
        return self._nested(_surplus(1), depth)

    def _record(self, avro: dict[str, Any], level: int) -> tuple[int, int]:
        if "fields" not in avro:  # an enum, or a primitive with a logical type
            return (_surplus(avro["size"]) if avro["type"] == "fixed" else _surplus(_least(avro["type"]))), 0
        name = avro["name"]
        if name not in self._known:
            self._known[name] = None
            fields = [self.of(field["type"], level + 1) for field in avro["fields"]]
            surplus = 1 + sum(surplus for surplus, _ in fields)
            self._known[name] = self._nested(surplus, max((depth for _, depth in fields), default=0))
        known = self._known[name]
        if known is None:
            raise _NoBound
        return known

    @staticmethod
    def _nested(surplus: int, depth: int) -> tuple[int, int]:
        if depth >= MAX_DEPTH:
            raise _NoBound
        return surplus, depth + 1


def _least(primitive: str) -> int:
    return _LEAST_BYTES.get(primitive, 1)


def _surplus(size: int) -> int:
    """Return the number of values by which a value of `size` bytes exceeds its allowance."""
    return 1 - _PER_BYTE * size


class _Body:
    """Scans a body in the order in which fastavro decodes it, without making values."""

    def __init__(self, named: dict[str, Any], value: bytes, start: int) -> None:
        self._named = named
        self._value = value
        self._at = start
        self._left = _PER_BYTE * (len(value) - start) + _BESIDES

    def walk(self, avro: Any, depth: int) -> None:
        """Skip a value of a type."""
        self._count(1)
        if isinstance(avro, list):
            self._left += 1  # a union is not counted, only its value
            self.walk(avro[self._index(len(avro), "branch of a union")], depth)
            return
        if isinstance(avro, str):
            avro = self._named.get(avro, avro)
        kind = avro if isinstance(avro, str) else avro["type"]
        if kind in ("record", "error", "array", "map") and depth >= MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        match kind:
            case "record" | "error":
                for field in avro["fields"]:
                    self.walk(field["type"], depth + 1)
            case "array":
                self._blocks(avro["items"], depth, keyed=False)
            case "map":
                self._blocks(avro["values"], depth, keyed=True)
            case "fixed":
                self._skip(avro["size"])
            case "int" | "long":
                self._long()
            case "enum":
                self._index(len(avro["symbols"]), "symbol of an enum")
            case "string" | "bytes":
                self._skip(self._long())
            case _:
                self._skip(_least(kind))

    def _blocks(self, item: Any, depth: int, *, keyed: bool) -> None:
        while items := self._long():
            if items < 0:
                items = -items
                self._long()  # the block's size in bytes
            self._items(item, items, depth, keyed=keyed)

    def _items(self, item: Any, items: int, depth: int, *, keyed: bool) -> None:
        for number in range(items):
            at, left = self._at, self._left
            if keyed:
                self._skip(self._long())
            self.walk(item, depth + 1)
            if self._at == at:  # the item has no bytes, so all further items are equal
                self._count((left - self._left) * (items - number - 1))
                return

    def _count(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise ValueError("it holds far more values than bytes")

    def _skip(self, size: int) -> None:
        if not 0 <= size <= len(self._value) - self._at:
            raise EOFError("it is cut short")
        self._at += size

    def _index(self, count: int, of: str) -> int:
        index = self._long()
        if not 0 <= index < count:
            raise ValueError(f"it names the {of} with the index {index}, and there are {count}")
        return index

    def _long(self) -> int:
        number = shift = 0
        while True:
            if self._at >= len(self._value):
                raise EOFError("it is cut short")
            byte = self._value[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 70:
                raise ValueError("a number has more than ten bytes")
        number &= 0xFFFF_FFFF_FFFF_FFFF
        return (number >> 1) ^ -(number & 1)
