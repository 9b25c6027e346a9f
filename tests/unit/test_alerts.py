"""Alerts, dashboard and runbook speak of metrics that there are, and each alert is explained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.pages import ROOT, page

_FOLDER = ROOT / "docker" / "monitoring"
_OF_PROMETHEUS = {"up", "process_start_time_seconds", "process_resident_memory_bytes"}


def _alerts() -> list[dict[str, Any]]:
    loaded = yaml.safe_load((_FOLDER / "alerts.yml").read_text("utf-8"))
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def _queries() -> Iterator[str]:
    for alert in _alerts():
        yield alert["expr"]
    dashboard = json.loads((_FOLDER / "dashboards" / "cq.json").read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def test_queries_are_about_metrics_that_there_are() -> None:
    """A renamed metric would silence its alert; the page's list is that of the code."""
    section = page("operating.md").partition("<!-- metrics -->")[2].partition("<!-- /metrics -->")[0]
    listed = {
        name.replace("_bucket, …_sum, …_count", "_bucket") for name in re.findall(r"^\| `([^`]+)`", section, re.M)
    }
    queries = list(_queries())
    assert len(queries) > len(_alerts()) > 5
    for query in queries:
        bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(by|on) \([^)]*\)", "", query)
        named = set(re.findall(r"\b(?:cq|process)_\w+|\bup\b", bare))
        assert named, query
        assert named <= listed | _OF_PROMETHEUS, query


def test_each_alert_has_its_section_of_the_runbook() -> None:
    """In the same order, and none is left of an alert that is gone."""
    assert [alert["alert"] for alert in _alerts()] == re.findall(r"^## (\w+)$", page("runbook.md"), re.MULTILINE)
