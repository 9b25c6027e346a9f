"""Code and packages reach executors by `spark-submit --py-files`, and in a packed environment by `spark.archives`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark
import pytest

from gateway.sdk import connect
from grouping.settings.settings import Settings
from tests.cluster.standalone.cluster import Standalone, standalone
from tests.cluster.submission.code import ROOMS, bare_python, packed_environment
from tests.ground import Ground, open_ground
from tests.kafka_client import wait_until
from tests.pages import ROOT, blocks

_EXECUTORS = {"spark.authenticate": "false", "spark.executor.memory": "512m", "spark.executor.cores": "1"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers with a Python without the repository."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        with standalone(tmp_path_factory.mktemp("standalone")) as cluster:
            yield cluster


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """Kafka and Redis."""
    with open_ground() as ground:
        yield ground


def test_py_files(ground: Ground, cluster: Standalone, tmp_path: Path) -> None:
    """`spark-submit` starts the evaluator, whose executors have our code from `--py-files` alone."""
    [recipe] = [block.text for block in blocks("deployment.md") if block.title == "spark-submit"]
    python = str(bare_python(tmp_path / "bare"))
    here = {
        "spark://master:7077": cluster.master, "/opt/cq/jars": ground.settings.evaluator.jars,
        "/usr/bin/python3": python, "python3 -m zipfile": f"{sys.executable} -m zipfile", "2g": "1g",
        "\nspark-submit": f"\nexec {Path(pyspark.__file__).parent / 'bin' / 'spark-submit'}",
        "--py-files": " ".join(f"--conf {name}={value}" for name, value in _EXECUTORS.items()) + " --py-files",
    }  # fmt: skip
    for found, own in here.items():
        assert found in recipe, found
        recipe = recipe.replace(found, own)
    for room in ROOMS:
        (tmp_path / room).symlink_to(ROOT / room)
    own = {"PYSPARK_DRIVER_PYTHON": python, "CQ_EVALUATOR_SPARK": json.dumps(_EXECUTORS)}
    _assert_evaluated(ground, cluster, tmp_path, ["bash", "-euc", f"cd {tmp_path}\n{recipe}"], own)


def test_packed_environment(ground: Ground, cluster: Standalone, tmp_path: Path) -> None:
    """Executors unpack the archive named in `spark.archives`, and run its Python."""
    bare_python(tmp_path / "environment")
    packed = packed_environment(tmp_path / "environment.tar.gz", tmp_path / "environment")
    own = {"CQ_EVALUATOR_SPARK": json.dumps({"spark.archives": f"{packed}#environment", **_EXECUTORS})}
    own |= {"PYSPARK_PYTHON": "./environment/bin/python", "PYTHONPATH": os.pathsep.join(sys.path)}
    _assert_evaluated(ground, cluster, tmp_path, [sys.executable, "-m", "spark_jobs.runtime.driver.job"], own)


def _assert_evaluated(
    ground: Ground, cluster: Standalone, folder: Path, command: list[str], own: Mapping[str, str]
) -> None:
    """Check that a CQ has its result, and that the evaluator ends with all of Spark's processes."""
    settings = ground.settings
    kafka = settings.kafka.bootstrap
    variables = {
        "CQ_PREFIX": settings.prefix, "CQ_KAFKA_BOOTSTRAP": kafka, "CQ_DATA": str(folder / "data"),
        "CQ_REDIS_URL": settings.redis.url.get_secret_value(), "CQ_EVALUATOR_JARS": settings.evaluator.jars,
        "CQ_EVALUATOR_MASTER": cluster.master, "CQ_EVALUATOR_DRIVER_HOST": "127.0.0.1",
        "CQ_EVALUATOR_BIND_ADDRESS": "127.0.0.1",
    }  # fmt: skip
    status = folder / "gateway.json"
    gateway = [sys.executable, "-m", "gateway.cli", "gateway", "--data", str(folder / "data")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    with (
        _running(gateway, {**os.environ, **variables, "CQ_STATUS_FILE": str(status)}, folder / "gateway.log"),
        _running(command, environment | own, folder / "evaluator.log") as evaluator,
    ):
        wait_until(lambda: time.sleep(0.1) or (status.exists() and '"ready"' in status.read_text()), "gateway", 300)
        _use(settings, folder)
        family = [psutil.Process(evaluator.pid), *psutil.Process(evaluator.pid).children(recursive=True)]
        evaluator.send_signal(signal.SIGTERM)
        assert not psutil.wait_procs(family, timeout=180)[1]
        wait_until(lambda: time.sleep(0.1) or not cluster.executors(), "end of the executors", 180)


def _use(settings: Settings, folder: Path) -> None:
    """Check that a CQ gets the expected result."""
    with connect(settings.kafka.bootstrap, "alice", prefix=settings.prefix, timeout=300) as client:
        name = f"n{os.getpid()}"
        client.execute(f"CREATE STREAM {name} (n BIGINT) WITH (topic = '{name}', format = 'json', partitions = 1)")
        client.execute(f"CREATE CQ low AS SELECT n FROM {name} WHERE n < 5 DO PUBLISH SHARED")
        client.publish(name, [{"n": 7}, {"n": 3}])
        with client.subscribe("low") as results:
            assert {"n": 3} == next(iter(results)).row, (folder / "evaluator.log").read_text()
        client.execute("DROP CQ low")
        client.execute(f"DROP STREAM {name}")


@contextmanager
def _running(command: list[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=dict(environment), stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
