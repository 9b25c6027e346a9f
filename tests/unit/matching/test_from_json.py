"""from_json reads valid JSON exactly, and any other text only as far as allowed.

That broken texts are read as Spark reads them is for the corpus of calls (`tests/spark/calls/json_texts.py`).
"""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.testing import Stream, evaluate
from grouping.model.sql_type import SqlType
from spark_jobs.engine.expressions.nested.from_json import read_json
from spark_jobs.engine.expressions.nested.json_trees import NoTreeError, tree_reader

_SCHEMA = SqlType.of("STRUCT<n: BIGINT, s: STRING, d: DOUBLE, b: BOOLEAN, rows: ARRAY<STRUCT<n: INT, s: STRING>>>")
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_ROW = st.none() | st.fixed_dictionaries({"n": st.none() | st.integers(-(2**31), 2**31 - 1), "s": st.none() | _TEXT})
_VALUE = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | _TEXT,
        "d": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "b": st.none() | st.booleans(),
        "rows": st.none() | st.lists(_ROW, max_size=3),
    }
)
_STREAM = Stream("calls (body STRING)")


@given(_VALUE, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_what_json_writes_is_read(value: dict[str, object], ascii_only: bool, indent: int | str | None) -> None:
    """Values come back from their texts, with letters escaped or not, and with blanks or without."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert value == read_json(text, _SCHEMA)
    assert value == read_json(text + " and more", _SCHEMA)
    assert value == tree_reader(_SCHEMA)(f" {text} and more")


@given(_VALUE, st.data())
def test_any_text_is_read_somehow(value: dict[str, object], data: st.DataObject) -> None:
    """A cut or twisted text gives the fields of the schema, or NULL, in both ways of reading."""
    text = json.dumps(value)
    place = data.draw(st.integers(0, len(text)))
    twisted = text[:place] + data.draw(st.sampled_from(["", "{", "]", '"', "\\", ",", ":", "\x00", "e", "-"]))
    twisted += data.draw(st.sampled_from(["", text[place + 1 :]]))
    read = read_json(twisted, _SCHEMA)
    assert read is None or read.keys() == value.keys()
    with suppress(NoTreeError):
        assert read == tree_reader(_SCHEMA)(twisted)


def test_a_text_makes_no_more_values_than_it_accounts_for() -> None:
    """Thousands of empty objects of a wide STRUCT would take megabytes: they are NULL."""
    schema = SqlType.of(f"ARRAY<STRUCT<{', '.join(f'f{n}: INT' for n in range(150))}>>")
    few = read_json(f"[{','.join(['{}'] * 50)}]", schema)
    assert few is not None and len(few) == 50
    assert read_json(f"[{','.join(['{}'] * 50_000)}]", schema) is None


@pytest.mark.parametrize("levels", [1000, 1001, 100_000])
def test_deep_nesting_ends_like_jacksons(levels: int) -> None:
    """A thousand levels are read, more are broken, and none of them is a RecursionError."""
    read = read_json(f'{{"s": {"[" * (levels - 1)}{"]" * (levels - 1)}}}', _SCHEMA)
    assert (read["s"] is not None) == (levels == 1000)


def test_parts_are_compared_and_looked_up() -> None:
    """Fields, elements and keys of the read value stand in WHERE; the schema in another spelling is the same."""
    rows = [
        {"body": '{"u": {"id": 7}, "t": ["x"]}'},
        {"body": '{"u": {"id": "7"}}'},
        {"body": "broken"},
        {"body": None},
    ]

    def held(where: str) -> list[bool]:
        return [row.matches for row in evaluate(f"SELECT body FROM calls WHERE {where}", _STREAM, rows)]

    assert held("from_json(body, 'u STRUCT<id: INT>').u.id = 7") == [True, False, False, False]
    assert held("from_json(body, 'struct<u struct<id integer>>').U.ID = 7") == [True, False, False, False]
    assert held("array_contains(from_json(body, 't ARRAY<STRING>').t, 'x')") == [True, False, False, False]
    assert held("from_json(body, 't ARRAY<STRING>') IS NULL") == [False, False, False, True]
    assert held("from_json(body, 'MAP<STRING, STRING>')['u'] = '{\"id\":\"7\"}'") == [False, True, False, False]
