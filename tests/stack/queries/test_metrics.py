"""Metrics and health of the roles that run, over HTTP."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from urllib.error import HTTPError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.kafka_client import wait_until
from tests.monitoring import queries
from tests.stack.lab import Lab
from tests.stack.server import Stack

_OF_PROMETHEUS = {"job", "instance"}
"""Labels that a scrape adds."""

Scrape = dict[str, list[tuple[dict[str, str], float]]]
"""By name of a series, its labels and values."""


def _read(url: str) -> str:
    with urlopen(url) as response:
        return str(response.read().decode())


def _is_ready(url: str) -> bool:
    """Tell whether a role says that it is ready; on a busy machine it may be late with its signs of life."""
    try:
        return '"ready"' in _read(url)
    except HTTPError:
        return False


def _scrape(url: str) -> Scrape:
    found: Scrape = defaultdict(list)
    for family in text_string_to_metric_families(_read(url)):
        for sample in family.samples:
            found[sample.name].append((sample.labels, sample.value))
    return found


def _of(url: str, name: str, **labels: str) -> float | None:
    """Return the sum of the series that have these labels, None where there is none."""
    values = [value for each, value in _scrape(url)[name] if labels.items() <= each.items()]
    return sum(values) if values else None


def test_what_is_evaluated_is_counted(stack: Stack, lab: Lab) -> None:
    """Both roles report a stream by its name: the events evaluated, the results written, and that they are ready."""
    source = lab.stream("symbol STRING, qty INT")
    created = lab.create("all of them", f"SELECT qty FROM {source.name}", clauses="DO PUBLISH SHARED")
    lab.create("none", f"SELECT qty FROM {source.name} WHERE symbol = 'A'", clauses="DO PUBLISH SHARED")
    gateway, evaluator = (str(stack.endpoints()[name]) for name in ("metrics_url", "evaluator_metrics_url"))
    wait_until(lambda: _of(gateway, "cq_table_bytes", stream=source.name) is not None, "a look at the stream")
    source.publish_values(*(b'{"qty": %d}' % number for number in range(5)))
    results = lab.matches(created, source)
    assert 5 == len(results), "lab.matches publishes a fence besides"
    wait_until(lambda: _of(gateway, "cq_events_behind", stream=source.name) == 0, "events behind")
    wait_until(lambda: (_of(evaluator, "cq_events_evaluated_total", stream=source.name) or 0) > 5, "events evaluated")
    wait_until(lambda: _of(evaluator, "cq_stream_running", stream=source.name) == 1, "a stream that runs")
    # The fence's CQ matches each event too.
    written = 2 * len(source.fences) + 2 * 5
    for name in ("cq_matches_total", "cq_results_total"):
        wait_until(lambda name=name: _of(gateway, name, stream=source.name) == written, name)
    least = sum(len(result.value) for result in results)
    assert least < (_of(gateway, "cq_result_bytes_total", stream=source.name) or 0) < 1000 * written
    sizes = {"cq_live_cqs": 3, "cq_groups": 2, "cq_table_rows": 3, "cq_table_version": 3}
    wait_until(lambda: {name: _of(gateway, name, stream=source.name) for name in sizes} == sizes, f"{sizes}")
    assert 0 < (_of(gateway, "cq_table_memory_bytes") or 0) < (_of(gateway, "cq_table_memory_limit_bytes") or 0)
    for url in (gateway, evaluator):
        for probe in ("healthz", "readyz"):
            wait_until(partial(_is_ready, url.replace("metrics", probe)), f"{url} with {probe}")


def test_queries_of_alerts_and_dashboard_find_what_they_ask_for(stack: Stack, lab: Lab) -> None:
    """Each metric, and each label that is matched, grouped by, joined on or shown, is at the endpoints."""
    source = lab.stream("symbol STRING, qty INT")
    created = lab.create("all of them", f"SELECT qty FROM {source.name}", clauses="DO PUBLISH SHARED")
    lab.client.send_record("alice", b"no command")  # a dead letter
    lab.client.execute("CREATE nothing")
    urls = [str(stack.endpoints()[name]) for name in ("metrics_url", "evaluator_metrics_url")]

    def labels() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {"up": set()}
        for url in urls:
            for name, series in _scrape(url).items():
                found.setdefault(name, set()).update(*(each for each, _ in series))
        return found

    wanted = {selector.metric for query in queries() for selector in query.selectors}
    there: dict[str, set[str]] = {}

    def complete() -> bool:
        source.publish_values(b"no event", b'{"qty": 1}')
        lab.matches(created, source)
        there.clear()
        there.update(labels())
        return wanted <= there.keys()

    wait_until(complete, "every metric")
    for query in queries():
        known = [there[selector.metric] | _OF_PROMETHEUS for selector in query.selectors]
        for selector, has in zip(query.selectors, known, strict=True):
            assert selector.matchers.keys() <= has, query
        assert all(query.grouped_by <= has for has in known), query
        left = set.intersection(*known) if query.left is None else query.left
        assert query.shown <= left, query
