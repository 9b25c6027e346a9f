"""A Spark standalone cluster on this machine: a master and two workers of one core, each a process."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from gateway.local.java import find_java
from gateway.local.program import LOOPBACK, free_port

__all__ = ["Standalone", "standalone"]

_SPARK = Path(pyspark.__file__).parent
_READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Standalone:
    """The cluster while it runs."""

    master: str
    """Its address, as Spark has it."""
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


def _class(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just gone
        return ""


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Start the cluster, and end it with all of its executors."""
    port = free_port()
    with ExitStack() as closing:
        master = Standalone(f"spark://{LOOPBACK}:{port}")
        _start(closing, folder, "master", "master.Master", "--port", str(port))
        for name in ("first", "second"):
            options = ("--cores", "1", "--memory", "2g", "--work-dir", str(folder / name), master.master)
            master.workers.append(_start(closing, folder, name, "worker.Worker", *options))
        yield master


def _start(closing: ExitStack, folder: Path, name: str, main: str, *options: str) -> psutil.Process:
    """Run a part of the cluster until it says that it is ready."""
    log = folder / f"{name}.log"
    own = {"JAVA_HOME": str(find_java().home), "SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": LOOPBACK}
    command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", "--host", LOOPBACK]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *options],
            env={**os.environ, **own, "SPARK_DAEMON_MEMORY": "256m"}, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    started = psutil.Process(process.pid)
    closing.callback(_end, process)
    deadline = time.monotonic() + _READY_SECONDS
    said = b"I have been elected leader" if main == "master.Master" else b"Successfully registered with master"
    while said not in log.read_bytes():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return started


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        for one in (*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)):
            try:
                one.kill()
            except psutil.NoSuchProcess:
                continue
    process.wait()
