"""The limit on the number of values of a JSON record, so that a few bytes of text do not become megabytes in a worker.

A STRUCT takes a place in memory for each of its fields, even if the record has only ``{}``. So an array of empty
objects, each a STRUCT of a hundred fields, is hundreds of times as large as its text. The limit for Avro is in
`schemas/avro_limits.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grouping.model.catalog import StreamColumn
from grouping.model.sql_type import SqlType
from spark_jobs.engine.decode.json_exact import WrongRecord

__all__ = ["extent", "extent_check"]

_PER_BYTE = 16
"""The number of places that a record may take for each of its bytes: an element of ten bytes may have 150 fields."""
_BESIDES = 10_000
"""The number of further places that any record may take, whatever its size."""
_ELEMENT_BYTES = 3
"""The number of bytes of the shortest element, ``{}`` and a comma."""


def extent_check(columns: Sequence[StreamColumn]) -> Callable[[Sequence[Any], int], None] | None:
    """Return a check of a record; None if no record with these columns can exceed the limit.

    The arguments of the check are the values of the columns, in their order, and the number of the record's bytes. The
    check raises `WrongRecord` if the limit is exceeded.

    Example:
        >>> fields = ", ".join(f"f{number}: INT" for number in range(100))
        >>> check = extent_check([StreamColumn("rows", f"ARRAY<STRUCT<{fields}>>")])
        >>> check([[{}] * 90], 300)
        >>> check([[{}] * 900], 2703)
        Traceback (most recent call last):
        spark_jobs.engine.decode.json_exact.WrongRecord: Its nested columns hold 90901 values, too many for 2703 bytes.
    """
    nested = [(number, column.type) for number, column in enumerate(columns) if column.type.is_nested]
    widest = max((_widest(sql_type) for _, sql_type in nested), default=0)
    if widest <= _PER_BYTE * _ELEMENT_BYTES:
        return None

    def check(values: Sequence[Any], size: int) -> None:
        if widest * size // _ELEMENT_BYTES <= _BESIDES:
            return
        count = sum(extent(values[number], sql_type) for number, sql_type in nested)
        if count > _PER_BYTE * size + _BESIDES:
            raise WrongRecord(f"Its nested columns hold {count} values, too many for {size} bytes.")

    return check


def _places(sql_type: SqlType) -> int:
    """Return the number of places that an empty value takes."""
    return 1 + sum(_places(field) for _, field in sql_type.fields)


def _widest(sql_type: SqlType) -> int:
    """Return the largest number of places that an empty element of an ARRAY or a MAP takes."""
    below = max((_widest(field) for _, field in sql_type.fields), default=0)
    return below if sql_type.element is None else max(_places(sql_type.element), _widest(sql_type.element))


def extent(value: Any, sql_type: SqlType) -> int:
    """Return the number of places that a value takes."""
    if value is None:
        return _places(sql_type)
    if sql_type.name == "STRUCT":
        return 1 + sum(extent(value.get(name), field) for name, field in sql_type.fields)
    if sql_type.element is None:
        return 1
    element = sql_type.element
    return 1 + sum(extent(each, element) for each in (value.values() if sql_type.name == "MAP" else value))
