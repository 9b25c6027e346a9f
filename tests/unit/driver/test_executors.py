"""A driver whose cluster has taken all executors ends; a driver still waiting for its first does not."""

from __future__ import annotations

import pytest

from grouping.model.errors import OperationalError
from spark_jobs.runtime.driver.executors import GONE_SECONDS, Executors


class _Cluster:
    count = 0
    now = 0.0

    def __init__(self) -> None:
        self.executors = Executors(lambda: self.count, lambda: self.now)

    def look(self, seconds: float, *, awaited: bool = True) -> None:
        self.now += seconds
        self.executors.check(awaited=awaited)


def test_an_evaluator_without_executors_ends() -> None:
    """Some were there, and for half a minute none has been."""
    cluster = _Cluster()
    cluster.count = 2
    cluster.look(1)
    cluster.count = 0
    cluster.look(1)
    cluster.look(GONE_SECONDS - 1)
    with pytest.raises(OperationalError, match="taken all executors away"):
        cluster.look(1)


def test_one_that_comes_back_in_time_is_enough() -> None:
    """The time counts from the last executor's end."""
    cluster = _Cluster()
    for _ in range(3):
        cluster.count = 1
        cluster.look(1)
        cluster.count = 0
        cluster.look(1)
        cluster.look(GONE_SECONDS - 1)


def test_nobody_awaits_anything() -> None:
    """Without events a cluster may take its executors back; the time begins with the first event."""
    cluster = _Cluster()
    cluster.count = 1
    cluster.look(1)
    cluster.count = 0
    cluster.look(10 * GONE_SECONDS, awaited=False)
    cluster.look(1)
    cluster.look(GONE_SECONDS - 1)


def test_the_first_executor_may_take_long() -> None:
    """A cluster may have no room yet; a local master never has executors."""
    cluster = _Cluster()
    cluster.look(1)
    cluster.look(10 * GONE_SECONDS)
