"""The parts of PromQL that tests read from alert rules and dashboard: metrics, matchers and labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tests.pages import ROOT

__all__ = ["FOLDER", "Query", "Selector", "alerts", "queries"]

FOLDER = ROOT / "docker" / "monitoring"
_SELECTOR = re.compile(r"\b(?P<metric>(?:cq|process)_\w+|up\b)(?:\{(?P<matchers>[^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
_GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
_BY = re.compile(r"\bby\s*\(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric that a query asks for."""

    metric: str
    matchers: dict[str, str]
    """By label, the value or the pattern of values."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and the text that shows its outcome."""

    expression: str
    text: str

    @property
    def selectors(self) -> list[Selector]:
        """The metrics that are asked for."""
        bare = _GROUPING.sub("", self.expression)
        return [
            Selector(found["metric"], dict(_MATCHER.findall(found["matchers"] or "")))
            for found in _SELECTOR.finditer(bare)
        ]

    @property
    def grouped_by(self) -> set[str]:
        """The labels by which its series are put together or joined."""
        return _labels(_GROUPING.findall(self.expression))

    @property
    def left(self) -> set[str] | None:
        """The labels of the expression's result, None without an aggregation: the labels of its metrics."""
        found = _BY.findall(self.expression)
        return _labels(found) if found else None

    @property
    def shown(self) -> set[str]:
        """The labels that its text shows."""
        return set(re.findall(r"\$labels\.(\w+)", self.text)) | set(re.findall(r"\{\{(\w+)\}\}", self.text))


def _labels(lists: list[str]) -> set[str]:
    return {label.strip() for each in lists for label in each.split(",")}


def alerts() -> list[dict[str, Any]]:
    """Return the alert rules, in order."""
    loaded = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def queries() -> Iterator[Query]:
    """Yield the queries of the alerts, then the dashboard's."""
    for alert in alerts():
        yield Query(alert["expr"], alert["annotations"]["summary"])
    dashboard = json.loads((FOLDER / "dashboards" / "cq.json").read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield Query(target["expr"], target["legendFormat"])
