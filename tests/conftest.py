"""What all tests share: the order from cheap to dear, `--rewrite` for golden cases, and one real stack per run."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.stack.server import Stack

# How long an example takes, or is made, tells of the machine's load.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

_CRASHES = "tests/stack/crash/"
"""Tests that stop or disturb servers."""

_COSTS = ("tests/spark/", "tests/stack/", _CRASHES)
"""Later ones are dearer; what is in none of them is pure and comes first. Crashes come last: they disturb all else."""


_SECOND = (
    "tests/stack/commands/",
    "tests/stack/destinations/",
    "tests/stack/digests/test_cuts.py",
    "tests/stack/digests/test_last_digests.py",
    "tests/stack/sdk/",
    "tests/stack/state/",
    _CRASHES,
)
"""Run in parallel these tests have a stack of their own: each of two processes is busy for about as long."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--rewrite`."""
    parser.addoption(
        "--rewrite", action="store_true", help="write the answers of golden cases anew; read the diff afterwards"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder and run pure ones first, then Spark's, then those on the real servers."""

    def cost(item: pytest.Item) -> int:
        place = item.nodeid.split("::")[0]
        return max((rank for rank, start in enumerate(_COSTS, 1) if place.startswith(start)), default=0)

    for item in items:
        if cost(item):
            item.add_marker(pytest.mark.spark if cost(item) == 1 else pytest.mark.stack)
            item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=cost)


def _group(item: pytest.Item) -> str:
    """Return which tests go to the same process when there are two, so that no server starts more often than needed."""
    if item.get_closest_marker("spark"):
        return "spark"
    return "second stack" if item.nodeid.startswith(_SECOND) else "first stack"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Let go of what the test had from its fixtures, so that the clients among it end before their servers do."""
    if isinstance(item, pytest.Function):
        item.funcargs.clear()


@pytest.fixture(scope="session")
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden cases are to be written anew."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Kafka, Valkey, gateway and evaluator, started once per run as a user starts them; without them tests fail."""
    stack = Stack(tmp_path_factory.mktemp("stack") / "data")
    try:
        stack.up()
        yield stack
    finally:
        gc.collect()  # connections that are left end with their owners, not with a broker that is gone
        if (stack.data / "endpoints.json").exists():
            stack.down()
