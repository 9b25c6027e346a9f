"""Counts of matches: summed up from the workers' pushes, and saved where the next gateway finds them."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pydantic import SecretStr

from gateway.state.match_counts import MatchCounts
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.settings.settings import RedisSettings, Settings
from grouping.store.match_tally import MatchTally
from grouping.store.notes import Output, PartitionWatermark
from grouping.store.table_store import TableStore
from grouping.store.task_counts import TaskCount
from tests.stack.server import Stack


@pytest.fixture
def settings(stack: Stack) -> Settings:
    """A prefix of one's own on the stack's Redis."""
    return Settings(prefix=f"mc{secrets.token_hex(4)}.", redis=RedisSettings(url=SecretStr(stack.redis_url)))


def _opened(settings: Settings) -> WorkingCopy:
    """Return a working copy that has the stream."""
    working = WorkingCopy(settings)
    working.open()
    working.unit.sources.add_stream(Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, ""))
    working.commit()
    return working


def test_a_block_is_saved_at_a_time_and_all_when_asked(settings: Settings) -> None:
    """Each call writes a changed block, in turns; the next gateway goes on from the saved counts."""
    working = _opened(settings)
    counts, store = MatchCounts(working), TableStore(settings)
    key = working.connection.keys.match_totals("s_1")
    store.counts.add([TaskCount("s_1", MatchTally.of(np.array([7, 70_000, 150_000, 7, 7, 150_000]), 1000), 0, "q/0")])
    counts.step()
    saved = []
    for batch in range(1, 5):
        counts.save()
        saved.append(sorted(working.connection.redis.hkeys(key)))
        store.counts.add([TaskCount("s_1", MatchTally.of(np.array([7]), 2000), 0, f"q/{batch}")])
        counts.step()
    assert [[b"0"], [b"0", b"1"], [b"0", b"1", b"2"], [b"0", b"1", b"2"]] == saved
    counts.save(all_blocks=True)
    again = MatchCounts(working)
    again.open()
    assert [(7, 2000), (1, 1000), (2, 1000)] == [again.of("s_1", number) for number in (7, 70_000, 150_000)]
    again.forget([("s_1", 70_000)])
    again.save(all_blocks=True)
    third = MatchCounts(working)
    third.open()
    assert (0, None) == third.of("s_1", 70_000)


def test_what_waits_for_the_gateway_is_bounded(settings: Settings) -> None:
    """While no gateway runs a thousand tasks leave few values, with each destination's own count and time."""
    working, store = _opened(settings), TableStore(settings)
    for task in range(1000):
        tally = MatchTally.of(np.array([task % 10, task % 10, 50, 200_000 + task]), task)
        store.counts.add([TaskCount("s_1", tally, 0, f"q/{task}")])
    assert 70 >= working.connection.redis.llen(working.connection.keys.matches("s_1"))
    counts = MatchCounts(working)
    counts.step()
    assert [(200, 993), (1000, 999), (1, 7)] == [counts.of("s_1", number) for number in (3, 50, 200_007)]


def test_workers_and_the_gateway_take_what_waits_at_once(settings: Settings) -> None:
    """Tasks sum up values that other tasks, or the gateway, take meanwhile; each match is counted once."""
    working, tally = _opened(settings), MatchTally.of(np.array([7]), 1000)

    def count(worker: int) -> None:
        store = TableStore(settings)
        for task in range(300):
            store.counts.add([TaskCount("s_1", tally, worker, f"q/{task}")])

    counts = MatchCounts(working)
    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(count, worker) for worker in range(4)]
        while not all(each.done() for each in tasks):
            counts.step()
    for each in tasks:
        each.result()
    counts.step()
    assert (1200, 1000) == counts.of("s_1", 7)


def test_a_replayed_batch_counts_once(settings: Settings) -> None:
    """A task that has counted does not count again when its batch is replayed; others of the batch do."""
    working, store = _opened(settings), TableStore(settings)
    tally = MatchTally.of(np.array([7]), 1000)
    for batch, partition in (("q/1", 0), ("q/1", 0), ("q/1", 1), ("q/2", 0), ("q/2", 1), ("q/2", 0), ("new/1", 0)):
        output = Output(late=2, future=1)
        store.counts.add([TaskCount("s_1", tally, partition, batch, output, PartitionWatermark(partition, 5))])
    counted, watermarks = working.evaluator.event_times(["s_1"])["s_1"]
    assert (10, 5) == (counted.late, counted.future)
    assert {0: PartitionWatermark(0, 5), 1: PartitionWatermark(1, 5)} == watermarks
    assert (5, 1000) == MatchCounts(working).of("s_1", 7)
