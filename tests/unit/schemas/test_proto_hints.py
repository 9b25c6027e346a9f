"""A column that does not fit the Protobuf message has a hint with the column to declare, which is accepted."""

from __future__ import annotations

import pytest

from grouping.model.errors import InputError
from tests.unit.schemas.test_decode_proto import declared

_LEG = "STRUCT<price: DOUBLE>"


@pytest.mark.parametrize(
    ("column", "nearest"),
    [
        ("symbol INT", "symbol STRING"),
        ("i STRING", "i INT"),
        ("u DOUBLE", "u DECIMAL(20,0)"),
        ("f DECIMAL(5,1)", "f FLOAT"),
        ("at STRING", "at TIMESTAMP"),
        ("side INT", "side STRING"),
        ("maybe STRING", "maybe BIGINT"),
        ("leg STRING", f"leg {_LEG}"),
        ("legs STRING", f"legs ARRAY<{_LEG}>"),
        ("ns INT", "ns ARRAY<INT>"),
        ("tags ARRAY<INT>", "tags MAP<STRING, INT>"),
    ],
)
def test_a_column_of_another_type_has_the_type_to_declare(column: str, nearest: str) -> None:
    """The hint has the column as it is declared for this field, and this column is accepted."""
    with pytest.raises(InputError) as refused:
        declared(column)
    assert refused.value.code == "stream-mismatch"
    assert refused.value.hint == f'Declare "{nearest}".'
    declared(nearest)


@pytest.mark.parametrize(
    ("column", "hint"),
    [
        ("simbol STRING", 'Did you mean "symbol"?'),
        ("venue STRING", None),
        ("numbers MAP<STRING, INT>", "Leave the column out"),
    ],
)
def test_a_column_without_a_field_has_a_similar_one(column: str, hint: str | None) -> None:
    """A field that no column can hold says why."""
    with pytest.raises(InputError) as refused:
        declared(column)
    assert (refused.value.hint or "").startswith(hint or "")
    assert (hint is None) == (refused.value.hint is None)
