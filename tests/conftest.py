"""Parts shared by all tests: the order (cheap tests first), `--rewrite` for golden cases, and a real stack."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.groups import CRASHES, TestGroups, place_of
from tests.stack.collector import Collector, collector
from tests.stack.server import Stack

# How long an example takes, or is made, tells of the machine's load.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

# As in the evaluator's workers (runtime/application/spark_options.py): threads waiting for one another cost a fifth
# more. Polars reads the variable at its import, later than this file.
os.environ.setdefault("POLARS_MAX_THREADS", "1")

# A failure of these helpers tells the two sides of its comparison.
pytest.register_assert_rewrite("tests.stack.steady_load", "tests.stack.lives")

collect_ignore = ["benchmarks/comparisons/pathway_flow.py"]
"""The file runs in a separate Python with Pathway."""
_COSTS = ("tests/spark/", CRASHES, "tests/stack/", "tests/cluster/")
"""Later folders come later; tests outside of them are pure and come first.

Crashes come before other tests on servers: a killed Kafka starts sooner while it has the partitions of few tests.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--rewrite`."""
    parser.addoption(
        "--rewrite", action="store_true", help="write the answers of golden cases anew; read the diff afterwards"
    )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> TestGroups:
    """Hand out groups of tests where there are several processes."""
    return TestGroups(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their folder and run pure ones first, then Spark's, then tests on the real servers.

    Among several processes the groups that take longest come first.
    """

    def cost(item: pytest.Item) -> int:
        place = item.nodeid.split("::")[0]
        return next((rank for rank, start in enumerate(_COSTS, 1) if place.startswith(start)), 0)

    for item in items:
        if cost(item):
            item.add_marker(pytest.mark.spark if cost(item) == 1 else pytest.mark.stack)
    items.sort(key=cost)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: place_of(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have collections of garbage pass over the tests and modules, which stay: a fifth of the CPU of pure tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_sessionfinish() -> None:
    """Unfreeze remaining objects: libraries complain at the end about objects never released."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Release the test's fixtures, so clients among them end before their servers do."""
    if isinstance(item, pytest.Function):
        item.funcargs.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failure the last log lines of the roles of this process's stacks."""
    report = yield
    if report.failed:
        report.sections += [(f"what {stack.data} wrote", stack.own_words()) for stack in Stack.known]
    return report


@pytest.fixture(scope="session")
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden cases are to be written anew."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(scope="session")
def traces() -> Iterator[Collector]:
    """A collector of traces, which the shared servers tell."""
    with collector() as made:
        yield made


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, traces: Collector) -> Iterator[Stack]:
    """Kafka, Valkey, gateway and evaluator, started once per run as a user starts them; without them tests fail."""
    stack = Stack(tmp_path_factory.mktemp("stack") / "data", CQ_TRACES_ENDPOINT=traces.endpoint)
    with stack.guarded():
        try:
            stack.up()
            yield stack
        finally:
            gc.collect()  # remaining connections end with their owners, not with a broker that is gone
            if (stack.data / "endpoints.json").exists():
                stack.down()
