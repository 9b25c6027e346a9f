"""NaN and infinities in values for the encoder, also within arrays, maps and structs."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec

from grouping.model.sql_type import DOUBLE, FLOAT, SqlType
from grouping.values.equal_json import exact_values

__all__ = ["has_fractions", "has_specials", "parts_of"]


@lru_cache(maxsize=1024)
def has_fractions(sql_type: SqlType) -> bool:
    """Tell whether a value of a type may be, or contain, a DOUBLE or FLOAT.

    Example:
        >>> [has_fractions(SqlType.of(text)) for text in ("DOUBLE", "INT", "ARRAY<STRUCT<a: INT, b: FLOAT>>")]
        [True, False, True]
    """
    if sql_type.fields:
        return any(has_fractions(part) for _, part in sql_type.fields)
    return sql_type in (DOUBLE, FLOAT) if sql_type.element is None else has_fractions(sql_type.element)


def has_specials(value: Any) -> bool:
    """Tell whether a value for the encoder is, or contains, NaN or an infinity.

    Example:
        >>> has_specials([{"a": 1.0}, {"a": float("nan")}]), has_specials({"a": [1.0]})
        (True, False)
    """
    if isinstance(value, float):
        return not isfinite(value)
    if isinstance(value, msgspec.Struct):
        return any(map(has_specials, msgspec.structs.astuple(value)))
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(has_specials, parts))


def parts_of(value: Any) -> Any:
    """Return a value for the encoder as lists, dictionaries and plain values.

    Example:
        >>> parts_of({"a": [msgspec.Raw(b'{"b":1}')]})
        {'a': [{'b': 1}]}
    """
    if isinstance(value, msgspec.Struct):
        names = value.__struct_encode_fields__
        return {name: parts_of(part) for name, part in zip(names, msgspec.structs.astuple(value), strict=True)}
    if isinstance(value, dict):
        return {name: parts_of(part) for name, part in value.items()}
    if isinstance(value, list):
        return [parts_of(part) for part in value]
    return exact_values(value) if isinstance(value, msgspec.Raw) else value
