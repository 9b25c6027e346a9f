"""Names of types in other systems, with the nearest type of a column: for hints only."""

from __future__ import annotations

__all__ = ["OTHER_SPELLINGS", "WITHOUT_SIGN", "nearest_type"]

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
    "TINYINT": "I1",
    "SMALLINT": "INT2 INT16 SMALLSERIAL UINT8 UTINYINT",
    "INT": "INT4 INT32 MEDIUMINT SERIAL UINT16 USMALLINT YEAR",
    "BIGINT": "BIGSERIAL IDENTITY INT64 UINT32 UINTEGER",
    "DECIMAL(20,0)": "UBIGINT UINT64",
    "DECIMAL(38,0)": "HUGEINT INT128 INT256 UHUGEINT UINT128 UINT256",
    "DECIMAL(p,s)": "BIGDECIMAL BIGNUMERIC DECIMAL32 DECIMAL64 DECIMAL128 DECIMAL256 DECFLOAT FIXED NUMBER",
    "DECIMAL(19,4)": "MONEY",
    "DECIMAL(10,4)": "SMALLMONEY",
    "FLOAT": "BINARY_FLOAT FLOAT4 FLOAT32",
    "DOUBLE": "BINARY_DOUBLE FLOAT8 FLOAT64",
    "BOOLEAN": "BIT LOGICAL",
    "STRING": """BPCHAR CHARACTER CIDR CITEXT CLOB ENUM ENUM8 ENUM16 FIXEDSTRING GEOGRAPHY GEOMETRY INET INTERVAL IPV4
        IPV6 LONGTEXT LONGVARCHAR MACADDR MEDIUMTEXT NATIONAL NCHAR NCLOB NTEXT NVARCHAR NVARCHAR2 SET TIME TIME64
        TIMETZ TINYTEXT UNIQUEIDENTIFIER UUID VARCHAR2 XML""",
    "BINARY": "BYTEA IMAGE LONGBLOB LONGVARBINARY MEDIUMBLOB RAW ROWVERSION TINYBLOB VARBINARY",
    "DATE": "DATE32",
    "TIMESTAMP": """DATETIME2 DATETIME64 DATETIMEOFFSET SMALLDATETIME TIMESTAMP_MS TIMESTAMP_NS TIMESTAMP_S TIMESTAMP_TZ
        TIMESTAMPLTZ TIMESTAMPNTZ""",
    "VARIANT": "ANY DYNAMIC OBJECT SUPER",
    "MAP<STRING, STRING>": "HSTORE",
    "MAP<STRING, type>": "MULTISET",
    "ARRAY<type>": "LIST VECTOR",
    "STRUCT<name: type, …>": "NESTED RECORD ROW TUPLE",
    "STRUCT<lon: DOUBLE, lat: DOUBLE>": "POINT",
}
_NAMED = OTHER_SPELLINGS | {name: nearest for nearest, names in _NEAREST.items() for name in names.split()}
_SPECIAL = {
    "INT8": 'Use "BIGINT" for 8 bytes, as in PostgreSQL, or "TINYINT" for 8 bits, as in ClickHouse.',
    "UNSIGNED": 'Use "BIGINT", or "DECIMAL(20,0)" for 8 bytes.',
    "SIGNED": 'Use "BIGINT".',
    "NULLABLE": "Use the type within the parentheses: every column may be NULL.",
    "LOWCARDINALITY": "Use the type within the parentheses.",
}
WITHOUT_SIGN = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "INT": "BIGINT", "BIGINT": "DECIMAL(20,0)"}
"""Type → the type that holds unsigned numbers of as many bits."""


def nearest_type(name: str, size: str = "") -> str | None:
    """Return the hint for the name of a type in capitals; None for an unknown name.

    Args:
        name: The name.
        size: Digits in parentheses after the name, which a DECIMAL keeps.

    Example:
        >>> nearest_type("FLOAT8"), nearest_type("NUMBER", "(10,2)"), nearest_type("QUOTE")
        ('Use "DOUBLE".', 'Use "DECIMAL(10,2)".', None)
    """
    if name in _SPECIAL:
        return _SPECIAL[name]
    if name.startswith("DOUBLE "):
        return 'Use "DOUBLE".'
    known = _NAMED.get(name) or _NAMED.get(name.split(" ", maxsplit=1)[0])
    if known in ("DECIMAL", "DECIMAL(p,s)") and size and name.isalpha():
        known = f"DECIMAL{size}"
    return f'Use "{known}".' if known else None
