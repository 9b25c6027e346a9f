"""Types of other systems in CREATE STREAM: each is refused with the nearest type, in the form in which to write it."""

from __future__ import annotations

import re

import pytest

from grouping.model.errors import InputError
from grouping.statements.command import parse

_NEAREST = {
    "INT2": "SMALLINT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "INT128": "DECIMAL(38,0)",
    "UINT8": "SMALLINT",
    "UINT16": "INT",
    "UINT32": "BIGINT",
    "UINT64": "DECIMAL(20,0)",
    "INTEGER": "INT",
    "INT(11)": "INT",
    "INT UNSIGNED": "BIGINT",
    "BIGINT UNSIGNED": "DECIMAL(20,0)",
    "UNSIGNED BIGINT": "BIGINT",
    "TINYINT(1)": "TINYINT",
    "MEDIUMINT": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "HUGEINT": "DECIMAL(38,0)",
    "SERIAL": "INT",
    "BIGSERIAL": "BIGINT",
    "SMALLSERIAL": "SMALLINT",
    "IDENTITY": "BIGINT",
    "NUMBER": "DECIMAL(p,s)",
    "NUMBER(10)": "DECIMAL(10)",
    "NUMBER(10,2)": "DECIMAL(10,2)",
    "NUMERIC": "DECIMAL",
    "NUMERIC(10,2)": "DECIMAL(10,2)",
    "DEC(10,2)": "DECIMAL(10,2)",
    "DECIMAL64(2)": "DECIMAL(p,s)",
    "BIGNUMERIC": "DECIMAL(p,s)",
    "FIXED": "DECIMAL(p,s)",
    "MONEY": "DECIMAL(19,4)",
    "SMALLMONEY": "DECIMAL(10,4)",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "FLOAT(24)": "FLOAT",
    "REAL": "FLOAT",
    "DOUBLE PRECISION": "DOUBLE",
    "BINARY_FLOAT": "FLOAT",
    "BINARY_DOUBLE": "DOUBLE",
    "BOOL": "BOOLEAN",
    "BIT": "BOOLEAN",
    "BIT(1)": "BOOLEAN",
    "LOGICAL": "BOOLEAN",
    "TEXT": "STRING",
    "TINYTEXT": "STRING",
    "MEDIUMTEXT": "STRING",
    "LONGTEXT": "STRING",
    "CITEXT": "STRING",
    "NTEXT": "STRING",
    "VARCHAR": "STRING",
    "VARCHAR(255)": "STRING",
    "VARCHAR2(40)": "STRING",
    "NVARCHAR(40)": "STRING",
    "NVARCHAR2(40)": "STRING",
    "CHAR(2)": "STRING",
    "CHARACTER(2)": "STRING",
    "CHARACTER VARYING(40)": "STRING",
    "NCHAR(2)": "STRING",
    "BPCHAR": "STRING",
    "STRING(36)": "STRING",
    "FIXEDSTRING(16)": "STRING",
    "CLOB": "STRING",
    "NCLOB": "STRING",
    "UUID": "STRING",
    "UNIQUEIDENTIFIER": "STRING",
    "ENUM('a','b')": "STRING",
    "BLOB": "BINARY",
    "BYTEA": "BINARY",
    "BYTES": "BINARY",
    "BYTES(16)": "BINARY",
    "VARBINARY(16)": "BINARY",
    "BINARY(16)": "BINARY",
    "RAW(16)": "BINARY",
    "LONGBLOB": "BINARY",
    "IMAGE": "BINARY",
    "DATETIME": "TIMESTAMP",
    "DATETIME2": "TIMESTAMP",
    "DATETIME64(3)": "TIMESTAMP",
    "SMALLDATETIME": "TIMESTAMP",
    "DATE32": "DATE",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMP(3)": "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "DATETIMEOFFSET": "TIMESTAMP",
    "TIME": "STRING",
    "TIME(0)": "STRING",
    "INTERVAL": "STRING",
    "YEAR": "INT",
    "JSON": "VARIANT",
    "JSONB": "VARIANT",
    "XML": "STRING",
    "HSTORE": "MAP<STRING, STRING>",
    "OBJECT": "VARIANT",
    "SUPER": "VARIANT",
    "ROW(a INT)": "STRUCT<name: type, …>",
    "STRUCT(a INT)": "STRUCT<name: type, …>",
    "RECORD": "STRUCT<name: type, …>",
    "ARRAY(INT)": "ARRAY<type>",
    "INT[]": "ARRAY<INT>",
    "ARRAY": "ARRAY<type>",
    "LIST<INT>": "ARRAY<type>",
    "MAP<INT, STRING>": "MAP<STRING, type>",
    "MAP(STRING, INT)": "MAP<STRING, type>",
    "TUPLE(a INT)": "STRUCT<name: type, …>",
    "NESTED(a INT)": "STRUCT<name: type, …>",
    "INET": "STRING",
    "CIDR": "STRING",
    "IPV4": "STRING",
    "POINT": "STRUCT<lon: DOUBLE, lat: DOUBLE>",
    "GEOGRAPHY": "STRING",
    "GEOMETRY": "STRING",
    "FLOAT(53)": "DOUBLE",
    "INT(10) UNSIGNED": "BIGINT",
    "TINYINT(3) UNSIGNED": "SMALLINT",
    "MEDIUMINT UNSIGNED": "INT",
    "DECIMAL(10,2) UNSIGNED": "DECIMAL(10,2)",
    "NUMBER(38)": "DECIMAL(38)",
    "NUMBER(*,2)": "DECIMAL(p,s)",
    "BIGNUMERIC(40,10)": "DECIMAL(p,s)",
    "BIT(8)": "STRING",
    "BIT VARYING(8)": "STRING",
    "VARBIT": "STRING",
    "SERIAL4": "INT",
    "SERIAL8": "BIGINT",
    "LONG RAW": "BINARY",
    "LONG VARCHAR": "STRING",
    "BINARY LARGE OBJECT": "BINARY",
    "CHARACTER LARGE OBJECT": "STRING",
    "NATIONAL CHARACTER VARYING(10)": "STRING",
    "VARCHAR(MAX)": "STRING",
    "VARCHAR2(20 CHAR)": "STRING",
    "TEXT[]": "ARRAY<STRING>",
    "INT4[]": "ARRAY<INT>",
    "INT8[]": "ARRAY<BIGINT>",
    "VARCHAR(20)[]": "ARRAY<STRING>",
    "NUMERIC(10,2)[]": "ARRAY<DECIMAL(10,2)>",
    "_INT4": "ARRAY<INT>",
    "TIMESTAMPTZ(6)": "TIMESTAMP",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": "TIMESTAMP",
    "TIMESTAMP[MS]": "TIMESTAMP",
    "INT96": "TIMESTAMP",
    "SQL_VARIANT": "VARIANT",
    "OID": "BIGINT",
    "XMLTYPE": "STRING",
    "TSTZRANGE": "STRING",
    "ROWID": "STRING",
    "HIERARCHYID": "STRING",
    "KEYWORD": "STRING",
    "UNSIGNED_LONG": "DECIMAL(20,0)",
    "OBJECTID": "STRING",
    "VARINT": "DECIMAL(38,0)",
}
"""By what is written: the type to write."""


