"""A gateway in a process of its own, on servers that a test has started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from grouping.settings.settings import Settings
from tests.kafka_client import wait_until

__all__ = ["GatewayProcess", "until"]


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition, which is checked every 20 ms."""
    pause = threading.Event()
    wait_until(lambda: condition() or pause.wait(0.02), what)


class GatewayProcess:
    """A gateway with given settings, perhaps a standby."""

    def __init__(self, settings: Settings, folder: Path, number: int, *, standby: bool = True) -> None:
        """Start the gateway.

        Args:
            settings: The servers and the prefix.
            folder: The folder for the gateway's status and log.
            number: Distinguishes the gateways of the test.
            standby: Whether it stands by while another gateway is active.
        """
        self._status = folder / f"status{number}.json"
        self._log = folder / f"gateway{number}.log"
        with self._log.open("wb") as log:
            self.process = self._started(settings, folder, standby, log)

    def _started(self, settings: Settings, folder: Path, standby: bool, log: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", "gateway", "--data", str(folder)],
            env={
                **os.environ,
                "CQ_PREFIX": settings.prefix,
                "CQ_STANDBY": str(standby),
                "CQ_KAFKA_BOOTSTRAP": settings.kafka.bootstrap,
                "CQ_REDIS_URL": settings.redis.url.get_secret_value(),
                "CQ_RESULTS_PARTITIONS": str(settings.results.partitions),
                "CQ_STATUS_FILE": str(self._status),
                "CQ_METRICS_PORT": "0",
            },
            stderr=log,
        )

    def output(self) -> str:
        """Return the gateway's log so far."""
        return self._log.read_text("utf-8")

    def report(self) -> dict[str, Any]:
        """Return the gateway's status, {} before its first report."""
        try:
            report: dict[str, Any] = json.loads(self._status.read_text())
        except FileNotFoundError:
            return {}
        return report

    def wait_for(self, state: str) -> None:
        """Wait until the gateway reports a state."""
        until(lambda: self.report().get("state") == state, f"a gateway that is {state}")

    def probe(self, path: str) -> int:
        """Return the status code of the gateway's answer to a probe over HTTP."""
        url = self.report()["metrics_url"].replace("/metrics", path)
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                status: int = answer.status
        except urllib.error.HTTPError as error:
            with error:
                status = error.code
        return status

    def end(self) -> None:
        """Make sure that the gateway is gone."""
        self.process.kill()
        self.process.wait()
