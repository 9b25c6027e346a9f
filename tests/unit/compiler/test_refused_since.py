"""A query whose text is refused by a later version goes on as it was stored."""

from __future__ import annotations

import msgspec
import pytest

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.expression import Call
from spark_jobs.engine.match.evaluate import match
from tests.unit.matching.matching import Events, entry, snapshot

_STREAM = Stream("s_1", "q", (StreamColumn("s", "STRING"),), "q", "json", {"0": 0}, "2026-11-21T00:00:00Z")
_STORED = """{"node":"call","op":"=","args":[{"node":"call","op":"element","args":[{"node":"call","op":"split","args":[
{"node":"column","name":"s","type":"STRING"},{"node":"value","value":"|","type":"STRING"}],
"type":"ARRAY<STRING>"},{"node":"value","value":1,"type":"INT"}],"type":"STRING"},
{"node":"slot","index":0}],"type":"BOOLEAN"}"""
"""Stored by a version that took '|' literally; in Spark it is a pattern, which matches the empty text."""
_WHOLE = """{"node":"call","op":">","args":[{"node":"call","op":"cast","args":[{"node":"call","op":"get_json_object",
"args":[{"node":"column","name":"s","type":"STRING"},{"node":"value","value":"$.a","type":"STRING"}],"type":"STRING"}],
"type":"BIGINT"},{"node":"slot","index":0}],"type":"BOOLEAN"}"""
"""Stored by a version that accepted get_json_object beside a whole number."""


def test_it_is_evaluated_as_before() -> None:
    """Its plan is read and evaluated; only a CREATE CQ with that text is refused."""
    with pytest.raises(InputError, match="the delimiter"):
        compile_select("SELECT s FROM q WHERE split(s, '|')[1] = 'b'", Catalog([_STREAM]))
    stored = msgspec.json.decode(_STORED, type=Call)
    tables = snapshot([stored], [entry(0, ("STRING",), ("b",))])

    assert match(tables, Events({"s": ("STRING", ["a|b", "b|a", "|b|", None, "ab"])})).event.tolist() == [0, 2]


def test_a_json_number_beside_a_whole_number_is_read_as_bigint() -> None:
    """The stored plan is that of the CAST which the refusal names, so both texts share a group."""
    with pytest.raises(InputError, match="is compared with a whole number"):
        compile_select("SELECT s FROM q WHERE get_json_object(s, '$.a') > 70", Catalog([_STREAM]))
    stored = msgspec.json.decode(_WHOLE, type=Call)
    tables = snapshot([stored], [entry(0, ("BIGINT",), (70,))])
    cast = compile_select("SELECT s FROM q WHERE CAST(get_json_object(s, '$.a') AS BIGINT) > 70", Catalog([_STREAM]))

    assert (stored,) == cast.plan.conjuncts
    assert match(tables, Events({"s": ("STRING", ['{"a": 99.5}', '{"a": 71}', '{"a": 70}'])})).event.tolist() == [1]
