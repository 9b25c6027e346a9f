"""The functions of values of any type."""

from __future__ import annotations

from grouping.functions.function import Function
from grouping.functions.results import of_first, widest
from grouping.functions.sizes import first, longest
from grouping.model.sql_type import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    SqlType,
    decimal,
)

__all__ = ["ANY_TYPE", "CASTING"]

CASTING: dict[str, SqlType] = {
    sql_type.name.lower(): sql_type
    for sql_type in (
        BOOLEAN,
        TINYINT,
        SMALLINT,
        INT,
        BIGINT,
        FLOAT,
        DOUBLE,
        decimal(10, 0),
        STRING,
        DATE,
        TIMESTAMP,
        BINARY,
    )  # fmt: skip
}
"""Functions that CAST to the type after which they are named."""
_CASTS_OF = {"binary": "symbol", "date": "at", "decimal": "n", "string": "n", "timestamp": "day"}
"""Function of `CASTING` → the column in its example; the examples of the other functions have a numeric column."""

ANY_TYPE = (
    *(Function(f"{name}(ANY)", sql_type, f"CAST to {sql_type}", compiled=True,
               example=f"{name}({_CASTS_OF[name]})" if name in _CASTS_OF else "")
      for name, sql_type in CASTING.items()),
    Function("coalesce(COMMON, …)", widest, "first value that is not NULL", aliases=("nvl", "ifnull"), size=longest,
             strict=False),
    Function("equal_null(COMMON, COMMON)", BOOLEAN, "`<=>`: equality in which NULL equals NULL", strict=False,
             compiled=True),
    Function("greatest(COMMON, COMMON, …)", widest, "greatest value; NULLs do not count", size=longest, strict=False),
    Function("hash(VALUE, …)", INT, "Murmur3 hash", strict=False),
    Function("if(BOOLEAN, COMMON, COMMON)", None, "second value if the condition is TRUE, else the third one",
             strict=False, compiled=True),
    Function("isnotnull(ANY)", BOOLEAN, "IS NOT NULL", strict=False, compiled=True),
    Function("isnull(ANY)", BOOLEAN, "IS NULL", strict=False, compiled=True),
    Function("least(COMMON, COMMON, …)", widest, "least value; NULLs do not count", size=longest, strict=False),
    Function("nullif(COMMON, COMMON)", of_first, "NULL if both values are equal, else the first one", size=first,
             strict=False),
    Function("nvl2(ANY, COMMON, COMMON)", None, "second value if the first one is not NULL, else the third one",
             strict=False, compiled=True),
    Function("xxhash64(VALUE, …)", BIGINT, "xxHash64", strict=False),
)  # fmt: skip
