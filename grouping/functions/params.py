"""The kinds of parameters: names in the documentation and in messages, accepted types, arguments of examples."""

from __future__ import annotations

from typing import NamedTuple

from grouping.model.sql_type import DATE, DOUBLE, INT, STRING, WHOLE_BITS, SqlType, decimal

__all__ = ["PARAMS", "SECONDS", "Param", "param"]

SECONDS = decimal(16, 6)


class Param(NamedTuple):
    """A kind of parameter."""

    shown: str = ""
    """The name in the form of a function; if empty, the kind itself."""
    null: SqlType | None = None
    """The type that an untyped NULL gets, and that a constant parameter must have; if None, the type that the kind
    names."""
    accepted: tuple[str, ...] = ()
    """The names of the types that are accepted without a CAST; if empty, the kind is the only name."""
    phrase: str = ""
    """The name in messages; if empty, the kind itself."""
    reader: str = ""
    """The reader (`values.literals.READERS`) of a parameter that must be a constant; empty for other parameters."""
    examples: tuple[str, ...] = ()
    """Arguments for the first, the second, … parameter of the kind, over the columns of the sample stream."""


PARAMS: dict[str, Param] = {
    "ACCURACY": Param("accuracy", examples=("10000",)),
    "ANY": Param("any", examples=("price",)),
    "ARRAY": Param(examples=("tags", "others")),
    "BOOLEAN": Param(examples=("ok",)),
    "BYTES": Param("STRING or BINARY", STRING, ("STRING", "BINARY"), "STRING or BINARY", examples=("symbol",)),
    "COMMON": Param("any", examples=("price", "cost")),
    "COUNT": Param("count", INT, reader="count", examples=("10",)),
    "DATE": Param(examples=("day", "due")),
    "DAY": Param("DATE or TIMESTAMP", DATE, ("DATE", "TIMESTAMP"), "DATE or TIMESTAMP", examples=("day",)),
    "DOUBLE": Param("number", examples=("price", "cost")),
    "ESCAPE": Param("character", STRING, examples=("'!'",)),
    "ESCAPED": Param(null=STRING),
    "FIELD": Param("field", examples=("'year'",)),
    "FORMAT": Param("format", examples=("'yyyy-MM-dd'",)),
    "GROUPS": Param("pattern", STRING, reader="groups", examples=("'([A-Z]+)'",)),
    "HEXED": Param("STRING, BINARY or BIGINT", STRING, ("STRING", "BINARY", *WHOLE_BITS),
                   "STRING, BINARY or a whole number", examples=("volume",)),
    "INT": Param(accepted=("TINYINT", "SMALLINT", "INT"), examples=("n", "2", "3")),
    "JSON": Param("VARIANT, STRUCT, ARRAY or MAP", examples=("payload",)),
    "KEY": Param("key", STRING, reader="key", examples=("'id'",)),
    "LIKE": Param("STRING", STRING, examples=("'IN%'",)),
    "MAP": Param(examples=("attrs",)),
    "MASK": Param("character", STRING, reader="mask", examples=("'X'",)),
    "MEASURE": Param("number, DATE or TIMESTAMP", phrase="a number, DATE or TIMESTAMP", examples=("price",)),
    "NUMBER": Param("number", DOUBLE, phrase="a number", examples=("price", "cost")),
    "OCCURRENCES": Param("pattern", STRING, reader="occurrences", examples=("'[A-Z]'",)),
    "ORDERED": Param("any", phrase="of a type whose values have an order", examples=("volume",)),
    "PATTERN": Param("pattern", STRING, reader="pattern", examples=("'^IN'",)),
    "PERCENTAGE": Param("percentage", examples=("0.95",)),
    "PRINTED": Param("any", STRING, examples=("symbol",)),
    "PRINTF": Param("format", STRING, examples=("'%s'",)),
    "REPLACEMENT": Param("replacement", STRING, reader="replacement", examples=("'x'",)),
    "SCALE": Param("scale", INT, reader="literal", examples=("2",)),
    "SECONDS": Param("seconds", SECONDS, examples=("30",)),
    "STRING": Param(examples=("symbol", "name", "'-'")),
    "TEXT": Param("STRING or BINARY", STRING, ("STRING", "BINARY"), "STRING or BINARY", examples=("symbol",)),
    "TIMESTAMP": Param(examples=("at", "until")),
    "UNIT": Param("unit", examples=("HOUR",)),
    "VALUE": Param("any", STRING, phrase="of a type without parts", examples=("symbol",)),
    "WHOLE": Param("INT or BIGINT", INT, tuple(WHOLE_BITS), "INT or BIGINT", examples=("volume",)),
    "WRITTEN": Param("number, DATE, TIMESTAMP or BINARY"),
    "ZONE": Param("zone", STRING, reader="zone", examples=("'Europe/Madrid'",)),
}  # fmt: skip
"""The rows by kind.

``DOUBLE`` takes every number. The arguments of ``COMMON`` are widened to a common type. ``BYTES``, ``TEXT`` and
``HEXED`` differ in the types that are cast to STRING. ``VALUE`` is any type without parts. With a ``PATTERN``, a
function tests only whether the text has a match; with ``GROUPS``, it reads groups or the place of the first match; with
``OCCURRENCES``, it reads all matches. ``UNIT``, ``FIELD``, ``FORMAT`` and ``PRINTF`` stay in the signature.
"""


def param(kind: str) -> Param:
    """Return a kind of parameter; a kind without a row, such as ``x -> condition``, is only shown."""
    return PARAMS.get(kind) or Param()
