"""Counts of matches: summed up from what workers push, and saved where the next gateway finds them."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from pydantic import SecretStr

from gateway.match_counts import MatchCounts
from gateway.working_copy import WorkingCopy
from grouping.catalog import Stream
from grouping.redis_store import TableStore
from grouping.settings import RedisSettings, Settings
from tests.stack.server import Stack


@pytest.fixture
def settings(stack: Stack) -> Settings:
    """A prefix of one's own on the stack's Redis."""
    return Settings(prefix=f"mc{secrets.token_hex(4)}.", redis=RedisSettings(url=SecretStr(stack.redis_url)))


def test_a_block_is_saved_at_a_time_and_all_when_asked(settings: Settings) -> None:
    """Each call writes one block of those that changed, in turns; the next gateway goes on with what was saved."""
    working = WorkingCopy(settings)
    working.open()
    working.add_stream(Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, ""))
    working.commit({})
    counts, store = MatchCounts(working), TableStore(settings)
    key = working.key("match-totals", "s_1")
    store.count_matches("s_1", np.array([7, 70_000, 150_000]), np.array([3, 1, 2]), 1000)
    counts.step()
    saved = []
    for _ in range(4):
        counts.save()
        saved.append(sorted(working.redis.hkeys(key)))
        store.count_matches("s_1", np.array([7]), np.array([1]), 2000)
        counts.step()
    assert [[b"0"], [b"0", b"1"], [b"0", b"1", b"2"], [b"0", b"1", b"2"]] == saved
    counts.save(all_of_it=True)
    again = MatchCounts(working)
    again.open()
    assert [(7, 2000), (1, 1000), (2, 1000)] == [again.of("s_1", number) for number in (7, 70_000, 150_000)]
    again.forget([("s_1", 70_000)])
    again.save(all_of_it=True)
    third = MatchCounts(working)
    third.open()
    assert (0, None) == third.of("s_1", 70_000)
