"""Ids and stored forms of queries over columns of all types: the content of data folders, byte for byte."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InternalError
from grouping.model.expression import (
    Call,
    Column,
    Computed,
    Reference,
    TableColumn,
    Variable,
    lookup_key,
    read_reference,
    stored_reference,
)
from grouping.model.group import DestinationIds, canonical_constants, owner_prefix, parse_constants, pending_id
from grouping.model.ids import GroupId, SelectId
from grouping.model.query import DigestClause
from grouping.model.table import Table
from grouping.model.trigger import ChangeBased
from grouping.plan.group import GroupPlan, SelectList
from grouping.store.constant_table import Block, Entry, Segment

_FOLDER = Path(__file__).parents[2] / "cases" / "stored"
_RECORDED: dict[str, Any] = json.loads((_FOLDER / "ids.json").read_text())
"""Written by commit a75c1e8, before there were `SqlType`s. The file never changes, since ids in data folders do not."""
_STREAM = msgspec.json.decode(_RECORDED["stream"], type=Stream)
_DERIVED: dict[str, Any] = json.loads((_FOLDER / "derived.json").read_text())
"""Joins, aggregates, lambdas and computed keys; written by commit dfe303ee, before plans had nodes."""
_STATES: dict[str, Any] = json.loads((_FOLDER / "states.json").read_text())
"""Queries with state, lists and NULL over the stream of `derived.json`; written by commit 018c019a."""
_CATALOG = Catalog(
    [msgspec.json.decode(_DERIVED["stream"], type=Stream)],
    [msgspec.json.decode(table, type=Table) for table in _DERIVED["tables"]],
)


@pytest.mark.parametrize("recorded", _RECORDED["queries"], ids=lambda recorded: recorded["query"])
def test_ids_and_stored_forms_stay(recorded: dict[str, str]) -> None:
    """A query has the ids, and is stored in the bytes, that it had in the version of the record."""
    query = compile_select(recorded["query"], Catalog([_STREAM]))
    constants = canonical_constants(query.row)
    group, select = query.plan.group_id, query.select.select_id
    destination = DestinationIds(group, select, ChangeBased(), None, DigestClause(), None).of(constants)

    assert recorded["group"] == group
    assert recorded["select"] == select
    assert recorded["constants"] == constants
    assert recorded["destination"] == destination
    assert recorded["pending"] == pending_id(group, constants, select)
    assert recorded["plan"] == msgspec.json.encode(query.plan).decode()
    assert recorded["items"] == msgspec.json.encode(query.select).decode()


@pytest.mark.parametrize("recorded", _DERIVED["queries"], ids=lambda recorded: recorded["query"])
def test_plans_of_several_nodes_stay(recorded: dict[str, str]) -> None:
    """A query with joins, aggregates or lambdas has the recorded ids and bytes, and these bytes read as its plan."""
    query = compile_select(recorded["query"], _CATALOG)

    assert recorded["group"] == query.plan.group_id
    assert recorded["select"] == query.select.select_id
    assert recorded["plan"] == msgspec.json.encode(query.plan).decode()
    assert recorded["items"] == msgspec.json.encode(query.select).decode()
    assert msgspec.json.decode(recorded["plan"], type=GroupPlan) == query.plan
    assert msgspec.json.decode(recorded["items"], type=SelectList) == query.select


@pytest.mark.parametrize("recorded", _STATES["queries"], ids=lambda recorded: recorded["query"])
def test_ids_of_queries_with_state_stay(recorded: dict[str, str]) -> None:
    """A query with edges, frames or intervals has the recorded ids, so that it meets its state in a data folder."""
    query = compile_select(recorded["query"], _CATALOG)
    found = {"group": query.plan.group_id, "select": query.select.select_id, "computation": query.plan.computation_id}
    assert recorded == {"query": recorded["query"], **found}


@given(st.text(max_size=20), st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_ids_of_a_subscribers_own(constants: str, one: str, other: str) -> None:
    """They begin with the subscriber's prefix, have the form of all ids, and are nobody else's."""

    def ids(owner: str) -> str:
        family = DestinationIds(GroupId("g_1"), SelectId("s1"), ChangeBased(), None, DigestClause(), None, owner)
        return family.of(constants)

    assert ids(one).startswith(owner_prefix(one))
    assert re.fullmatch("d_[0-9a-f]{24}", ids(one))
    assert ids(one)[12:] != ids("")[12:]
    assert (one == other) == (ids(one) == ids(other)) == (owner_prefix(one) == owner_prefix(other))


@pytest.mark.parametrize("recorded", _RECORDED["queries"], ids=lambda recorded: recorded["query"])
def test_what_is_stored_is_read(recorded: dict[str, str]) -> None:
    """Data stored by the recording version reads as the present result of compiling the query."""
    query = compile_select(recorded["query"], Catalog([_STREAM]))
    block = Block(recorded["group"], query.row.type_texts, recorded["select"], "shared")
    segment = Segment.of([], [Entry(block, recorded["destination"], query.row, 1, 2)])
    old = base64.b64decode(recorded["segment"])

    assert msgspec.json.decode(recorded["plan"], type=GroupPlan) == query.plan
    assert msgspec.json.decode(recorded["items"], type=SelectList) == query.select
    assert parse_constants(recorded["constants"]) == query.row
    assert Segment.decode(old)[0].added == segment.added
    assert _heads(old) == _heads(segment.encode())


_TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1)
"""Names and expressions hold no control characters."""


@given(
    st.one_of(
        _TEXTS,
        st.builds(TableColumn, _TEXTS, _TEXTS),
        st.builds(Computed, _TEXTS),
        st.builds(Variable, st.integers(0, 40)),
    )
)
def test_a_stored_reference_is_read_as_it_was(reference: Reference) -> None:
    """Each kind of column is read from its stored text as the same kind."""
    assert reference == read_reference(stored_reference(reference))
    assert Column.of(reference, "STRING") == msgspec.json.decode(
        msgspec.json.encode(Column.of(reference, "STRING")), type=Column
    )


@pytest.mark.parametrize(
    ("reference", "stored"),
    [
        ("price", "price"),
        (TableColumn("profiles", "industry"), "profiles\x1findustry"),
        (Computed("sum(price)"), "\x1esum(price)"),
        (Variable(1), "\x1c1"),
    ],
)
def test_references_are_stored_as_ever(reference: Reference, stored: str) -> None:
    """The texts of references are part of ids, so no version changes the texts."""
    assert stored == stored_reference(reference)


def test_a_key_of_an_index_is_not_stored() -> None:
    """An index's own column has no stored text."""
    key = lookup_key(Call("lower", (Column("s", "STRING"),), "STRING")).reference
    with pytest.raises(InternalError):
        stored_reference(key)


def test_a_stream_is_stored_as_it_was() -> None:
    """A stream keeps its fields and the texts of its columns' types; later versions only add fields."""
    stored = json.loads(msgspec.json.encode(_STREAM))
    assert json.loads(_RECORDED["stream"]).items() <= stored.items()


def _heads(segment: bytes) -> list[object]:
    """Return a segment's content without the columns, whose bytes are Arrow's."""
    removed, blocks, more = msgspec.msgpack.decode(segment)
    return [removed, *(block[:-1] for block in blocks), more]
