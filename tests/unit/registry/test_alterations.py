"""ALTER STREAM: changes, refusals, and the rights of owners."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.source_rights import SourceRights
from gateway.model.inventory import Inventory
from gateway.model.unit import Unit
from gateway.sources.alterations import alter_stream
from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.column import EventTime
from grouping.model.errors import InputError
from grouping.model.query import AlterStream
from grouping.model.table import View
from grouping.settings.settings import Settings
from grouping.statements.command import parse

_SCHEMA = json.dumps(
    {"type": "record", "name": "Q", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]}
)


class _Desk:
    """A catalog, and statements of a subscriber."""

    def __init__(self, *views: View, form: str = "json", framing: str = "single-object") -> None:
        schema = _SCHEMA if form == "avro" else None
        columns = (StreamColumn("a", "INT"),)
        stream = Stream("s_1", "Quotes", columns, "quotes", form, {"0": 0}, "", schema, framing, owner="ann")
        self.inventory = inventory = Inventory()
        self.working: Any = SimpleNamespace(unit=Unit(inventory), inventory=inventory)
        self.working.unit.sources.add_stream(stream)
        for view in views:
            self.working.unit.sources.add_view(view)
        self.catalog = Catalog(inventory.streams.values(), (), inventory.views.values())

    def alter(self, rest: str, who: str = "ann") -> tuple[Stream, bool]:
        statement = parse(f"ALTER STREAM quotes {rest}")
        assert isinstance(statement, AlterStream)
        return alter_stream(SourceRights(Settings()), self.working, self.catalog, statement, who)


def test_a_column_is_added_at_the_end() -> None:
    """Catalog and inventory have the changed stream; a query compiled before keeps its SELECT list."""
    desk = _Desk()
    before = compile_select("SELECT * FROM quotes", desk.catalog)
    stream, changed = desk.alter("ADD COLUMN b STRING FROM '$.data.b'")
    assert (True, ["a", "b"], 2) == (changed, [column.name for column in stream.columns], stream.revision)
    assert stream == desk.catalog.stream("quotes") == desk.inventory.streams[stream.stream_id]
    assert {stream.stream_id} == desk.working.unit.sources.redeclared
    after = compile_select("SELECT * FROM quotes", desk.catalog)
    assert (["a"], ["a", "b"]) == tuple([item.name for item in query.select.items] for query in (before, after))
    assert before.plan.group_id == after.plan.group_id


def test_options_change_until_they_are_as_wanted() -> None:
    """A statement that changes nothing makes no new declaration."""
    desk = _Desk()
    stream, changed = desk.alter("SET (lenient = true, timestamps = 'millis')")
    assert (True, True, "millis", 2) == (changed, stream.lenient, stream.timestamps, stream.revision)
    assert (stream, False) == desk.alter("SET (timestamps = 'millis')")
    assert (False, "millis") == (desk.alter("SET (lenient = false)")[0].lenient, stream.timestamps)


def test_the_idle_time_is_that_of_now() -> None:
    """A stream of any format can get another idle time; tasks of earlier declarations have it, too."""
    stream, changed = _Desk(form="avro").alter("SET (idle = '5 seconds')")
    assert (True, EventTime(idle_ms=5000), 2) == (changed, stream.declared_time, stream.revision)
    assert stream.declared_time == stream.declared_as(stream, 1).declared_time
    declared = msgspec.structs.replace(stream, declared_time=EventTime("at", 2000)).altered(idle_ms=1000)
    assert EventTime("at", 2000, 1000) == declared.declared_time


@pytest.mark.parametrize(
    ("form", "rest", "who", "code", "words"),
    [
        ("json", "ADD COLUMN b STRING", "bob", "not-allowed", "belongs to another subscriber"),
        ("json", "ADD COLUMN A STRING", "ann", "stream-mismatch", 'column "a" exists already'),
        ("avro", "ADD COLUMN c INT", "ann", "stream-mismatch", '"c"'),
        ("avro", "ADD COLUMN b INT", "ann", "stream-mismatch", '"b"'),
        ("avro", "ADD COLUMN b STRING FROM '$.b'", "ann", "stream-mismatch", "cannot have FROM"),
        ("avro", "SET (lenient = true)", "ann", "stream-mismatch", "is for JSON only"),
        ("avro", "SET (schemas = '{}')", "ann", "stream-mismatch", "is for Avro with framing = 'confluent' only"),
        ("json", "ADD COLUMN b INT FROM '^.b'", "ann", "stream-mismatch", "lies outside of the record"),
    ],
)
def test_a_refused_change_leaves_the_stream(form: str, rest: str, who: str, code: str, words: str) -> None:
    """The refusal says why."""
    desk = _Desk(form=form)
    with pytest.raises(InputError, match=words) as refused:
        desk.alter(rest, who)
    assert (code, 1) == (refused.value.code, desk.catalog.stream("quotes").revision)


def test_a_column_of_the_schema_is_added() -> None:
    """An Avro stream can have each field of its schema as a column."""
    assert ["a", "b"] == [column.name for column in _Desk(form="avro").alter("ADD COLUMN b STRING")[0].columns]


def test_schemas_are_given_and_changed() -> None:
    """A stream with one schema takes several, which each further column must fit, too."""
    desk = _Desk(form="avro", framing="confluent")
    first, second = (json.dumps({str(number): json.loads(_SCHEMA)}) for number in (1, 2))
    stream, _ = desk.alter(f"SET (schemas = '{first}')")
    assert (first, 2, False) == (stream.schemas, stream.revision, stream.has_one_schema_id)
    assert (stream, False) == desk.alter(f"SET (schemas = '{first}')")
    stream, _ = desk.alter(f"SET (schemas = '{second}')")
    assert (second, first) == (stream.schemas, stream.declared_as(stream, 2).schemas)
    assert msgspec.UNSET is stream.declared_as(stream, 1).schemas
    with pytest.raises(InputError, match='column "c" is in none of the schemas'):
        desk.alter("ADD COLUMN c INT")
    with pytest.raises(InputError, match='the option "schemas" cannot be used'):
        desk.alter("SET (schemas = '[]')")
    assert ["a", "b"] == [column.name for column in desk.alter("ADD COLUMN b STRING")[0].columns]


def test_kept_schemas_have_a_bounded_size() -> None:
    """Declarations with large schemas are forgotten earlier; the current one never is."""
    stream = _Desk(form="avro", framing="confluent").catalog.stream("quotes")
    for number in range(10):
        stream = stream.altered(schemas=str(number) * 300_000)
    assert ("9" * 300_000, 3) == (stream.schemas, _kept(stream))
    assert "6" * 300_000 == stream.declared_as(stream, 1).schemas


_CHANGES = st.one_of(
    st.sampled_from("bcdef").map(lambda name: ((StreamColumn(name, "INT"),), None, None)),
    st.tuples(
        st.just(()),
        st.none() | st.booleans(),
        st.none() | st.sampled_from(["millis", "micros"]),
        st.none() | st.sampled_from(["x", "y"]),
    ),
)


def _kept(stream: Stream) -> int:
    return 0 if stream.alterations is msgspec.UNSET else len(stream.alterations.earlier)


@given(st.lists(_CHANGES, max_size=130), st.data())
def test_each_declaration_comes_back(changes: list[Any], data: st.DataObject) -> None:
    """A task of any age goes by the declaration of its micro-batch, or by the oldest kept declaration."""
    states = [_Desk().catalog.stream("quotes")]
    for change in changes:
        states.append(states[-1].altered(*change))
    revision = data.draw(st.integers(1, len(states)))
    own, known = data.draw(st.sampled_from(states)), data.draw(st.sampled_from(states[revision - 1 :]))
    found = own.declared_as(known, revision)
    wanted = states[max(revision, known.revision - _kept(known)) - 1]
    options = [(each.columns, each.lenient, each.timestamps, each.schemas) for each in (wanted, found)]
    assert options[0] == options[1]
    assert revision == found.revision
    if wanted.revision == revision and len(states) <= 100:
        assert wanted == found


def test_views_stay_valid() -> None:
    """A column is refused where a view would have an ambiguous name; a view with an error of its own is no reason."""
    doubled = View("doubled", "SELECT *, a + 1 AS next FROM quotes", ("Quotes",), "", "ann")
    broken = View("broken", "SELECT nowhere FROM quotes", ("Quotes",), "", "ann")
    desk = _Desk(doubled, broken)
    with pytest.raises(InputError) as refused:
        desk.alter("ADD COLUMN next INT")
    assert "stream-in-use" == refused.value.code
    assert 'With a column "next", 1 view (doubled) would not be valid.' == refused.value.detail
    assert 2 == desk.alter("ADD COLUMN b INT")[0].revision
