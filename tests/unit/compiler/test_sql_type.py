"""Types and their texts."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.sql_type import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NUMERIC,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    UNKNOWN,
    VARIANT,
    SqlType,
    array_of,
    decimal,
    map_of,
    set_of,
    struct_of,
)

_PLAIN = (STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP, BINARY, VARIANT, NUMERIC)
_SIZES = st.integers(1, 38).flatmap(lambda digits: st.builds(decimal, st.just(digits), st.integers(0, digits)))
_TYPES = st.recursive(
    st.sampled_from(_PLAIN) | _SIZES,
    lambda inner: st.one_of(
        inner.map(set_of),
        inner.map(array_of),
        st.builds(map_of, inner, inner),
        st.lists(st.tuples(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), inner)).map(struct_of),
    ),
    max_leaves=8,
)


@given(_TYPES)
def test_a_type_is_read_from_its_text(sql_type: SqlType) -> None:
    """Every type is read from the text that it is written as, and is equal and hashed alike after any journey."""
    read = SqlType.of(str(sql_type))
    assert sql_type == read and hash(sql_type) == hash(read)
    assert sql_type == pickle.loads(pickle.dumps(sql_type))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("BIGINT", "BIGINT"),
        ("DECIMAL", "DECIMAL(10,0)"),
        ("DECIMAL(12)", "DECIMAL(12,0)"),
        ("decimal( 10 , 2 )", "DECIMAL(10,2)"),
        ("SET<DECIMAL(38,6)>", "SET<DECIMAL(38,6)>"),
        ("map<string,array<int>>", "MAP<STRING, ARRAY<INT>>"),
        ("STRUCT<a:INT,`the ``b```:STRUCT<>>", "STRUCT<a: INT, `the ``b```: STRUCT<>>"),
        ("", ""),
    ],
)
def test_texts(text: str, written: str) -> None:
    """A type has one text, however it was written."""
    assert written == str(SqlType.of(text))


@pytest.mark.parametrize(
    "text",
    ["NOPE", "INT INT", "DECIMAL(", "DECIMAL(a,b)", "SET<", "SET<>", "ARRAY", "MAP<INT>", "STRUCT<a>", "INT>", "é"],
)
def test_what_is_no_type(text: str) -> None:
    """A text that is not a type is refused with a ValueError, never a different exception."""
    with pytest.raises(ValueError, match="writes no type"):
        SqlType.of(text)


def test_what_types_tell() -> None:
    """Types tell which values compare, which have an order, and the element type of a set."""
    assert decimal(5, 2).is_like(DOUBLE) and not DATE.is_like(TIMESTAMP)
    assert BINARY.is_ordered and UNKNOWN.is_ordered and not array_of(INT).is_ordered and not VARIANT.is_ordered
    assert INT == set_of(INT).member == INT.member and array_of(INT) == array_of(INT).member