def _refusal(written: str) -> InputError:
    with pytest.raises(InputError) as raised:
        parse(f"CREATE STREAM s (a {written}, b INT) WITH (topic = 's', format = 'json')")
    return raised.value


@pytest.mark.parametrize(("written", "nearest"), _NEAREST.items())
def test_a_type_of_another_system_has_the_nearest(written: str, nearest: str) -> None:
    """The hint has the type, which is a type here."""
    error = _refusal(written)
    assert error.code == "syntax-error"
    assert nearest in str(error.hint)
    example = re.sub(
        r"\b(?:type|name: type, …)", lambda found: found[0].replace("type, …", "INT").replace("type", "INT"), nearest
    )
    parse(f"CREATE STREAM s (a {example.replace('(p,s)', '(10,2)')}, b INT) WITH (topic = 's', format = 'json')")


@pytest.mark.parametrize("written", ["NULLABLE(INT)", "LOWCARDINALITY(STRING)"])
def test_a_wrapper_is_the_type_within(written: str) -> None:
    """A wrapper without a meaning for records is left out."""
    assert "within the parentheses" in str(_refusal(written).hint)


@pytest.mark.parametrize("written", ["INT NOT NULL", "STRING DEFAULT 'x'", "BIGINT UNIQUE", "STRING COMMENT 'x'"])
def test_a_constraint_is_left_out(written: str) -> None:
    """A constraint behind a type is named, within a STRUCT too."""
    assert _refusal(written).message.endswith("does not belong to a column")
    assert "Every column may be NULL" in str(_refusal(f"STRUCT<x: {written}>").hint)


def test_a_primary_key_of_a_stream() -> None:
    """The hint names the key that a stream has."""
    assert "PARTITION KEY" in str(_refusal("INT PRIMARY KEY").hint)


def test_eighty_types() -> None:
    """The list is as long as promised."""
    assert len(_NEAREST) >= 82
