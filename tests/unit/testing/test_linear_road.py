"""The queries of Linear Road as their page states them, over generated traffic, beside plain folds in Python."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import pytest

from gateway.testing import ACCEPTED_AT, Record, Stream, Table, digests, evaluate
from tests.pages import blocks

_STATEMENTS = {block.text.split()[2]: block for block in blocks("linear-road.md") if block.language == "sql"}
_ACCIDENT = 16
"""The segment in which two cars stop."""
_SLOW = 10
"""The segment with slow traffic."""
_MILE = 5280
_SEEN = 240
"""The second before which reports are copied into the tables."""


@dataclass(frozen=True)
class Report:
    """A position report of a car, at a second of the traffic."""

    second: int
    vid: int
    speed: int
    lane: int
    dir: int
    pos: int

    @property
    def seg(self) -> int:
        """The segment, a mile long."""
        return self.pos // _MILE

    @property
    def segment(self) -> tuple[int, int, int]:
        """Expressway, direction and segment."""
        return 0, self.dir, self.seg

    def row(self) -> dict[str, Any]:
        """Return the report as a row of both streams."""
        fields = {name: value for name, value in asdict(self).items() if name != "second"}
        return fields | {"xway": 0, "seg": self.seg}


def _traffic() -> list[Report]:
    """Return the reports of ten minutes by their times: a slow segment, an accident, cars that pass and that exit."""
    draw = random.Random(42)
    reports: list[Report] = []

    def drive(vid: int, first: int, pos: int, speeds: list[int], heading: int = 0, exits: bool = False) -> None:
        for number, speed in enumerate(speeds):
            lane = 4 if exits and number == len(speeds) - 1 else draw.randint(1, 3)
            reports.append(Report(first + 30 * number, vid, speed, lane, heading, pos))
            pos += (1 - 2 * heading) * speed * 44  # a mile an hour is 44 feet in 30 seconds

    for vid in range(60):  # half of them have left the slow segment after five minutes
        crawl = [draw.randint(0, 10)] + [draw.randint(1, 9) for _ in range(draw.choice([8, 18]))]
        drive(vid, draw.randrange(30), _SLOW * _MILE + draw.randint(0, 60), crawl)
    for vid in range(60, 90):
        speeds = [draw.randint(45, 75) for _ in range(draw.randint(8, 14))]
        start = draw.randint(3, 12) * _MILE
        drive(
            vid, draw.randrange(300), start, speeds, draw.randint(0, 1) if start > 8 * _MILE else 0, draw.random() < 0.7
        )
    drive(90, 4, _ACCIDENT * _MILE + 40, [50] * 2 + [0] * 8 + [30] * 6)
    drive(91, 9, _ACCIDENT * _MILE + 50, [0] * 5)  # silent after its fifth report
    drive(92, 300, (_ACCIDENT - 2) * _MILE, [45, 45], exits=True)
    drive(93, 300, (_ACCIDENT + 2) * _MILE, [45, 45], exits=True)
    return sorted(reports, key=lambda report: (report.second, report.vid))


_REPORTS = _traffic()
_EARLY = [report for report in _REPORTS if report.second < _SEEN]
_LATE = [report for report in _REPORTS if report.second >= _SEEN]


def _records(reports: list[Report], key: Callable[[Report], int]) -> list[Record]:
    """Return reports as records of two partitions."""
    return [
        Record(report.row(), time=ACCEPTED_AT + timedelta(seconds=report.second), partition=key(report) % 2)
        for report in reports
    ]


def _found(name: str, reports: list[Report], *tables: Table) -> list[tuple[Report, dict[str, Any]]]:
    """Return the results of a statement of the page, each with its report."""
    source = "segment_reports" if name == "seg_tolls" else "positions"
    records = _records(reports, (lambda each: each.seg) if name == "seg_tolls" else (lambda each: each.vid))
    rows = evaluate(_STATEMENTS[name].text, Stream(_STATEMENTS[source].text), records, tables=tables)
    assert not any(row.dead_letter for row in rows)
    return [(report, row.result) for report, row in zip(reports, rows, strict=True) if row.result]


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    """Return a table of the page with rows."""
    declaration = _STATEMENTS[name].text.removeprefix("CREATE TABLE ").partition("\n    WITH")[0]
    columns = [column.split()[0] for column in declaration.partition("(")[2].split(",")]
    return Table(declaration, [{column: row[column] for column in columns if column in row} for row in rows])


def _place(report: Report) -> dict[str, Any]:
    return dict(zip(("xway", "dir", "seg"), report.segment, strict=True))


def _tolls(reports: list[Report]) -> Iterator[tuple[Report, dict[str, Any]]]:
    """Yield the toll of the segment for each report from a congested one."""
    past = defaultdict(list)
    for report in reports:
        past[report.segment].append(report)
        speeds = [each.speed for each in past[report.segment] if each.second >= report.second - 300]
        cars = len({each.vid for each in past[report.segment] if each.second >= report.second - 29})
        if (lav := sum(speeds) / len(speeds)) < 40 and cars > 50:
            yield report, _place(report) | {"lav": lav, "cars": cars, "toll": 2.0 * (cars - 50) ** 2}


def _stops(reports: list[Report]) -> Iterator[tuple[str, Report, int]]:
    """Yield the statement that reports a car's stop or its end, with the report and the segment of the stop."""
    stands: dict[int, tuple[int, int, int]] = {}
    for report in reports:
        pos, seg, times = stands.get(report.vid, (-1, -1, 0))
        if report.pos != pos and times >= 4:
            yield "moved_on", report, seg
        times = times + 1 if report.pos == pos else 1
        stands[report.vid] = report.pos, report.seg, times
        if times == 4:
            yield "stopped", report, report.seg


