"""The compose file on a container engine: the same path from CREATE CQ to a result as on the embedded servers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from testcontainers.compose import DockerCompose

from gateway.sdk import Match, connect

pytestmark = pytest.mark.docker

FOLDER = Path(__file__).parents[3] / "docker"


@pytest.fixture(scope="module")
def engine() -> None:
    """A container engine; without one the tests skip with its reason, or fail where one is required."""
    reason = "there is no docker command"
    if shutil.which("docker"):
        asked = subprocess.run(["docker", "version"], capture_output=True, text=True, timeout=60, check=False)
        if asked.returncode == 0:
            return
        reason = (asked.stderr.strip().splitlines() or ["docker version failed"])[-1]
    if os.environ.get("CQ_REQUIRE_DOCKER") == "1":
        pytest.fail(f"CQ_REQUIRE_DOCKER is set, but: {reason}")
    pytest.skip(f"no container engine: {reason}")


@pytest.fixture(scope="module")
def services(engine: None) -> Iterator[DockerCompose]:
    """All services, up and healthy."""
    with DockerCompose(FOLDER, compose_file_name="compose.yaml", build=True, wait=True) as compose:
        yield compose


def test_a_result_comes_back(services: DockerCompose) -> None:
    """A CQ that is registered from outside the containers is answered there."""
    with connect("127.0.0.1:9092", "alice") as client:
        client.create_stream("quotes", {"symbol": "STRING", "price": "DOUBLE"}, topic="quotes", partitions=2)
        intel = client.create("intel", "SELECT price FROM quotes WHERE symbol = 'INTC' AND price < 100")
        client.publish("quotes", [{"symbol": "INTC", "price": price} for price in (99.5, 100.5)])
        with client.subscribe(intel) as results:
            match = results.next(timeout=180)
            assert isinstance(match, Match)
            assert {"price": 99.5} == match.row


def test_an_operator_looks_from_within(services: DockerCompose) -> None:
    """The image has `cq` with its version, and its environment says where the servers are."""
    for command in (["cq", "status"], ["cq", "top", "--once"], ["cq", "doctor"]):
        shown, errors, code = services.exec_in_container(command, "gateway")
        assert 0 == code, (command, shown, errors)


def test_no_container_runs_as_root(services: DockerCompose) -> None:
    """Nothing in the containers runs as root, whatever the images say."""
    for service in ("kafka", "valkey", "gateway", "evaluator"):
        user, _, _ = services.exec_in_container(["id", "-u"], service)
        assert user.strip() != "0", service
