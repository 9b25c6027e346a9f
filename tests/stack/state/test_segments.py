"""The constant tables in a real Redis: in pieces, merged, merged midway, pinned and lost, they are whole or refused."""

from __future__ import annotations

import secrets

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from gateway.kafka import Record
from gateway.model.records import Cq, Destination
from gateway.model.unit import CqKey
from gateway.state.catalog_records import cq_record, definition_record, source_record
from gateway.state.recovery import catalog_replay
from gateway.state.recovery.audit import Audit
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.model.expression import Column
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.statements.cq_text import CqText
from grouping.store import segment_log
from grouping.store.connection import StoreLost, StoreUnavailable
from grouping.store.table_store import TableStore
from tests.ground import Ground

_STREAM = Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "")
_SELECT = SelectList("s00", (SelectItem("a", Column("a", "BIGINT")),))

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sets(st.integers(0, 30), min_size=1, max_size=6)),
        st.tuples(st.sampled_from(["upkeep", "upkeep", "merge", "die", "pin", "unpin", "read"]), st.just(set())),
    ),
    min_size=20,
    max_size=60,
)


class _Tables:
    """The tables of a stream under a prefix of their own, and their expected content by version."""

    def __init__(self, servers: Ground) -> None:
        prefix = f"sg{secrets.token_hex(4)}."
        self.settings = servers.settings.model_copy(update={"prefix": prefix})
        self.working = WorkingCopy(self.settings)
        self.working.open()
        self.working.confirm(1, self.working.connection.redis.info("server")["run_id"])
        self.working.unit.sources.add_stream(_STREAM)
        self.working.commit()
        self.store = TableStore(self.settings)
        self._upkeep = TableUpkeep(self.settings, self.working)
        self.live: set[int] = set()
        self.pinned: dict[int, tuple[int, set[int]]] = {}
        """By micro-batch: its version, and its expected rows."""
        self._batches = 0

    def change(self, numbers: set[int]) -> None:
        """Create the CQs of the given numbers that do not live, and drop the others."""
        for number in numbers:
            key, destination = CqKey.of("alice", f"q{number}"), _destination(number)
            self.working.load([key], [destination])
            if number in self.live:
                self.working.unit.remove(key)
            else:
                cq = Cq(key.name, CqText.cut(""), destination.destination_id, 0, 0)
                self.working.unit.put(key, cq, destination, GroupPlan(destination.group_id, "s_1", "", ()), _SELECT)
        self.working.commit()
        self.live = self.live ^ numbers

    def upkeep(self, _: set[int]) -> None:
        """Let the gateway look after the tables once."""
        self._upkeep.step()

    def die(self, _: set[int]) -> None:
        """Let another gateway begin where this one stops, with a merge under way perhaps."""
        self._upkeep.forget()
        self._upkeep = TableUpkeep(self.settings, self.working)

    def pin(self, _: set[int]) -> None:
        """Begin a micro-batch."""
        self._batches += 1
        self.pinned[self._batches] = (self.store.pin("s_1", self._batches).version.version, self.live)

    def unpin(self, _: set[int]) -> None:
        """End the oldest micro-batch."""
        if self.pinned:
            batch = min(self.pinned)
            self.store.committed("s_1", batch, {"0": 0})
            del self.pinned[batch]

    def read(self, _: set[int]) -> None:
        """Check the rows that a worker would load, at every version of a micro-batch."""
        for version, rows in (*self.pinned.values(), (self.working.inventory.versions["s_1"], self.live)):
            assert rows == self.rows(version)

    def rows(self, version: int) -> set[int]:
        """Return the numbers of the rows of a version."""
        pieces = self.store.changes("s_1", 1, 0, version)
        assert pieces is not None
        parts = (table for piece in pieces for table in piece.added.values())
        found = [int.from_bytes(row) for table in parts for row in table["destination"].to_pylist()]
        assert len(found) == len(set(found))
        return set(found)

    def merge(self, _: set[int]) -> None:
        """Let the gateway look after the tables until nothing is left to merge."""
        self._upkeep.step()
        while self._upkeep.merging:
            self._upkeep.step()

    def fields(self) -> list[bytes]:
        """Return the names of the segments in Redis."""
        return sorted(self.working.connection.redis.hkeys(self.working.connection.keys.segments("s_1")))


