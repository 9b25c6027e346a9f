"""The target of cluster chaos: brokers, a Redis pair, Spark and two gateways, each on a host of its own."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from gateway.local.run_folder import RunFolder
from grouping.settings.settings import Settings
from tests.chaos.host import HANG_SECONDS, RESULTS, Host
from tests.cluster.brokers.brokers import COUNT, Brokers, three_brokers
from tests.cluster.failover.pair import Pair, watched_pair
from tests.cluster.gateway_keeper import GatewayKeeper, active_pid, gateway_keeper
from tests.cluster.hosts import LOCAL
from tests.cluster.hosts import Host as Place
from tests.cluster.network.network import network
from tests.cluster.standalone.cluster import Standalone, standalone
from tests.kafka_client import wait_until
from tests.stack.server import Stack

__all__ = ["Platform", "open_platform"]

_NAMES = ("kafka1", "kafka2", "kafka3", "redis1", "redis2", "master", "worker1", "worker2", "site", "other")
_NETWORK = 78
_SPARK = {
    "spark.authenticate": "false",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # An executor that is not heard of is lost after ten seconds, in place of two minutes.
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "2s",
}


class Platform(Host):
    """The servers of a cluster, and both roles: the gateway twice."""

    def __init__(
        self, stack: Stack, places: list[Place], brokers: Brokers, pair: Pair, spark: Standalone, other: GatewayKeeper
    ) -> None:
        super().__init__(stack, None, small_disk=False)
        self.brokers = brokers
        self.pair = pair
        self.spark = spark
        self.site, self.other_site = places[-2:]
        self._other = other
        own = {"CQ_REDIS_URL": "url", "CQ_REDIS_SENTINELS": "sentinels", "CQ_REDIS_SENTINEL_NAME": "sentinel_name"}
        redis = Settings().redis.model_dump() | {own[name]: value for name, value in pair.settings.items()}
        self._settings = Settings(redis=redis)

    @property
    def redis_url(self) -> str:
        """The address of the primary."""
        return self.pair.url(self.pair.primary())

    def active_gateway(self) -> tuple[psutil.Process, Place]:
        """Return the gateway with the lease, and its place; wait until there is one."""
        found: list[tuple[psutil.Process, Place]] = []

        def there() -> bool:
            time.sleep(0.05)
            pid = active_pid(self._settings)
            if pid and psutil.pid_exists(pid):
                place = self.other_site if pid == self._other.pid else self.site
                found.append((psutil.Process(pid), place))
            return bool(found)

        wait_until(there, "active gateway")
        return found[0]

    def await_ready(self, timeout: float = 240.0) -> None:
        """Return when every server is there again, and both roles work."""
        self.brokers.await_whole()
        self.pair.await_followed()
        run, begun = RunFolder(self.data), time.monotonic()

        def ready() -> bool:
            time.sleep(0.1)
            report = run.read(run.state)
            return report.get("told_at", 0) > begun + 1.5 and report["roles"]["evaluator"]["state"] == "ready"

        wait_until(ready, f"evaluator: {run.read(run.state)}", timeout)
        self.active_gateway()
        wait_until(lambda: time.sleep(0.1) or self.spark.executors(), "executor")

    def logs(self) -> str:
        """Return the ends of both gateways' and the evaluator's logs."""
        return f"{self.stack.logs()}\n--- the other gateway\n{self._other.log()}"


@contextmanager
def open_platform(keep: Path | None, *, linked: bool) -> Iterator[Platform]:
    """Start everything in a folder of its own, which is gone afterwards; not one process may be left.

    Args:
        keep: Where its logs go when something does not hold.
        linked: Whether hosts are network namespaces, whose links can be cut; root alone may have them.
    """
    with ExitStack() as closing:
        folder = Path(
            closing.enter_context(tempfile.TemporaryDirectory(prefix="cq-chaos-", ignore_cleanup_errors=True))
        )
        places = closing.enter_context(network(_NAMES, _NETWORK)) if linked else [LOCAL] * len(_NAMES)
        if keep is not None:
            closing.push(lambda kind, *_: _keep(folder, keep) if kind else None)
        brokers = closing.enter_context(three_brokers(folder / "brokers", places[:COUNT]))
        redis_places, spark_places = places[COUNT : COUNT + 2], places[COUNT + 2 : -2]
        pair = closing.enter_context(watched_pair(folder / "pair", redis_places, [*redis_places, spark_places[0]]))
        (folder / "spark").mkdir()
        spark = closing.enter_context(standalone(folder / "spark", spark_places))
        variables = pair.settings | {
            "CQ_KAFKA_BOOTSTRAP": brokers.bootstrap, "CQ_KAFKA_REPLICATION": "3", "CQ_KAFKA_MIN_ISR": "2",
            "CQ_STANDBY": "true", "CQ_COMMANDS_REMEMBER_DAYS": "1", **RESULTS,
        }  # fmt: skip
        evaluator = {
            "CQ_EVALUATOR_MASTER": spark.master,
            "CQ_EVALUATOR_DRIVER_HOST": places[-2].address,
            "CQ_EVALUATOR_SPARK": json.dumps(_SPARK),
            "CQ_SUPERVISOR_HANG_SECONDS": str(HANG_SECONDS),
        }
        stack = Stack(folder / "data", within=places[-2].command(), **variables, **evaluator)
        closing.callback(lambda: stack.down() if (folder / "data" / "endpoints.json").exists() else None)
        stack.up()
        other = closing.enter_context(gateway_keeper(folder / "other", places[-1], variables))
        yield Platform(stack, places, brokers, pair, spark, other)


def _keep(folder: Path, keep: Path) -> None:
    """Copy the logs."""
    for path in folder.rglob("*"):
        if path.is_file() and (path.suffix == ".log" or path.name == "log"):
            target = keep / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
