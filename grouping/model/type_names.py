"""Names of types in other systems, with the nearest type of a column: for hints only."""

from __future__ import annotations

import re

from grouping.model.decimal_types import WIDEST
from grouping.model.sql_type import PLAIN_TYPES

__all__ = ["OTHER_SPELLINGS", "nearest_type"]

OTHER_SPELLINGS = {
    "BLOB": "BINARY",
    "BOOL": "BOOLEAN",
    "BYTE": "TINYINT",
    "BYTES": "BINARY",
    "CHAR": "STRING",
    "DATETIME": "TIMESTAMP",
    "DEC": "DECIMAL",
    "INTEGER": "INT",
    "JSON": "VARIANT",
    "JSONB": "VARIANT",
    "LONG": "BIGINT",
    "NUMERIC": "DECIMAL",
    "REAL": "FLOAT",
    "SHORT": "SMALLINT",
    "TEXT": "STRING",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "VARCHAR": "STRING",
}
"""Names of types in other systems that are hardly ever names of columns."""

_NEAREST = {
    "TINYINT": "I8",
    "SMALLINT": "I16 INT2 INT16 SERIAL2 SMALLSERIAL U8 UINT8 UTINYINT",
    "INT": "I32 INT4 INT24 INT32 MEDIUMINT SERIAL SERIAL4 U16 UINT16 USMALLINT YEAR",
    "BIGINT": "BIGSERIAL COUNTER I64 IDENTITY INT64 OID SERIAL8 U32 UINT32 UINTEGER",
    "DECIMAL(20,0)": "U64 UBIGINT UINT64 UNSIGNED_LONG",
    "DECIMAL(38,0)": "HUGEINT INT128 INT256 UHUGEINT UINT128 UINT256 VARINT",
    "DECIMAL(p,s)": "BIGDECIMAL BIGNUMERIC DECIMAL32 DECIMAL64 DECIMAL128 DECIMAL256 DECFLOAT FIXED NUMBER",
    "DECIMAL(19,4)": "MONEY",
    "DECIMAL(10,4)": "SMALLMONEY",
    "FLOAT": "BINARY_FLOAT F32 FLOAT4 FLOAT32 HALF_FLOAT",
    "DOUBLE": "BINARY_DOUBLE F64 FLOAT8 FLOAT64 SCALED_FLOAT",
    "BOOLEAN": "BIT LOGICAL",
    "STRING": """ASCII BPCHAR CHARACTER CIDR CITEXT CLOB DATERANGE DURATION ENUM ENUM8 ENUM16 FIXEDSTRING GEOGRAPHY
        GEOMETRY HIERARCHYID INET INET4 INET6 INT4RANGE INT8RANGE INTERVAL IP IPV4 IPV6 KEYWORD LARGE_UTF8 LINE
        LONGTEXT LONGVARCHAR LTREE MACADDR MACADDR8 MEDIUMTEXT NAME NATIONAL NCHAR NCLOB NTEXT NUMRANGE
        NVARCHAR NVARCHAR2 OBJECTID PG_LSN POLYGON ROWID SET SYSNAME TIME TIME64 TIMETZ TIMEUUID TINYTEXT
        TSQUERY TSRANGE TSTZRANGE TSVECTOR UNIQUEIDENTIFIER UROWID UTF8 UUID VARBIT VARCHAR2 XML XMLTYPE""",
    "BINARY": "BFILE BYTEA IMAGE LONGBLOB LONGVARBINARY MEDIUMBLOB RAW ROWVERSION TINYBLOB VARBINARY VARBYTE",
    "DATE": "DATE32 DATE64",
    "TIMESTAMP": """DATETIME2 DATETIME64 DATETIMEOFFSET DATE_NANOS INT96 ISODATE SMALLDATETIME TIMESTAMP_MS TIMESTAMP_NS
        TIMESTAMP_S TIMESTAMP_TZ TIMESTAMPLTZ TIMESTAMPNTZ""",
    "VARIANT": "ANY DYNAMIC FLATTENED OBJECT SQL_VARIANT SUPER",
    "MAP<STRING, STRING>": "HSTORE",
    "MAP<STRING, type>": "MULTISET",
    "ARRAY<type>": "HALFVEC LIST VECTOR",
    "STRUCT<name: type, …>": "NESTED RECORD ROW TUPLE",
    "STRUCT<lon: DOUBLE, lat: DOUBLE>": "POINT",
    "STRUCT<lat: DOUBLE, lon: DOUBLE>": "GEO_POINT",
}
_NAMED = OTHER_SPELLINGS | {name: nearest for nearest, names in _NEAREST.items() for name in names.split()}
_WORDS = {
    "BINARY LARGE": "BINARY",
    "BIT VARYING": "STRING",
    "DOUBLE PRECISION": "DOUBLE",
    "LONG BINARY": "BINARY",
    "LONG RAW": "BINARY",
    "LONG TEXT": "STRING",
    "LONG VARBINARY": "BINARY",
    "LONG VARCHAR": "STRING",
}
"""Names of two words, in which the second word changes the meaning of the first one."""
_SPECIAL = {
    "INT8": 'Use "BIGINT" for 8 bytes, as in PostgreSQL, or "TINYINT" for 8 bits, as in ClickHouse.',
    "UNSIGNED": 'Use "BIGINT", or "DECIMAL(20,0)" for 8 bytes.',
    "SIGNED": 'Use "BIGINT".',
    "NULLABLE": "Use the type within the parentheses: every column may be NULL.",
    "LOWCARDINALITY": "Use the type within the parentheses.",
    "FROZEN": "Use the type within the brackets.",
}
_WITHOUT_SIGN = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "INT": "BIGINT", "BIGINT": "DECIMAL(20,0)"}
"""Type → the type that holds unsigned numbers of as many bits."""
_DECIMALS = ("DECIMAL", "DECIMAL(p,s)")
_SINGLE_BITS = 24
"""The largest number of binary digits of a FLOAT in standard SQL; FLOAT(53) is a DOUBLE."""
_WRITTEN = re.compile(r"([^(<\[]*)(\([^()]*\))?([^\[]*)(\[[\d ]*\])?.*", re.DOTALL)


