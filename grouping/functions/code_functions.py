"""The functions of codes, bytes and hashes, and of numbers beyond everyday arithmetic."""

from __future__ import annotations

from grouping.functions.function import Function
from grouping.model.sql_type import BIGINT, BINARY, DOUBLE, INT, STRING, TINYINT, SqlType

__all__ = ["CODE_ALIASES", "CODE_FUNCTIONS", "CODE_RESULTS"]

_BYTES = Function(("BYTES",))
_VALUES = Function(("VALUE",), variadic=True)
_NUMBER = Function(("DOUBLE",))

_ALIKE = "acos acosh asin asinh atan atanh cbrt cosh expm1 log1p sinh tanh".split()
"""Functions of a number that Java computes alike on all processors, unlike ``sin``, ``cos`` and ``tan``."""

_TYPED: dict[str, tuple[Function, SqlType]] = {
    **{name: (_NUMBER, DOUBLE) for name in _ALIKE},
    "atan2": (Function(("DOUBLE", "DOUBLE")), DOUBLE),
    "bit_get": (Function(("WHOLE", "INT")), TINYINT),
    "base64": (_BYTES, STRING),
    "conv": (Function(("STRING", "INT", "INT")), STRING),
    "crc32": (_BYTES, BIGINT),
    "decode": (Function(("BYTES", "STRING")), STRING),
    "degrees": (_NUMBER, DOUBLE),
    "encode": (Function(("STRING", "STRING")), BINARY),
    "factorial": (Function(("INT",)), BIGINT),
    "format_number": (Function(("NUMBER", "COUNT")), STRING),
    "hash": (_VALUES, INT),
    "hex": (Function(("HEXED",)), STRING),
    "hypot": (Function(("DOUBLE", "DOUBLE")), DOUBLE),
    "md5": (_BYTES, STRING),
    "radians": (_NUMBER, DOUBLE),
    "rint": (_NUMBER, DOUBLE),
    "sha1": (_BYTES, STRING),
    "sha2": (Function(("BYTES", "INT")), STRING),
    "unbase64": (Function(("STRING",)), BINARY),
    "unhex": (Function(("STRING",)), BINARY),
    "width_bucket": (Function(("DOUBLE", "DOUBLE", "DOUBLE", "WHOLE")), BIGINT),
    "xxhash64": (_VALUES, BIGINT),
}

CODE_FUNCTIONS = {name: function for name, (function, _) in _TYPED.items()}
"""The arguments of each function."""

CODE_RESULTS = {name: sql_type for name, (_, sql_type) in _TYPED.items()}
"""The type of each function's result."""

CODE_ALIASES = {"getbit": "bit_get", "sha": "sha1"}
"""Spark's other names of the same functions."""
