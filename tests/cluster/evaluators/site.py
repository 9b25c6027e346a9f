"""A gateway and several evaluators, each evaluator as in a container of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from gateway.local.java import find_java
from tests.ground import Ground, open_ground
from tests.kafka_client import wait_until
from tests.processes import kill_all

__all__ = ["Role", "Site", "site"]

_APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child") if os.geteuid() == 0 else ()
"""A separate process namespace, as in a container: processes elsewhere are invisible there.

Only root may make a namespace; without it a successor sees at once if a process is dead.
"""
_STATE_SECONDS = 240.0
"""How long a role may take to reach a state: on a busy machine Spark takes minutes to start."""
_OWN = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
    "CQ_METRICS_PORT": "0",
    "CQ_METRICS_EVALUATOR_PORT": "0",
    "CQ_EVALUATOR_DRIVER_MEMORY": "512m",
}


class Role:
    """A role as a process, with its status."""

    def __init__(self, command: tuple[str, ...], folder: Path, environment: dict[str, str]) -> None:
        """Start it."""
        folder.mkdir(exist_ok=True)
        self._status = folder / "status.json"
        self._status.unlink(missing_ok=True)
        self._log = folder / "log"
        own = {"CQ_DATA": str(folder), "CQ_STATUS_FILE": str(self._status)}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command], env={**os.environ, **environment, **own}, stdout=log, stderr=subprocess.STDOUT
            )

    def report(self) -> dict[str, Any]:
        """Return the role's status, {} before its first report."""
        try:
            report: dict[str, Any] = json.loads(self._status.read_text())
        except FileNotFoundError:
            return {}
        return report

    def wait_for(self, state: str) -> None:
        """Wait until the role reports a state."""

        def reached() -> bool:
            assert self.process.poll() is None, self.output()
            time.sleep(0.02)
            return bool(self.report().get("state") == state)

        wait_until(reached, f"a role that is {state}", _STATE_SECONDS)

    def probe(self, path: str) -> int:
        """Return how it answers a probe over HTTP."""
        return self.ask(path)[0]

    def ask(self, path: str) -> tuple[int, str]:
        """Return the status and the body of an answer over HTTP."""
        url = self.report()["metrics_url"].replace("/metrics", path)
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, ""

    def output(self) -> str:
        """Return the end of its log."""
        return self._log.read_text(errors="replace")[-5000:]

    def driver(self) -> psutil.Process:
        """Return the process of Python, below which all others of the role run."""
        process = psutil.Process(self.process.pid)
        return process.children()[0] if _APART and process.name() == "unshare" else process

    def family(self) -> list[psutil.Process]:
        """Return the role's processes: its own, and all its children."""
        return [self.driver(), *self.driver().children(recursive=True)]

    def stop(self) -> None:
        """Tell the role to stop, as a container platform does, and wait for its orderly end."""
        self.driver().terminate()
        assert 0 == self.process.wait(180), self.output()

    def kill(self) -> None:
        """Kill the role with all its children."""
        if self.process.poll() is None:
            kill_all(self.family())
        self.process.wait(120)


class Site:
    """The servers, and the roles that were started."""

    def __init__(self, ground: Ground, folder: Path, environment: dict[str, str]) -> None:
        """Start the gateway; all roles have that environment."""
        self.ground = ground
        self._folder = folder
        self._roles: list[Role] = []
        settings = ground.settings
        self._environment = {
            **_OWN,
            "CQ_PREFIX": settings.prefix,
            "CQ_KAFKA_BOOTSTRAP": settings.kafka.bootstrap,
            "CQ_REDIS_URL": settings.redis.url.get_secret_value(),
            "CQ_EVALUATOR_JARS": settings.evaluator.jars,
            "JAVA_HOME": str(find_java().home),
            "PYSPARK_PYTHON": sys.executable,
            **environment,
        }
        self.gateway = self.another_gateway("gateway")

    @property
    def bootstrap(self) -> str:
        """Kafka's address."""
        return self.ground.settings.kafka.bootstrap

    def another_gateway(self, host: str) -> Role:
        """Start a gateway on a host, with its own data folder."""
        return self._started(host, (sys.executable, "-m", "gateway.cli", "gateway"), {})

    def evaluator(self, host: str, **environment: str) -> Role:
        """Start an evaluator on a host, with the host's own data folder, which a later evaluator there uses again."""
        return self._started(host, (*_APART, sys.executable, "-m", "spark_jobs.runtime.driver.job"), environment)

    def _started(self, host: str, command: tuple[str, ...], environment: dict[str, str]) -> Role:
        self._roles.append(Role(command, self._folder / host, {**self._environment, **environment}))
        return self._roles[-1]

    def end(self) -> None:
        """End all that still runs."""
        for role in self._roles:
            role.kill()


@contextmanager
def site(folder: Path, **environment: str) -> Iterator[Site]:
    """Run Kafka, Valkey and a gateway."""
    with open_ground() as ground:
        running = Site(ground, folder, environment)
        try:
            running.gateway.wait_for("ready")
            yield running
        finally:
            running.end()
