"""The working copy on a real Redis: whatever units come, the constant tables hold the needs of the live CQs."""

from __future__ import annotations

import json
import random
import secrets
import time

import msgspec
import pytest
from pydantic import SecretStr

from gateway.model.membership import union
from gateway.model.records import Cq, Destination
from gateway.model.trigger_spec import TriggerSpec
from gateway.model.unit import CqKey
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.working_copy import WorkingCopy
from grouping.digests.cursor import Window
from grouping.model.catalog import Stream
from grouping.model.expression import Column
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.settings.settings import RedisSettings, Settings
from grouping.statements.cq_text import CqText
from grouping.store.table_store import TableStore
from tests.stack.server import Stack

_STREAM = Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "")
_EPOCH = 1
_SELECT = SelectList("s00", (SelectItem("a", Column("a", "BIGINT")),))


@pytest.fixture
def settings(stack: Stack) -> Settings:
    """A prefix of one's own on the stack's Redis."""
    return Settings(prefix=f"wc{secrets.token_hex(4)}.", redis=RedisSettings(url=SecretStr(stack.redis_url)))


def _opened(settings: Settings) -> WorkingCopy:
    """Return a working copy that has the stream."""
    working = WorkingCopy(settings)
    working.open()
    working.confirm(_EPOCH, working.connection.redis.info("server")["run_id"])
    working.unit.sources.add_stream(_STREAM)
    working.commit()
    return working


def _destination(number: int) -> Destination:
    name = f"d_{number:024x}"
    return Destination(name, "s_1", f"g_{number % 3}", "s00", f'["BIGINT",{number}]', "shared", number % 4)


