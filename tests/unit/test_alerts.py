"""Alerts, dashboard and runbook speak of metrics that there are, and each alert is explained.

`tests/stack/queries/test_metrics.py` holds the queries against what the roles answer.
"""

from __future__ import annotations

import re

import yaml

from tests.monitoring import FOLDER, alerts, queries
from tests.pages import page

_OF_PROMETHEUS = {"up", "process_start_time_seconds", "process_resident_memory_bytes"}


def _listed() -> dict[str, set[str]]:
    """Return the labels of each metric, by the page's list, which is that of the code."""
    section = page("operating.md").partition("<!-- metrics -->")[2].partition("<!-- /metrics -->")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section, re.MULTILINE)
    return {name.replace("_bucket, …_sum, …_count", "_bucket"): {*re.findall(r"`(\w+)`", row)} for name, row in rows}


def test_no_series_is_of_a_cq() -> None:
    """Nor of a subscriber: a million of them would be a million series."""
    assert {"code", "group", "phase", "stream"} == set.union(*_listed().values())
    assert ["cq_group_cores"] == [name for name, labels in _listed().items() if "group" in labels]


def test_queries_are_about_metrics_that_there_are() -> None:
    """A renamed metric would silence its alert."""
    listed = _listed().keys()
    found = list(queries())
    assert len(found) > len(alerts()) > 5
    for query in found:
        named = {selector.metric for selector in query.selectors}
        assert named, query
        assert named <= listed | _OF_PROMETHEUS, query


def test_jobs_are_those_that_prometheus_scrapes() -> None:
    """A matcher of a job finds one."""
    scraped = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    jobs = [config["job_name"] for config in scraped]
    wanted = [
        selector.matchers["job"] for each in queries() for selector in each.selectors if "job" in selector.matchers
    ]
    assert len(wanted) > 2
    assert not [pattern for pattern in wanted if not any(re.fullmatch(pattern, job) for job in jobs)]


def test_each_alert_has_its_section_of_the_runbook() -> None:
    """In the same order, and none is left of an alert that is gone."""
    assert [alert["alert"] for alert in alerts()] == re.findall(r"^## (\w+)$", page("runbook.md"), re.MULTILINE)