def _destination(number: int) -> Destination:
    name = f"d_{number:024x}"
    return Destination(name, "s_1", f"g_{number % 3}", "s00", f'["BIGINT",{number}]', "shared", number % 4)


@pytest.fixture
def tables(servers: Ground, monkeypatch: pytest.MonkeyPatch) -> _Tables:
    """Tables in pieces of a row or two."""
    monkeypatch.setattr(segment_log, "PIECE_BYTES", 2_500)
    return _Tables(servers)


@pytest.fixture
def made(tables: _Tables) -> _Tables:
    """Tables of twelve versions that no micro-batch has."""
    for number in range(12):
        tables.change({number, number + 12})
    return tables


@examples(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_whatever_happens_every_version_in_use_has_its_rows(
    servers: Ground, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, set[int]]]
) -> None:
    """Commits, merges, gateways that die amid merges, pins and reads: rows equal a set in memory."""
    monkeypatch.setattr(segment_log, "PIECE_BYTES", 2_500)
    tables = _Tables(servers)
    for step, numbers in steps:
        getattr(tables, step)(numbers)
        tables.read(set())


def test_a_large_segment_is_in_pieces_and_goes_with_them(made: _Tables) -> None:
    """A merge writes further pieces first and removes all fields of the merged segments."""
    made.merge(set())
    pieces = made.fields()
    assert b"0-12" in pieces
    assert 2 < len(pieces)
    assert all(field.startswith(b"0-12") for field in pieces)
    assert made.live == made.rows(12)


def test_a_merge_that_ends_midway_leaves_what_was_there(made: _Tables) -> None:
    """Pieces without their segment are not read, and go when the next gateway looks."""
    before = made.fields()
    made.working.connection.redis.hset(
        made.working.connection.keys.segments("s_1"), mapping={"0-12/1": b"x", "0-12/2": b"x"}
    )
    assert made.live == made.rows(12)
    made.merge(set())
    assert before != made.fields()
    assert made.live == made.rows(12)


@pytest.mark.parametrize("lost", ["all", "first", "last"])
def test_tables_without_some_segment_are_refused(made: _Tables, lost: str) -> None:
    """A lost segment is not an empty table: a worker waits, and the gateway fills all anew."""
    key, fields = made.working.connection.keys.segments("s_1"), made.fields()
    gone = {"all": fields, "first": [b"0-1"], "last": [b"11-12"]}[lost]
    made.working.connection.redis.hdel(key, *gone)
    with pytest.raises(StoreUnavailable, match="not complete"):
        made.rows(12)
    with pytest.raises(StoreLost, match="not complete"):
        made.upkeep(set())


@pytest.mark.parametrize("key", ["version", "streams"])
def test_streams_that_are_lost_are_not_taken_for_dropped(made: _Tables, key: str) -> None:
    """Without its version, or the stream itself, no micro-batch begins, and no query is ended."""
    made.working.connection.redis.delete(f"{made.working.connection.keys.start}:{key}")
    with pytest.raises(StoreUnavailable):
        made.store.pin("s_1", 1)
    with pytest.raises(StoreUnavailable):
        made.store.streams()


def test_a_stream_that_is_dropped_has_no_rows(made: _Tables) -> None:
    """A micro-batch of a stream that was dropped meanwhile ends, and leaves no pin."""
    made.change(made.live)
    made.working.unit.sources.remove_stream("s_1")
    made.working.commit()
    assert (1, 0) == made.store.pin("s_1", 5).version
    assert set() == made.rows(0)
    assert [] == made.store.streams()
    assert not made.working.connection.redis.exists(made.working.connection.keys.pins("s_1"))