def nearest_type(written: str) -> str | None:
    """Return the hint for a type as another system writes it; None for an unknown name.

    Args:
        written: The type in upper case, with the parentheses, words and brackets that follow its name.

    Example:
        >>> nearest_type("FLOAT8"), nearest_type("NUMBER (10,2)"), nearest_type("QUOTE")
        ('Use "DOUBLE".', 'Use "DECIMAL(10,2)".', None)
        >>> nearest_type("INT (10) UNSIGNED"), nearest_type("TEXT [ ]")
        ('Use "BIGINT".', 'Use "ARRAY<STRING>".')
    """
    found = _WRITTEN.fullmatch(written)
    assert found is not None, "every text has this form"
    name, size, behind, brackets = (part or "" for part in found.groups())
    words = [*name.split(), *behind.split()]
    if not words:
        return None
    if words[0] in _SPECIAL and not brackets:
        return _SPECIAL[words[0]]
    is_array = bool(brackets) or (written.startswith("_") and written[1:] in _NAMED)
    words[0] = words[0].removeprefix("_") if is_array else words[0]
    known = _sized(words, size.replace(" ", "")) if "INT8" not in words else "BIGINT"
    if known is None:
        return None
    return f'Use "ARRAY<{known}>".' if is_array else f'Use "{known}".'


def _sized(words: list[str], size: str) -> str | None:
    """Return the nearest type of a name with further words and a size in parentheses."""
    name = words[0]
    plain = name if name in PLAIN_TYPES or name == "DECIMAL" else None
    known = _WORDS.get(" ".join(words[:2])) or plain or _NAMED.get(name)
    digits = [int(part) for part in size[1:-1].split(",") if part.isascii() and part.isdigit()]
    if known in _DECIMALS:
        fits = digits and digits[0] <= WIDEST and sum(digits[1:]) <= digits[0] and size.count(",") < len(digits)
        return f"DECIMAL{size}" if fits and name.isalpha() else "DECIMAL(p,s)"
    if name == "FLOAT" and len(digits) == 1 and digits[0] > _SINGLE_BITS:
        return "DOUBLE"
    if name == "BIT" and digits not in ([], [1]):
        return "STRING"
    if {"UNSIGNED", "ZEROFILL"} & {*words} and name != "MEDIUMINT":
        return _WITHOUT_SIGN.get(known or "", known)
    return known