def _table(store: TableStore, version: int) -> dict[str, list[Window]]:
    """Return the tables that Spark would load: destinations and the record times that they want."""
    found: dict[str, list[Window]] = {}
    for piece in store.changes("s_1", _EPOCH, 0, version) or []:
        for row in (row for table in piece.added.values() for row in table.to_pylist()):
            found.setdefault("d_" + row["destination"].hex(), []).append((row["start_ms"], row["expire_ms"]))
    return {name: union(windows) for name, windows in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_tables_follow_the_live_cqs(settings: Settings, seed: int) -> None:
    """After any unit, merged or not, a destination is in the table for the times that its unpaused members see."""
    rng = random.Random(seed)
    working = _opened(settings)
    upkeep, store = TableUpkeep(settings, working), TableStore(settings)
    live: dict[CqKey, Cq] = {}
    for _ in range(60):
        for _ in range(rng.randint(1, 5)):
            _change(working, live, rng)
        working.commit()
        if rng.random() < 0.5:
            upkeep.step()
        wanted: dict[str, list[Window]] = {}
        for cq in live.values():
            if not cq.paused:
                wanted.setdefault(cq.destination_id, []).append(cq.window)
        expected = {name: union(windows) for name, windows in wanted.items()}
        assert expected == _table(store, working.inventory.versions["s_1"])
    again = WorkingCopy(settings)
    again.open()
    assert working.inventory.dependencies == again.inventory.dependencies
    assert working.inventory.live_cqs["s_1"] == again.inventory.live_cqs["s_1"] == len(live)
    assert working.inventory.versions == again.inventory.versions


def _change(working: WorkingCopy, live: dict[CqKey, Cq], rng: random.Random) -> None:
    key = CqKey.of("alice", f"Q{rng.randint(0, 9)}")
    destination = _destination(rng.randint(0, 5))
    working.load([key], [destination])
    if key in live and rng.random() < 0.4:
        working.unit.remove(key)
        del live[key]
        return
    start = rng.choice([None, 10, 20])
    expire = rng.choice([None, 30, 40])
    cq = Cq(key.name, CqText.cut(""), destination.destination_id, 0, 0, start, expire, rng.random() < 0.2)
    working.unit.put(key, cq, destination, GroupPlan(destination.group_id, "s_1", "", ()), _SELECT)
    live[key] = cq


@pytest.mark.parametrize("seed", range(3))
def test_timer_based_cqs_are_listed_in_order(settings: Settings, seed: int) -> None:
    """SHOW TIMERS lists the timer-based CQs, CQs of the present unit included, behind any name."""
    rng = random.Random(seed)
    working = _opened(settings)
    live: dict[str, bool] = {}
    for _ in range(30):
        for _ in range(rng.randint(1, 30)):
            key, timed = CqKey.of("alice", f"q{rng.randint(0, 2000)}é"), rng.random() < 0.6
            plain = _destination(rng.randint(0, 5))
            wanted = msgspec.structs.replace(
                plain, destination_id=_id(timed, plain), trigger=TriggerSpec(60_000) if timed else TriggerSpec()
            )
            working.load([key], [wanted])
            if key.name in live and rng.random() < 0.4:
                working.unit.remove(key)
                del live[key.name]
            else:
                cq = Cq(key.name, CqText.cut(""), wanted.destination_id, 0, 0)
                working.unit.put(key, cq, wanted, GroupPlan(wanted.group_id, "s_1", "", ()), _SELECT)
                live[key.name] = timed
        after = rng.choice(["", "q5", "q1é"])
        expected = sorted(name for name, timed in live.items() if timed and name > after)
        assert expected == list(working.timed_names("alice", after))
        working.commit()
        assert expected == list(working.timed_names("alice", after))


def _id(timed: bool, plain: Destination) -> str:
    return f"d_{'f' * 8}{plain.destination_id[10:]}" if timed else plain.destination_id


def test_a_leaving_destination_stays_until_it_is_retired(settings: Settings) -> None:
    """With offsets to wait for, the last member's leaving keeps the entry, bounded; retiring it takes it away."""
    working = _opened(settings)
    key, destination = CqKey.of("alice", "a"), _destination(1)
    plan = GroupPlan(destination.group_id, "s_1", "", ())
    working.load([key], [destination])
    working.unit.put(key, Cq("a", CqText.cut(""), destination.destination_id, 0, 0), destination, plan, _SELECT)
    working.commit()
    working.load([key])
    assert destination == working.unit.remove(key, until=(7,))
    working.commit()
    store = TableStore(settings)
    pieces = store.changes("s_1", _EPOCH, 0, 2) or []
    assert [(7,)] == [block.until for piece in pieces for block in piece.added]
    working.load([key], [destination])
    assert 3 == working.unit.retire(destination, (7,))
    working.commit()
    parts = (destination.group_id, destination.select_id)
    # A batch of the versions before still asks for them.
    assert [3, 3] == [working.connection.redis.zscore(working.connection.keys.unused("s_1"), part) for part in parts]
    assert {} == _table(store, 3)


def test_segments_are_merged_and_a_stale_merge_is_let_go(settings: Settings) -> None:
    """Many segments become few, with the same rows; a merge of tables that are gone changes nothing."""
    working = _opened(settings)
    for number in range(20):
        _join(working, number)
    segments = working.connection.keys.segments("s_1")
    upkeep, store = TableUpkeep(settings, working), TableStore(settings)
    before = _table(store, working.inventory.versions["s_1"])
    assert 20 == len(before)
    deadline = time.monotonic() + 120
    while working.connection.redis.hlen(segments) > 8 and time.monotonic() < deadline:
        upkeep.step()
    assert working.connection.redis.hlen(segments) <= 8
    assert before == _table(store, working.inventory.versions["s_1"])
    for number in range(20, 40):
        _join(working, number)
    upkeep.step()  # begins a merge
    before = _table(store, working.inventory.versions["s_1"])
    upkeep.forget()
    while upkeep.merging:
        upkeep.step()
    assert before == _table(store, working.inventory.versions["s_1"])


def test_what_came_since_workers_looked_is_merged_apart(settings: Settings) -> None:
    """With commands alone for a while few segments are left too, and workers still load only new rows."""
    working = _opened(settings)
    for number in range(20):
        _join(working, number)
    loaded = working.inventory.versions["s_1"]
    working.connection.redis.set(
        working.connection.keys.committed("s_1"), json.dumps({"offsets": {}, "pinned": f"1:{loaded}"})
    )
    for number in range(20, 300):
        _join(working, number)
    upkeep, store, version = TableUpkeep(settings, working), TableStore(settings), working.inventory.versions["s_1"]
    deadline = time.monotonic() + 120
    while working.connection.redis.hlen(working.connection.keys.segments("s_1")) > 16 and time.monotonic() < deadline:
        upkeep.step()
    delta = store.changes("s_1", _EPOCH, loaded, version)
    assert delta is not None
    assert 280 == sum(table.num_rows for piece in delta for table in piece.added.values())
    assert 300 == len(_table(store, version))


def _join(working: WorkingCopy, number: int) -> None:
    key, destination = CqKey.of("alice", f"q{number}"), _destination(number)
    working.load([key], [destination])
    cq = Cq(key.name, CqText.cut(""), destination.destination_id, 0, 0)
    working.unit.put(key, cq, destination, GroupPlan(destination.group_id, "s_1", "", ()), _SELECT)
    working.commit()
