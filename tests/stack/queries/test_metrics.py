"""Metrics and health of the roles that run, over HTTP."""

from __future__ import annotations

import re
from urllib.request import urlopen

from tests.kafka_client import wait_until
from tests.stack.lab import Lab
from tests.stack.server import Stack


def _read(url: str) -> str:
    with urlopen(url) as response:
        return str(response.read().decode())


def test_what_is_evaluated_is_counted(stack: Stack, lab: Lab) -> None:
    """Both roles tell of a stream by its name, and that they are ready."""
    source = lab.stream("symbol STRING, qty INT")
    created = lab.create("all of them", f"SELECT qty FROM {source.name}", clauses="DO PUBLISH SHARED")
    source.publish_values(*(b'{"qty": %d}' % number for number in range(5)))
    assert 5 == len(lab.matches(created, source)), "lab.matches publishes a fence besides"
    gateway, evaluator = (str(stack.endpoints()[name]) for name in ("metrics_url", "evaluator_metrics_url"))
    wait_until(lambda: f'cq_events_behind{{stream="{source.name}"}} 0.0' in _read(gateway), "events behind")
    evaluated = rf'^cq_events_evaluated_total{{stream="{source.name}"}} ([1-9]\d*)\.0$'

    def events() -> int:
        found = re.search(evaluated, _read(evaluator), re.MULTILINE)
        return 0 if found is None else int(found[1])

    wait_until(lambda: events() > 5, "events evaluated")
    for line in (
        f'cq_stream_running{{stream="{source.name}"}} 1.0',
        f'cq_batch_seconds{{phase="addBatch",stream="{source.name}"}}',
        "process_start_time_seconds",
    ):
        assert line in _read(evaluator)
    for url in (gateway, evaluator):
        for probe in ("healthz", "readyz"):
            assert '"ready"' in _read(url.replace("metrics", probe))