def _blocked(stops: list[Report]) -> set[tuple[int, int, int]]:
    """Return the segment of each stopped car and the four segments before it."""
    return {(0, stop.dir, stop.seg - (1 - 2 * stop.dir) * back) for stop in stops for back in range(5)}


def test_tolls_of_congested_segments() -> None:
    """SegTolls is the fold over the last five minutes and the last 29 seconds of each segment."""
    expected = list(_tolls(_REPORTS))
    assert expected == _found("seg_tolls", _REPORTS)
    assert {(0, 0, _SLOW)} == {report.segment for report, _ in expected}
    assert len({row["toll"] for _, row in expected}) > 3


def test_mean_speeds_at_ticks() -> None:
    """SegAvgSpeed at each minute is the fold over the reports of the five minutes before it."""
    stream = Stream(_STATEMENTS["positions"].text)
    found = digests(_STATEMENTS["seg_speeds"].text, stream, _records(_REPORTS, lambda each: each.vid))
    assert len(found) > 8
    for minute, digest in enumerate(found, 1):
        past = defaultdict(list)
        for report in _REPORTS:
            if 60 * minute - 300 <= report.second < 60 * minute:
                past[report.segment].append(report)
        means = {key: sum(each.speed for each in some) / len(some) for key, some in sorted(past.items())}
        rows = [(*key, means[key], len({each.vid for each in past[key]})) for key in means if means[key] < 40]
        assert rows == [tuple(row.values()) for row in digest["rows"]]


@pytest.mark.parametrize("name", ["stopped", "moved_on"])
def test_cars_that_stop_and_move_on(name: str) -> None:
    """AccSeg begins with the fourth report of a car from one position, and ends with the first from another."""
    expected = [(report, report.vid, seg) for kind, report, seg in _stops(_REPORTS) if kind == name]
    assert expected == [(report, row["vid"], row["seg"]) for report, row in _found(name, _REPORTS)]
    stood = {"stopped": {90, 91}, "moved_on": {90}}[name]
    assert dict.fromkeys(stood, _ACCIDENT) == {vid: seg for _, vid, seg in expected}


def test_cars_that_are_gone() -> None:
    """A car is gone when its partition has come 32 seconds past its last report: 30, and the watermark's delay."""
    ends = {parity: max(each.second for each in _REPORTS if each.vid % 2 == parity) for parity in (0, 1)}
    last = {report.vid: report for report in _REPORTS}
    expected = {vid: _place(each) for vid, each in last.items() if each.second + 32 <= ends[vid % 2]}
    found = _found("gone", _REPORTS)
    assert expected == {row.pop("vid"): row for _, row in found}
    assert len(expected) == len(found) < len(last)
    assert 91 in expected


def test_tolls_and_credits_of_cars() -> None:
    """TollStr and NegTollStr are the folds over the late reports, with tables of results for the early reports."""
    tolls = {report.segment: row["toll"] for report, row in _tolls(_EARLY)}
    blocked = _blocked([report for kind, report, _ in _stops(_EARLY) if kind == "stopped"])
    entered: set[tuple[int, tuple[int, int, int]]] = set()
    expected, credits = [], []
    for report in _LATE:
        toll = 0.0 if report.segment in blocked else tolls.get(report.segment, 0.0)
        row = {"vid": report.vid, **_place(report)}
        if (report.vid, report.segment) not in entered:
            expected.append((report, row | {"toll": toll}))
        entered.add((report.vid, report.segment))
        if report.lane == 4 and report.segment in blocked:
            credits.append((report, row | {"toll": -5}))

    segment_tolls = _table("segment_tolls", [row for _, row in _found("seg_tolls", _EARLY)])
    stops = [report for report, _ in _found("stopped", _EARLY)]
    rows = [dict(zip(("xway", "dir", "seg"), key, strict=True)) for key in _blocked(stops)]
    segments = _table("accident_segments", rows)
    assert expected == _found("toll_str", _LATE, segment_tolls, segments)
    assert credits == _found("neg_toll_str", _LATE, segments)
    assert {0.0} < {row["toll"] for _, row in expected}
    exits = [report for report in _LATE if report.lane == 4]
    assert 0 < len(credits) < len(exits)
