"""The cookbook: each alert is compiled and evaluated over the events below it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.testing import Stream, Table, digests, evaluate
from tests.pages import Block, blocks


@dataclass
class _Sources:
    """Streams and tables that the page declares, by name."""

    streams: dict[str, Stream] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)


def _read() -> tuple[_Sources, dict[str, tuple[str, dict[str, Any]]]]:
    """Return the sources, and by name each CREATE CQ with the JSON blocks below it."""
    sources = _Sources()
    alerts: dict[str, tuple[str, dict[str, Any]]] = {}
    statement = ""
    for block in blocks("cookbook.md"):
        if block.language == "sql":
            statement = block.text
            _declare(sources, alerts, block)
        elif block.title == "rows":
            declaration = statement.removeprefix("CREATE TABLE ").partition("\n    WITH")[0]
            table = Table(declaration, json.loads(block.text))
            sources.tables[declaration.split()[0]] = table
        else:
            alerts[statement.split()[2]][1][block.title] = json.loads(block.text)
    return sources, alerts


def _declare(sources: _Sources, alerts: dict[str, tuple[str, dict[str, Any]]], block: Block) -> None:
    kind, name = block.text.split()[1:3]
    if kind == "STREAM":
        sources.streams[name] = Stream(block.text)
    elif kind == "CQ":
        alerts[name] = (block.text, {})


_SOURCES, _ALERTS = _read()


def test_there_are_25_alerts() -> None:
    """No alert is left out by the way in which the page is read."""
    assert len(_ALERTS) == 25


@pytest.mark.parametrize("name", _ALERTS)
def test_an_alert_has_the_results_that_the_page_shows(name: str) -> None:
    """A CQ without EVERY has a result or none for each event; a CQ with EVERY has the rows of its first digest."""
    text, shown = _ALERTS[name]
    found = re.search(r"FROM (\w+)", text)
    assert found is not None
    stream = _SOURCES.streams[found[1]]
    tables = [table for table_name, table in _SOURCES.tables.items() if re.search(rf"JOIN {table_name}\b", text)]
    if " EVERY " in text:
        results = digests(text, stream, shown["events"], tables=tables)[0]["rows"]
    else:
        results = [row.result for row in evaluate(text, stream, shown["events"], tables=tables)]
    assert shown["results"] == results
    assert any(results)
