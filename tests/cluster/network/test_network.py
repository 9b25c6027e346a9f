"""Brokers, Redis, Spark and two gateways on hosts of their own, whose links are cut for longer than leases last."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.local.valkey import CONFIGURATION, valkey_binary
from gateway.sdk import connect
from grouping.settings.settings import Settings
from grouping.store.lease import LIFETIME_MS
from tests.cluster.brokers.brokers import COUNT, three_brokers
from tests.cluster.gateway_keeper import active_pid, gateway_keeper
from tests.cluster.hosts import Host
from tests.cluster.network.network import network, require_namespaces
from tests.cluster.standalone.cluster import standalone
from tests.stack.server import Stack
from tests.stack.steady_load import SteadyLoad

_CUT_SECONDS = max(LIFETIME_MS.values()) / 1000 + 5
_SPARK = {
    "spark.authenticate": "false",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # An executor that is not heard of is lost after ten seconds, in place of two minutes.
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "2s",
}


@pytest.mark.timeout(1800)
def test_links_that_are_cut(tmp_path: Path) -> None:
    """A broker, Redis, an executor and the active gateway with the driver are cut off in turn, under load.

    While the active gateway is cut off, the other one carries out commands. Nothing is lost, nothing comes twice.
    """
    require_namespaces()
    names = ("kafka1", "kafka2", "kafka3", "redis", "master", "worker1", "worker2", "site", "other")
    with network(names) as hosts:
        brokers, (redis_host, *spark_hosts, site, other) = hosts[:COUNT], hosts[COUNT:]
        with (
            three_brokers(tmp_path / "brokers", brokers) as kafka,
            _redis(tmp_path / "redis", redis_host) as redis_url,
            standalone(_made(tmp_path / "spark"), spark_hosts) as spark,
        ):
            variables = {
                "CQ_KAFKA_BOOTSTRAP": kafka.bootstrap, "CQ_KAFKA_REPLICATION": "3", "CQ_KAFKA_MIN_ISR": "2",
                "CQ_REDIS_URL": redis_url, "CQ_STANDBY": "true",
            }  # fmt: skip
            evaluator = {
                "CQ_EVALUATOR_MASTER": spark.master,
                "CQ_EVALUATOR_DRIVER_HOST": site.address,
                "CQ_EVALUATOR_SPARK": json.dumps(_SPARK),
            }
            stack = Stack(tmp_path / "data", within=site.command(), **variables, **evaluator)
            try:
                stack.up()
                with (
                    gateway_keeper(tmp_path / "other", other, variables) as keeper,
                    connect(kafka.bootstrap, "alice") as client,
                ):
                    load = SteadyLoad(client, kafka.bootstrap)
                    for host in (brokers[0], redis_host, spark_hosts[1]):
                        load.go_on()
                        _cut(host)
                        load.go_on()
                    settings = Settings(redis={"url": redis_url})
                    if active_pid(settings) == keeper.pid:
                        _cut(other)  # it took over while Redis was cut off
                        load.go_on()
                    assert active_pid(settings) not in (0, keeper.pid)
                    site.cut()
                    cut_at = time.monotonic()
                    load.carry_out_commands()  # by the second gateway: the first is cut off until all are done
                    time.sleep(max(cut_at + _CUT_SECONDS - time.monotonic(), 0))
                    site.mend()
                    load.go_on()
                    load.check()
            finally:
                stack.down()


def _cut(host: Host) -> None:
    """Cut a host off for longer than any lease lasts."""
    host.cut()
    time.sleep(_CUT_SECONDS)
    host.mend()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@contextmanager
def _redis(folder: Path, host: Host) -> Iterator[str]:
    """Run Valkey on a host, and give its address."""
    folder.mkdir()
    # The last line of two that say the same counts.
    (folder / "valkey.conf").write_text(f"{CONFIGURATION}port 6379\nbind {host.address}\nprotected-mode no\n")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(host.command(valkey_binary(), "valkey.conf"), cwd=folder, stdout=log)
    try:
        yield f"redis://{host.address}:6379/0"
    finally:
        process.kill()
        process.wait()
