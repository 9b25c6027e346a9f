"""`cq top`: rates and costs are made of two samples, and the costliest groups come first."""

from __future__ import annotations

import pytest
from rich.console import Console

from gateway.top.activity import Activity, Watch
from gateway.top.sample import GroupSample, StreamSample, TopSample
from gateway.top.table import tables
from gateway.topics.lag import Lag
from grouping.access.access_path import AccessPath
from grouping.access.stream_statistics import GroupLoad


def _group(name: str, micros: float, matches: float) -> GroupSample:
    load = GroupLoad(AccessPath("hash", (0,)), 10, 100.0, 150.0, matches * 100, micros * 100)
    return GroupSample(name, f"FROM quotes WHERE {name} = ?", 5, load)


def _sample(at: float, evaluated: int, end: int, groups: list[GroupSample]) -> TopSample:
    stream = StreamSample("quotes", 7, 12, {"0": end, "1": 40}, {"0": evaluated, "1": 40}, groups)
    subscribers = {f"s{number:02}": number for number in range(1, 13)}
    return TopSample(at, {"s_1": stream}, subscribers)


def test_rates_lag_and_costs() -> None:
    """Events are counted between samples; a group costs its time for an event at that rate."""
    groups = [_group(f"g{number:02}", number, 0.5) for number in range(12)]
    watch = Watch()
    first = watch.take(_sample(10.0, 100, 100, groups))
    assert [(0.0, 0, 0.0)] == [(one.events_per_second, one.behind, one.seconds_behind) for one in first.streams]
    watch.take(_sample(11.0, 100, 150, groups))
    [stream] = (activity := watch.take(_sample(13.0, 120, 300, groups))).streams
    assert (10.0, 60.0, 180, 2.0) == (
        stream.events_per_second, stream.matches_per_second, stream.behind, stream.seconds_behind,
    )  # fmt: skip
    assert stream.cores == pytest.approx(10 * sum(range(12)) / 1e6)
    assert [f"g{number:02}" for number in range(11, 1, -1)] == [one.group for one in activity.groups]
    assert activity.groups[0].share == pytest.approx(11 / 66)
    assert [f"s{number:02}" for number in range(12, 2, -1)] == [one.subscriber for one in activity.subscribers]
    wide, narrow = _shown(activity, 160), _shown(activity, 80)
    assert "FROM quotes WHERE g11 = ?" in wide
    begins = [line.split("quotes")[0].split() for line in wide.splitlines() if "WHERE" in line]
    assert len(begins) == 10
    shown = narrow.splitlines()
    for begin in begins:
        assert any(line.split()[: len(begin)] == begin and line.endswith("…") for line in shown), narrow


def _shown(activity: Activity, width: int) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as shown:
        console.print(tables(activity))
    return shown.get()


def test_a_stream_of_the_lane_is_shown() -> None:
    """The table says of each stream whether it shares its query."""
    watch = Watch()
    shared = _sample(10.0, 100, 100, []).streams["s_1"]._replace(name="orders", lane=True)
    sample = _sample(10.0, 100, 100, [])
    activity = watch.take(sample._replace(streams={**sample.streams, "s_2": shared}))
    assert {"quotes": False, "orders": True} == {each.stream: each.lane for each in activity.streams}
    rows = {line.split()[0]: line.split() for line in _shown(activity, 160).splitlines() if line.strip()}
    assert "lane" in rows["orders"] and "own" in rows["quotes"]


def test_a_lag_of_days_takes_little_room() -> None:
    """Ends that move while nothing is evaluated are thinned out; the oldest one stays."""
    lag = Lag()
    for second in range(100_000):
        seconds = lag.seconds({"0": second + 1}, {"0": 0}, float(second))
    assert seconds == 99_999.0
    assert lag.seconds({"0": 100_000}, {"0": 50_000}, 100_000.0) == pytest.approx(50_000, rel=0.1)
    assert lag.seconds({"0": 100_000}, {"0": 100_000}, 100_001.0) == 0.0
