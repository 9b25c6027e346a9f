"""Alerts, dashboard and runbook name existing metrics, and each alert is explained.

`tests/stack/queries/test_metrics.py` holds the queries against the roles' answers.
"""

from __future__ import annotations

import re

from prometheus_client import REGISTRY

from gateway import metrics
from grouping.model.errors import CODES
from tests.monitoring import alerts, queries
from tests.pages import page

_OF_PROMETHEUS = {"up", "process_start_time_seconds", "process_resident_memory_bytes"}


def _listed() -> dict[str, set[str]]:
    """Return the labels of each metric from the page's list, which equals the code's."""
    section = page("monitoring.md").partition("<!-- metrics -->")[2].partition("<!-- /metrics -->")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section, re.MULTILINE)
    return {name.replace("_bucket, …_sum, …_count", "_bucket"): {*re.findall(r"`(\w+)`", row)} for name, row in rows}


def test_no_series_is_of_a_cq() -> None:
    """Nor of a subscriber: a million of them would be a million series."""
    assert {"code", "column", "computation", "group", "phase", "role", "state", "stream"} == set.union(
        *_listed().values()
    )
    assert ["cq_group_cores"] == [name for name, labels in _listed().items() if "group" in labels]
    assert ["cq_misfits"] == [name for name, labels in _listed().items() if "column" in labels]


def test_queries_are_about_metrics_that_there_are() -> None:
    """A renamed metric would silence its alert."""
    listed = _listed().keys()
    found = list(queries())
    assert len(found) > len(alerts()) > 5
    for query in found:
        named = {selector.metric for selector in query.selectors}
        assert named, query
        assert named <= listed | _OF_PROMETHEUS, query


def test_counters_by_code_are_there_from_the_start() -> None:
    """The first dead letter, or the first refusal of a kind, is an increase only where the counter was 0 before."""
    letters = "undecodable result-too-large events-deleted not-evaluated too-many-rows".split()
    series = {
        "cq_commands_total": ["ok", *CODES],
        "cq_dead_letters_total": ["malformed-command"],
        "cq_evaluator_dead_letters": letters,
    }
    for name, codes in series.items():
        assert None not in [REGISTRY.get_sample_value(name, {"code": code}) for code in codes], name
    assert sorted(letters) == sorted(metrics.SOURCE_LETTER_CODES)


def test_names_of_jobs_do_not_matter() -> None:
    """A Prometheus of one's own calls its scrape jobs as it likes."""
    assert not [each for each in queries() for selector in each.selectors if "job" in selector.matchers]


def test_each_alert_has_its_section_of_the_runbook() -> None:
    """In the same order, and none is left of an alert that is gone."""
    assert [alert["alert"] for alert in alerts()] == re.findall(r"^## (\w+)$", page("runbook.md"), re.MULTILINE)
