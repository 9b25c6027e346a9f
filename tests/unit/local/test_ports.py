"""The ports of servers are distinct, even before any server listens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.local.launch import Ports
from gateway.local.program import free_ports
from gateway.local.run_folder import RunFolder
from grouping.model.errors import OperationalError


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A data folder of its own."""
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path)


def test_no_port_is_given_twice() -> None:
    """The system gives a port again that was let go; these are held until all are known."""
    assert 500 == len(set(free_ports(500)))


def test_a_start_gives_the_ports_of_the_last_one(run: RunFolder) -> None:
    """Even the port of a server that this start does not need."""
    first = Ports(run)
    kafka, redis = first.take("kafka", 0), first.take("redis", 0)
    first.keep()
    without = Ports(run)
    assert kafka == without.take("kafka", 0)
    without.keep()
    assert [redis, kafka] == [ports.take(name, 0) for ports in [Ports(run)] for name in ("redis", "kafka")]


def test_a_port_that_another_server_was_given_is_not_given_again(run: RunFolder) -> None:
    """Neither as the port of the last time, nor as a wanted port."""
    [port] = free_ports(1)
    (run.data / "run" / "ports.json").write_text(json.dumps({"redis": port}))
    ports = Ports(run)
    assert port == ports.take("kafka", port)
    assert port != ports.take("redis", 0)
    with pytest.raises(OperationalError, match=f"port {port} for controller is taken"):
        ports.take("controller", port)
