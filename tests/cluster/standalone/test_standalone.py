"""The evaluator on a Spark cluster, of which executors, workers and the driver die; its checkpoints behind a URL.

The URL is of Hadoop's `viewfs`, a file system outside Java's own, like `s3a` and `hdfs`: no code can use the URL as a
path. The file system shows a local folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gateway.sdk import connect
from tests.cluster.even_numbers import deaths
from tests.cluster.standalone.cluster import Standalone, standalone
from tests.kafka_client import wait_until
from tests.processes import kill_all
from tests.stack.server import Stack

_OPTIONS = {"spark.authenticate": "false", "spark.executor.memory": "512m", "spark.executor.cores": "1"}
_CHECKPOINTS = "viewfs://cq/checkpoints"
_SHOWS = "spark.hadoop.fs.viewfs.mounttable.cq.link./checkpoints"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers."""
    with standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.mark.timeout(900)
def test_deaths_lose_nothing(cluster: Standalone, tmp_path: Path) -> None:
    """An executor, a worker with its executor and the driver die: each match is there once, and only matches are."""
    variables = {"CQ_EVALUATOR_MASTER": cluster.master, "CQ_EVALUATOR_DRIVER_HOST": "127.0.0.1"}
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    options = _OPTIONS | {_SHOWS: checkpoints.as_uri()}
    variables |= {"CQ_EVALUATOR_BIND_ADDRESS": "127.0.0.1", "CQ_EVALUATOR_SPARK": json.dumps(options)}
    variables["CQ_EVALUATOR_CHECKPOINTS"] = _CHECKPOINTS
    stack = Stack(tmp_path / "data", **variables)
    try:
        stack.up()
        with connect(stack.bootstrap, "alice") as client:
            for victim in deaths(client, stack.bootstrap, ("nobody", "executor", "worker", "driver")):
                if victim == "executor":
                    cluster.executors()[0].kill()
                elif victim == "worker":
                    _kill_worker(cluster)
                elif victim == "driver":
                    before = _last_batch(checkpoints)
                    _kill_driver(cluster, stack)
            assert 1 == len(cluster.executors())
            assert before > 0, "the first driver left a checkpoint"
            wait_until(lambda: time.sleep(0.1) or _last_batch(checkpoints) > before, "batch of the next driver")
    finally:
        stack.down()


def _last_batch(checkpoints: Path) -> int:
    """Return the number of the last micro-batch that is committed there."""
    return max(int(path.name) for path in checkpoints.glob("*/*/commits/*") if path.name.isdigit())


def _kill_worker(cluster: Standalone) -> None:
    worker = cluster.workers[0]
    kill_all([worker, *worker.children(recursive=True)])


def _kill_driver(cluster: Standalone, stack: Stack) -> None:
    """Kill the evaluator; its executor ends itself."""
    executors = cluster.executors()
    stack.await_restart("evaluator", stack.kill("evaluator"))
    assert not psutil.wait_procs(executors, timeout=180)[1]
