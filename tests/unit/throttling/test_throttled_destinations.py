"""Destinations with AT MOST: their ids, their entries in the constant table, and the clause in statements."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations

import msgspec
import pytest

from gateway.commands.digest_columns import with_digest_columns
from gateway.model.membership import Membership
from gateway.model.records import Destination
from gateway.model.stored_form import pack_membership, unpack_membership
from gateway.model.table_entries import rows_of, table_entries
from gateway.model.trigger_spec import CHANGE_BASED, TriggerSpec
from grouping.compiler.compiler import compile_select
from grouping.model.errors import InputError
from grouping.model.group import DestinationIds
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.model.query import CreateCq, DigestClause
from grouping.model.trigger import ChangeBased, Throttle
from grouping.statements.command import parse
from tests.quotes import catalog

_MINUTE = timedelta(minutes=1)
_THROTTLES = [
    None,
    Throttle(1, _MINUTE),
    Throttle(2, _MINUTE),
    Throttle(1, 2 * _MINUTE),
    Throttle(1, _MINUTE, ("symbol",)),
    Throttle(1, _MINUTE, ("symbol", "price")),
]


def _create(clauses: str) -> CreateCq:
    statement = parse(f"CREATE CQ cheap AS SELECT symbol, price FROM quotes WHERE price < 5 {clauses}")
    assert isinstance(statement, CreateCq)
    return statement


def _checked(clauses: str) -> CreateCq:
    statement = _create(clauses)
    return with_digest_columns(statement, compile_select(statement.select, catalog()), 100)


def test_ids_differ_by_each_part_of_the_clause() -> None:
    """The clause is the destination's, as the SELECT list is."""
    ids = [
        DestinationIds(GroupId("g_1"), SelectId("s1"), ChangeBased(throttle), None, DigestClause(), None).of("[]")
        for throttle in _THROTTLES
    ]
    assert all(one != other for one, other in combinations(ids, 2))


@pytest.mark.parametrize("throttle", _THROTTLES)
def test_a_trigger_keeps_the_clause(throttle: Throttle | None) -> None:
    """From the statement to the stored destination and back."""
    spec = TriggerSpec.of(ChangeBased(throttle), None, 5)
    assert ChangeBased(throttle) == spec.trigger
    assert (spec == CHANGE_BASED) is (throttle is None)
    assert not spec.timed
    ids = StreamId("s_1"), GroupId("g_1"), SelectId("s1")
    destination = Destination(DestinationId("d_" + "0f" * 12), *ids, '["BIGINT",1]', "shared", 3, spec)
    stored = unpack_membership(destination.destination_id, pack_membership(Membership(destination, 0)))
    assert destination == stored.destination
    assert destination == msgspec.json.decode(msgspec.json.encode(destination), type=Destination)


def test_the_evaluator_writes_to_the_throttled_log() -> None:
    """The entries of a destination say where its results are written; its own place stays the reader's."""
    ids = StreamId("s_1"), GroupId("g_1"), SelectId("s1")
    name = DestinationId("d_" + "0f" * 12)
    for mode, partition in (("shared", 3), ("dedicated", 0)):
        spec = TriggerSpec.of(ChangeBased(_THROTTLES[1]), None, 5)
        membership = Membership(Destination(name, *ids, '["BIGINT",1]', mode, partition, spec), 7, {",": 1})
        (entry,) = rows_of(membership.destination, table_entries(membership, None))
        assert "throttled" == entry.block.mode
        assert 0 <= entry.partition < 16
        assert (mode, partition) == (membership.destination.mode, membership.destination.partition)


def test_by_names_columns_of_the_select_list() -> None:
    """In any case, each once; the names are kept as the SELECT list spells them."""
    statement = _checked("AT MOST 3 EVERY '1 hour' BY SYMBOL, price, symbol DO PUBLISH SHARED")
    assert ChangeBased(Throttle(3, timedelta(hours=1), ("symbol", "price"))) == statement.trigger
    with pytest.raises(InputError) as caught:
        _checked("AT MOST 3 EVERY '1 hour' BY volume")
    assert "unknown-column" == caught.value.code
    assert "symbol, price" in caught.value.detail


@pytest.mark.parametrize(
    ("clauses", "code", "part"),
    [
        ("AT MOST 0 EVERY '1 hour'", "syntax-error", "from 1 to"),
        ("AT MOST -1 EVERY '1 hour'", "syntax-error", "from 1 to"),
        ("AT MOST EVERY '1 hour'", "syntax-error", "the number of results"),
        ("AT MOST 1 BY symbol", "syntax-error", "EVERY"),
        ("AT MOST 1 EVERY '5m'", "bad-interval", "'5 minutes'"),
        ("AT MOST 1 EVERY '1 hour' BY", "syntax-error", "a column of the SELECT list"),
        ("AT MOST 1 EVERY '1 hour' EVERY '1 day'", "unsupported-query", "digest"),
        ("EVERY '1 day' AT MOST 1 EVERY '1 hour'", "unsupported-query", "digest"),
        ("AT MOST 1 EVERY '1 hour' EVERY CRON '0 8 * * *'", "unsupported-query", "digest"),
        ("AT MOST 1 EVERY '1 hour' DO PUBLISH VIRTUAL", "unsupported-query", "VIRTUAL"),
        ("DO PUBLISH AT MOST 1 EVERY '1 hour'", "syntax-error", "after the query"),
        ("START '2026-01-01T00:00:00Z' AT MOST 1 EVERY '1 hour'", "syntax-error", "after the query"),
    ],
)
def test_errors_say_what_is_wrong(clauses: str, code: str, part: str) -> None:
    """Each error names the clause's form, or what does instead."""
    with pytest.raises(InputError) as caught:
        _create(clauses)
    error = caught.value
    assert code == error.code
    assert part in f"{error.message} {error.detail} {error.hint}"


def test_words_of_the_clause_are_no_reserved_words() -> None:
    """Columns and streams may be called `at` and `most`."""
    assert ChangeBased() == _create("AND at.most > 1").trigger
    statement = parse("CREATE CQ a AS SELECT at most, price FROM at WHERE most > 1")
    assert isinstance(statement, CreateCq)
    assert "SELECT at most, price FROM at WHERE most > 1" == statement.select


def test_text_before_the_clause_is_the_query() -> None:
    """EMIT belongs to the query, and AT MOST follows it."""
    statement = _create("EMIT ON ENTER BY symbol AT MOST 1 EVERY '1 hour' EXPIRE AFTER '1 day'")
    assert statement.select.endswith("EMIT ON ENTER BY symbol")
    assert timedelta(days=1) == statement.expire
