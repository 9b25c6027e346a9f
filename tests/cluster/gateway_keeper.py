"""A standby gateway on a host of its own, restarted whenever it ends, as by a platform."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from grouping.settings.settings import Settings
from grouping.store.lease import Lease
from tests.cluster.hosts import Host

__all__ = ["GatewayKeeper", "active_pid", "gateway_keeper"]

_LOOK_SECONDS = 0.2


class GatewayKeeper:
    """The gateway, and a thread that restarts it."""

    def __init__(self, folder: Path, host: Host, variables: Mapping[str, str]) -> None:
        """Start the gateway.

        Args:
            folder: Its data folder, made here.
            host: The host of the gateway.
            variables: Its settings.
        """
        self._log = folder / "log"
        self._command = host.command(sys.executable, "-m", "gateway.cli", "gateway", "--data", str(folder))
        self._environment = {**os.environ, **variables}
        folder.mkdir()
        self._process = self._start()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="other gateway", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Its process now."""
        return self._process.pid

    def log(self) -> str:
        """Return the end of the gateway's log."""
        return self._log.read_text(errors="replace")[-3000:]

    def end(self) -> None:
        """End it for good."""
        self._stop.set()
        self._thread.join()
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=subprocess.STDOUT)

    def _keep(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            if self._process.poll() is not None:
                self._process = self._start()


@contextmanager
def gateway_keeper(folder: Path, host: Host, variables: Mapping[str, str]) -> Iterator[GatewayKeeper]:
    """Run it for as long as the block lasts."""
    gateway = GatewayKeeper(folder, host, variables)
    try:
        yield gateway
    finally:
        gateway.end()


def active_pid(settings: Settings) -> int:
    """Return the process of the gateway with the lease, 0 without a holder."""
    holder = Lease(settings, "gateway").holder()
    return int(holder.split("/")[1]) if holder else 0
