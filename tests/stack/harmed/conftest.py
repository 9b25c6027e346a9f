"""A gateway and an evaluator only for the tests of this folder, with faults that are planted in their workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.ground import Ground
from tests.stack.lab import Lab
from tests.stack.server import Stack
from tests.unit.schemas.registry_server import Registry, registry

_PREFIX = "harmed."
_PLANTED = Path(__file__).parents[1] / "planted"


@pytest.fixture(scope="package")
def known() -> Iterator[Registry]:
    """A registry of schemas that the gateway and the evaluator may read."""
    with registry() as known:
        yield known


@pytest.fixture(scope="package")
def harmed(servers: Ground, known: Registry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The gateway and the evaluator, on the servers that already run."""
    path = os.pathsep.join([str(_PLANTED), *filter(None, [os.environ.get("PYTHONPATH")])])
    redis = servers.settings.redis.url.get_secret_value()
    given = ("--kafka", servers.settings.kafka.bootstrap, "--redis", redis)
    settings = {
        "CQ_PREFIX": _PREFIX,
        "PYTHONPATH": path,
        "CQ_EVALUATOR_GROUP_SECONDS": "2",
        "CQ_LOGS_FORM": "json",
        "CQ_STREAMS_REGISTRIES": known.url.replace("//", "//ann:hush@"),
    }
    harmed = Stack(tmp_path_factory.mktemp("harmed") / "data", *given, **settings)
    with harmed.guarded():
        try:
            harmed.up()
            yield harmed
        finally:
            if (harmed.data / "endpoints.json").exists():
                harmed.down()


@pytest.fixture
def lab(harmed: Stack) -> Iterator[Lab]:
    """Streams, topics and CQs of the test on that gateway, which are removed after the test."""
    with closing(Lab(harmed.bootstrap, _PREFIX)) as lab:
        yield lab
