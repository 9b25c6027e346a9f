"""The pages of record types: each alert finds in the sample records what its page shows."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import Record, Stream, Table, digests, evaluate
from tests.pages import DOCS, blocks

_PAGES = sorted(f"records/{path.name}" for path in (DOCS / "records").glob("*.md") if path.name != "index.md")
_SAMPLES = Path(__file__).parent / "records"
_TYPES = 12
_FEWEST_ALERTS = 7
"""The smallest number of alerts of a page."""


@dataclass
class _RecordPage:
    """The statements of a page and the values below them."""

    shown: list[Any] = field(default_factory=list)
    """The records that the page shows."""
    streams: dict[str, Stream] = field(default_factory=dict)
    """By the name of the stream, and of a view over it."""
    views: dict[str, str] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    alerts: dict[str, tuple[str, list[Any]]] = field(default_factory=dict)
    """By name, each CREATE CQ and its results."""


def _read(name: str) -> _RecordPage:
    page, statement = _RecordPage(), ""
    for block in blocks(name):
        if block.title == "record":
            page.shown.append(json.loads(block.text))
        elif block.title == "rows":
            declaration = statement.removeprefix("CREATE TABLE ").partition("\n    WITH")[0]
            page.tables.append(Table(declaration, json.loads(block.text)))
        elif block.title == "results":
            page.alerts[statement.split()[2]] = statement, json.loads(block.text)
        else:
            statement = block.text
            kind, declared = statement.split()[1:3]
            if kind == "STREAM":
                page.streams[declared] = Stream(statement)
            elif kind == "VIEW":
                page.views[declared] = statement.partition(" AS\n")[2]
                page.streams[declared] = page.streams[_source(page.views[declared])]
    return page


def _source(statement: str) -> str:
    found = re.search(r"\bFROM (\w+)\s", statement)
    assert found is not None, statement
    return found[1]


def _sample(name: str) -> list[bytes | Record | None]:
    """Return the sample records of a stream; a file `….records.jsonl` has keys and headers; null is no value."""
    if (plain := _SAMPLES / f"{name}.jsonl").exists():
        return [None if each == b"null" else each for each in plain.read_bytes().splitlines()]
    lines = map(json.loads, (_SAMPLES / f"{name}.records.jsonl").read_bytes().splitlines())
    return [Record(line["value"], line["key"], headers=line["headers"]) for line in lines]


_READ = {name: _read(name) for name in _PAGES}


@pytest.mark.parametrize("name", _PAGES)
def test_a_page_has_seven_alerts_and_shows_records_of_the_sample(name: str) -> None:
    """No statement is left out, every record shown is a sample record, and no sample record is a dead letter."""
    page = _READ[name]
    assert len(page.alerts) >= _FEWEST_ALERTS
    assert sum(block.text.startswith("CREATE CQ") for block in blocks(name)) == len(page.alerts)
    values: list[Any] = []
    for stream in {id(each): each for each in page.streams.values()}.values():
        sample = _sample(stream.name)
        values += [each.value if isinstance(each, Record) else json.loads(each or b"null") for each in sample]
        rows = evaluate(f"SELECT _offset FROM {stream.name}", stream, sample)
        assert not [row.why for row in rows if row.dead_letter]
    assert page.shown
    assert all(record in values for record in page.shown)


def test_there_are_80_alerts_over_twelve_types_of_records() -> None:
    """No page and no alert is left out by the way in which the pages are read."""
    assert len(_PAGES) == _TYPES
    assert sum(len(page.alerts) for page in _READ.values()) >= 80


@pytest.mark.parametrize(("page", "name"), [(page, name) for page in _PAGES for name in _READ[page].alerts])
def test_an_alert_has_the_results_that_its_page_shows(page: str, name: str) -> None:
    """A CQ without EVERY has the results of all sample records, a CQ with EVERY the rows of its first digest."""
    declared = _READ[page]
    text, shown = declared.alerts[name]
    stream = declared.streams[_source(text)]
    sample = _sample(stream.name)
    if " EVERY " in text:
        results = digests(text, stream, sample, tables=declared.tables, views=declared.views)[0]["rows"]
    else:
        rows = evaluate(text, stream, sample, tables=declared.tables, views=declared.views)
        results = [result for row in rows for result in row.results]
    assert shown == results
    assert results
