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


@pytest.mark.parametrize(("number", "calls"), [(7, 1), (150_000, 3)])
def test_small_counts_are_saved_at_once_and_large_ones_seldom(settings: Settings, number: int, calls: int) -> None:
    """A megabyte for each call is written on average; when all is asked for, all is written."""
    working = WorkingCopy(settings)
    working.open()
    working.add_stream(Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, ""))
    working.commit({})
    counts, store = MatchCounts(working), TableStore(settings)
    store.count_matches("s_1", np.array([number]), np.array([3]), 1000)
    counts.step()
    for _ in range(calls):
        assert not working.redis.exists(working.key("match-counts", "s_1"))
        counts.save()
    store.count_matches("s_1", np.array([number]), np.array([2]), 2000)
    counts.step()
    counts.save(all_of_it=True)
    again = MatchCounts(working)
    again.open()
    assert (5, 2000) == again.of("s_1", number)
