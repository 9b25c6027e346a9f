"""The load of a stream decides whether the stream shares the lane."""

from __future__ import annotations

import pytest

from spark_jobs.runtime.streams.load import StreamLoad


def _load(rate: float, seconds: float, load: StreamLoad | None = None, begun: float = 0.0) -> StreamLoad:
    """Return a load after so many seconds of so many events a second, looked at three times a second."""
    load = load or StreamLoad()
    for step in range(int(seconds * 3) + 1):
        load.add(begun + step / 3, int(rate * step / 3))
    return load


@pytest.mark.parametrize(("rate", "busy"), [(0, False), (500, False), (5_000, True)])
def test_a_stream_of_many_events_is_busy(rate: float, busy: bool) -> None:
    """By its events a second, or by the events that wait."""
    assert busy == _load(rate, 5).is_busy(0)
    assert _load(rate, 5).is_busy(100_000)


def test_a_short_burst_is_not_busy() -> None:
    """A single look does not tell a rate."""
    load = StreamLoad()
    load.add(0.0, 0)
    load.add(0.3, 900)
    assert not load.is_busy(0)


def test_a_stream_is_quiet_after_some_time() -> None:
    """Few events for fifteen seconds, none of which waits."""
    load = _load(10, 10)
    assert not load.is_quiet(0)
    load = _load(10, 20)
    assert load.is_quiet(0)
    assert not load.is_quiet(None) and not load.is_quiet(10_000)


def test_a_long_evaluation_is_busy_where_others_wait() -> None:
    """A stream that takes most of a core holds up the others of the lane, if there are any."""
    load = StreamLoad()
    for step in range(15):
        load.add(step / 3, step, 0.3)
    assert load.is_busy(0)
    assert not load.is_busy(0, alone=True)
