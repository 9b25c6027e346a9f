"""Nested values of results are the same whether they come as the decoder reads them or from Arrow arrays."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.sql_type import SqlType
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.results.shown_values import shown_as_decoded, shown_values
from tests.benchmarks.material.market import as_source

_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "STRING": st.text(max_size=3),
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
    "DATE": st.dates().map(str),
}
_ENCODE = msgspec.json.Encoder().encode


@st.composite
def _types(draw: st.DrawFn, depth: int = 3) -> tuple[str, st.SearchStrategy[Any]]:
    """Return a type and its values as JSON has them: NULLs, fields that are missing or in any order."""
    kind = draw(st.sampled_from(["scalar", "ARRAY", "MAP", "STRUCT"])) if depth else "scalar"
    if kind == "scalar":
        name = draw(st.sampled_from(sorted(_SCALARS)))
        return name, st.none() | _SCALARS[name]
    if kind != "STRUCT":
        of, values = draw(_types(depth - 1))
        if kind == "ARRAY":
            return f"ARRAY<{of}>", st.none() | st.lists(values, max_size=3)
        return f"MAP<STRING, {of}>", st.none() | st.dictionaries(st.text(max_size=2), values, max_size=3)
    parts = [draw(_types(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    fields = {f"f{number}": values for number, (_, values) in enumerate(parts)}
    some = st.fixed_dictionaries({}, optional=fields).flatmap(
        lambda made: st.permutations(list(made.items())).map(dict)
    )
    return f"STRUCT<{', '.join(f'f{number}: {of}' for number, (of, _) in enumerate(parts))}>", st.none() | some


@given(st.data())
def test_both_ways_show_the_same(data: st.DataObject) -> None:
    """Whatever a nested column holds."""
    text, values = data.draw(_types().filter(lambda made: "<" in made[0]))
    rows = data.draw(st.lists(values, min_size=1, max_size=4))
    column = StreamColumn("v", text)
    stream = Stream("s_1", "calls", (column,), "calls", "json", {"0": 0}, "2026-01-01T00:00:00Z")
    events, letters = decode(as_source([json.dumps({"v": row}).encode() for row in rows]), stream, Settings())
    assert letters is None
    show = shown_as_decoded(column.type)
    assert show is not None
    assert [_ENCODE(show(value)) for value in events.values("v")] == [
        _ENCODE(value) for value in shown_values(events.column("v"), column.type)
    ]


@pytest.mark.parametrize("text", ["ARRAY<TIMESTAMP>", "STRUCT<a: DECIMAL(4,2)>", "MAP<STRING, VARIANT>"])
def test_what_is_written_otherwise_comes_from_arrow(text: str) -> None:
    """Times, decimals, BINARY and VARIANT have forms of their own in results."""
    assert shown_as_decoded(SqlType.of(text)) is None
