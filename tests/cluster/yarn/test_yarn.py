"""The evaluator on YARN, its checkpoints on HDFS; an executor and the driver die."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pyspark
import pytest

from gateway.local.jars import ensure_jars
from gateway.local.java import find_java
from gateway.sdk import connect
from grouping.settings.given_settings import given_settings
from tests.cluster.even_numbers import deaths
from tests.kafka_client import wait_until
from tests.processes import kill_all
from tests.stack.server import Stack

_ROOT = Path(__file__).parents[3]
_OPTIONS = {
    "spark.authenticate": "false",
    "spark.executor.instances": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.memoryOverhead": "512m",
    "spark.yarn.am.memory": "512m",
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",  # else they are copied to HDFS, 400 MB
    "spark.executorEnv.PYTHONPATH": str(_ROOT),
}


class Hadoop(NamedTuple):
    """The cluster while it runs."""

    process: psutil.Process
    folder: Path
    """Folder of its configuration."""
    hdfs: str
    """The address of HDFS."""


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    """YARN and HDFS."""
    folder = tmp_path_factory.mktemp("hadoop")
    jars = ensure_jars("hadoop.lock", given_settings().jars, package=__package__)
    command = [sys.executable, "-m", "tests.cluster.yarn.mini_hadoop", str(folder), str(jars)]
    own = {"PATH": "/usr/bin:/bin", "JAVA_HOME": str(find_java().home), "PYTHONPATH": str(_ROOT)}
    log = folder / "hadoop.log"
    with (
        log.open("wb") as err,
        subprocess.Popen(
            command, env=own, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err
        ) as program,
    ):
        process = psutil.Process(program.pid)
        try:
            assert program.stdout is not None
            ready = next((line for line in program.stdout if line.startswith(b"ready ")), None)
            assert ready is not None, log.read_text()
            yield Hadoop(process, folder, ready.split()[1].decode())
        finally:
            kill_all([process, *process.children(recursive=True)])


@pytest.mark.timeout(900)
def test_deaths_lose_nothing(hadoop: Hadoop, tmp_path: Path) -> None:
    """An executor and the driver die: each match is there once, and the next driver goes on from HDFS."""
    variables = {
        "HADOOP_CONF_DIR": str(hadoop.folder),
        "CQ_EVALUATOR_MASTER": "yarn",
        "CQ_EVALUATOR_CHECKPOINTS": f"{hadoop.hdfs}/cq",
        "CQ_EVALUATOR_DRIVER_HOST": "127.0.0.1",
        "CQ_EVALUATOR_BIND_ADDRESS": "127.0.0.1",
    }
    stack = Stack(tmp_path / "data", **variables, CQ_EVALUATOR_SPARK=json.dumps(_OPTIONS))
    try:
        stack.up()
        with connect(stack.bootstrap, "alice") as client:
            for victim in deaths(client, stack.bootstrap, ("nobody", "executor", "driver")):
                executors = _executors(hadoop.process)
                if victim == "executor":
                    executors[0].kill()
                elif victim == "driver":
                    stack.await_restart("evaluator", stack.kill("evaluator"))
                    assert not psutil.wait_procs(executors, timeout=180)[1], "those of a dead driver end themselves"
            wait_until(lambda: len(_executors(hadoop.process)) == 2, "both executors")
            assert not list((tmp_path / "data").rglob("commits")), "checkpoints are on HDFS alone"
    finally:
        stack.down()


def _executors(cluster: psutil.Process) -> list[psutil.Process]:
    """Return the JVMs in which tasks run."""
    found = []
    for process in cluster.children(recursive=True):
        try:
            line = process.cmdline()
        except psutil.Error:  # it has just gone
            continue
        if "YarnCoarseGrainedExecutorBackend" in " ".join(line) and Path(line[0]).name == "java":
            found.append(process)
    return found
