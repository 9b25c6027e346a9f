"""The right to write to Redis: only for the holder of the lease, and only to a Redis that keeps its keys."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from gateway.start import refuse_eviction
from gateway.state.command_ids import CommandIds
from gateway.state.timer_state import TimerState
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.store.connection import connect
from grouping.store.fence import LeaseLost
from grouping.store.lease import Lease
from tests.ground import Ground
from tests.stack.digests.desk import NOW
from tests.stack.state.redis_copy import RedisCopy


def _stream(number: int) -> Stream:
    return Stream(f"s_{number}", f"quotes{number}", (), "quotes", "json", {"0": 0}, "")


def test_a_gateway_that_was_asleep_writes_nothing(ground: Ground) -> None:
    """Once another one has taken the lapsed lease, none of the first one's writes is carried out, not even in part."""
    settings = ground.settings
    first, second = Lease(settings, "gateway"), Lease(settings, "gateway")
    assert first.acquire() and not second.acquire()
    working = WorkingCopy(settings, first)
    working.open()
    working.unit.sources.add_stream(_stream(1))
    working.commit(b"1")
    working.connection.redis.delete(working.connection.keys.lease("gateway"))  # as it lapses
    working.commit(b"2")  # nobody else has written
    assert second.acquire() and not first.acquire()
    working.unit.sources.add_stream(_stream(2))
    before = RedisCopy.of(settings)
    writes: list[Callable[[], object]] = [
        lambda: working.commit(b"3"),
        lambda: CommandIds(settings, working).settle({b"a command id": (0, 1)}, {"position": "1"}, NOW),
        lambda: TimerState(working).note_position(7),
        lambda: TimerState(working).arm("s_1", {"d_1": 5}),
        working.wipe,
    ]
    for write in writes:
        with pytest.raises(LeaseLost):
            write()
    assert before == RedisCopy.of(settings)
    other = WorkingCopy(settings, second)
    other.open()
    other.unit.sources.add_stream(_stream(3))
    other.commit()
    assert {"s_1", "s_3"} == set(other.inventory.streams)


def test_a_redis_that_lost_the_lease_is_written_to_again(ground: Ground) -> None:
    """In a Redis that was wiped nothing is written before the lease is taken anew."""
    lease = Lease(ground.settings, "gateway")
    assert lease.acquire()
    working = WorkingCopy(ground.settings, lease)
    working.open()
    for name in working.connection.redis.keys(working.connection.keys.everything):
        working.connection.redis.delete(name)
    with pytest.raises(LeaseLost):
        working.commit(b"1")
    assert lease.acquire()
    working.commit(b"2")
    assert b"2" == working.connection.redis.get(working.connection.keys.journal)


def test_a_fault_in_a_transaction_is_raised(ground: Ground) -> None:
    """A command refused by Redis within a transaction is an error, and the connection goes on."""
    lease = Lease(ground.settings, "gateway")
    assert lease.acquire()
    working = WorkingCopy(ground.settings, lease)
    working.connection.redis.set("text", "x")
    for faulty in (("HSET", "text", "a", "b"), ("NO SUCH COMMAND",)):
        with pytest.raises(OperationalError), working.connection.writing() as pipeline:
            pipeline.execute_command(*faulty)
    assert b"x" == working.connection.redis.get("text")


def test_a_redis_that_drops_keys_is_refused(ground: Ground) -> None:
    """The gateway refuses a Redis that evicts keys when its memory is full; without a limit there is no eviction."""
    redis, stop = connect(ground.settings), threading.Event()
    redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        refuse_eviction(ground.settings, stop)
        redis.config_set("maxmemory", "1gb")
        with pytest.raises(OperationalError, match="allkeys-lru"):
            refuse_eviction(ground.settings, stop)
        redis.config_set("maxmemory-policy", "noeviction")
        refuse_eviction(ground.settings, stop)
    finally:
        redis.config_set("maxmemory-policy", "noeviction")
        redis.config_set("maxmemory", "0")