def test_tables_filled_anew_while_they_are_read_are_refused(made: _Tables) -> None:
    """Pieces of two epochs are never taken for one table."""
    pieces = made.store.changes("s_1", 1, 0, 12)
    assert pieces is not None
    next(pieces)
    made.working.confirm(2, made.working.connection.redis.info("server")["run_id"])
    with pytest.raises(StoreUnavailable, match="filled again while they were read"):
        list(pieces)


def test_a_segment_replaced_while_it_is_read_is_refused(made: _Tables) -> None:
    """A reader that a merge overtakes reads again, and never takes a part for the whole."""
    pieces = made.store.changes("s_1", 1, 0, 12)
    assert pieces is not None
    next(pieces)
    made.merge(set())
    with pytest.raises(OperationalError, match="gone"):
        list(pieces)
    assert made.live == made.rows(12)


@pytest.mark.parametrize(
    "lost", ["streams", "version", "destinations", "parts:s_1", "groups:s_1", "selects:s_1", "cqs:alice", "numbers"]
)
def test_the_gateway_notices_a_key_that_is_lost(made: _Tables, lost: str) -> None:
    """Whichever hash is evicted or deleted, sizes reveal the loss, even among a single subscriber's CQs."""
    audit = Audit(made.working)
    for _ in range(3):
        audit.step()
    assert audit.whole()
    made.working.connection.redis.delete(f"{made.working.connection.keys.start}:{lost}")
    if lost == "numbers":
        made.working.open()
    with pytest.raises(StoreLost, match="lost"):
        audit.step()
    assert audit.whole() == (lost == "cqs:alice")


def test_an_audit_follows_what_comes_and_goes(made: _Tables) -> None:
    """Whatever is created and dropped, in one unit or several, nothing is taken for lost."""
    audit = Audit(made.working)
    for numbers in ({1, 2, 3}, {1, 2}, {1}, made.live ^ {1}):
        made.change(numbers)
        audit.step()
    made.change(made.live)
    audit.step()
    assert 0 == made.working.connection.redis.exists(made.working.connection.keys.subscribers)
    assert audit.whole()


@pytest.mark.parametrize("part", ["groups", "selects", "destinations"])
def test_a_command_that_misses_what_a_cq_needs_has_redis_filled_anew(made: _Tables, part: str) -> None:
    """A missing part of a live CQ in Redis is reported neither as our fault nor as an unknown CQ."""
    name = part if part == "destinations" else f"{part}:s_1"
    made.working.connection.redis.delete(f"{made.working.connection.keys.start}:{name}")
    again = WorkingCopy(made.settings)
    again.open()
    with pytest.raises(StoreLost):
        again.load([CqKey.of("alice", "q1")])
        again.plan("s_1", "g_1")
        again.select("s_1", "s00")


@pytest.mark.parametrize("at_once", [5_000, 2])
def test_a_compacted_catalog_gives_all_cqs_back(servers: Ground, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """GRANT writes a stream's record again, so compaction leaves it after the records of the stream's CQs."""
    monkeypatch.setattr(catalog_replay, "REPLAYED_AT_ONCE", at_once)
    tables, key, destination = _Tables(servers), CqKey.of("alice", "q1"), _destination(1)
    tables.working.wipe()
    tables.working.open()
    cq = Cq(key.name, CqText.cut(""), destination.destination_id, 0, 0)
    plan = GroupPlan(destination.group_id, "s_1", "", ())
    records = [
        definition_record("s_1", destination.group_id, plan),
        definition_record("s_1", destination.select_id, _SELECT),
        cq_record(key, cq, destination),
        source_record(_STREAM),
    ]
    read = [Record("catalog", 0, offset, 0, name, value, ()) for offset, (name, value) in enumerate(records)]
    replay = catalog_replay.CatalogReplay(tables.working)
    replay.begin(read)
    assert replay.run(read)
    tables.working.confirm(1, tables.working.connection.redis.info("server")["run_id"])
    assert tables.rows(tables.working.inventory.versions["s_1"]) == {1}
    tables.working.load([key], [destination])
    tables.working.unit.remove(key)
    tables.working.commit()
    assert tables.rows(tables.working.inventory.versions["s_1"]) == set()
