"""A Spark standalone cluster: a master and two workers with one core each, all separate processes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from gateway.local.java import find_java
from gateway.local.program import free_ports
from tests.cluster.hosts import LOCAL, Host
from tests.processes import kill_all

__all__ = ["Standalone", "standalone"]

_SPARK = Path(pyspark.__file__).parent
_READY_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Standalone:
    """The running cluster."""

    master: str
    """The master's address, as Spark has it."""
    folder: Path
    hosts: Sequence[Host]
    """The workers'."""
    closing: ExitStack
    workers: list[psutil.Process] = field(default_factory=list)

    def executors(self) -> list[psutil.Process]:
        """Return the JVMs in which tasks run."""
        return [
            child
            for worker in self.workers
            if worker.is_running()
            for child in worker.children()
            if "CoarseGrainedExecutorBackend" in _class(child)
        ]

    def start_worker(self, number: int) -> None:
        """Start a worker, the first time or in place of a dead worker."""
        name = f"worker{number}"
        options = ("--cores", "1", "--memory", "2g", "--work-dir", str(self.folder / name), self.master)
        worker = _start(self.closing, self.hosts[number], self.folder, name, "worker.Worker", *options)
        self.workers[number : number + 1] = [worker]


def _class(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just gone
        return ""


@contextmanager
def standalone(folder: Path, hosts: Sequence[Host] = (LOCAL,) * 3) -> Iterator[Standalone]:
    """Start master and workers, each on a host, and end them with all executors."""
    [port] = free_ports(1)
    with ExitStack() as closing:
        cluster = Standalone(f"spark://{hosts[0].address}:{port}", folder, hosts[1:], closing)
        _start(closing, hosts[0], folder, "master", "master.Master", "--port", str(port))
        for number in range(len(cluster.hosts)):
            cluster.start_worker(number)
        yield cluster


def _start(closing: ExitStack, host: Host, folder: Path, name: str, main: str, *options: str) -> psutil.Process:
    """Run a part of the cluster until its report of readiness."""
    log = folder / f"{name}.log"
    own = {"JAVA_HOME": str(find_java().home), "SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": host.address}
    command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", "--host", host.address]
    with log.open("wb") as out:
        process = subprocess.Popen(
            host.command(*command, "--webui-port", "0", *options),
            env={**os.environ, **own, "SPARK_DAEMON_MEMORY": "256m"}, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    started = psutil.Process(process.pid)
    closing.callback(_end, process)
    deadline = time.monotonic() + _READY_SECONDS
    sign = b"I have been elected leader" if main == "master.Master" else b"Successfully registered with master"
    while sign not in log.read_bytes():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return started


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        own = psutil.Process(process.pid)
        kill_all([own, *own.children(recursive=True)])
    process.wait()
