"""Conversion of Canal's values to the values of plain JSON records: Canal writes every value of a row as a text."""

from __future__ import annotations

import re

from grouping.model.sql_type import BOOLEAN, DOUBLE, FLOAT, SqlType
from spark_jobs.engine.decode.envelopes.connect_values import Convert

__all__ = ["canal_converter"]

_NUMBER = re.compile(rb'"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"')
_BOOLEANS = {b'"1"': b"true", b'"true"': b"true", b'"0"': b"false", b'"false"': b"false"}


def canal_converter(sql_type: SqlType) -> Convert | None:
    """Return the converter of values for a column; None if the texts need no conversion.

    Example:
        >>> canal_converter(SqlType.of("INT"))(b'"111"')
        b'111'
    """
    if sql_type == BOOLEAN:
        return lambda raw: _BOOLEANS.get(raw, raw)
    if sql_type.is_whole or sql_type in (DOUBLE, FLOAT):
        return _number
    return None


def _number(raw: bytes) -> bytes:
    found = _NUMBER.fullmatch(raw)
    return raw if found is None else found[1]
