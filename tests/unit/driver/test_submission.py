"""An evaluator under `spark-submit`, whose JVM has its options already."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from grouping.model.errors import OperationalError
from spark_jobs.runtime.application.submission import options_left

_OURS = {
    "spark.master": "spark://m:7077",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.jars": "/jars/spark-sql-kafka.jar",
    "spark.locality.wait": "0s",
}
_GIVEN = {"spark.master": "spark://m:7077", "spark.driver.memory": "2g", "spark.jars": "file:///j/spark-sql-kafka.jar"}


def test_options_of_a_running_jvm_are_left_alone() -> None:
    """Its heap, its own options and its jars come too late; the rest is the session's."""
    assert {"spark.master": "spark://m:7077", "spark.locality.wait": "0s"} == options_left(_OURS, _GIVEN)


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"spark.master": "local[*]"}, 'spark-submit has "spark.master" as "local\\[\\*\\]"', "CQ_EVALUATOR_MASTER"),
        ({"spark.driver.memory": "1g"}, 'the evaluator as "2g"', "CQ_EVALUATOR_DRIVER_MEMORY"),
        ({"spark.jars": ""}, "no connector for Kafka", "--jars"),
    ],
)
def test_what_contradicts_is_refused(given: dict[str, str], message: str, hint: str) -> None:
    """Else an evaluator would run on this machine alone, with another heap, or fail at its first stream."""
    with pytest.raises(OperationalError, match=message) as refusal:
        options_left(_OURS, _GIVEN | given)
    assert hint in str(refusal.value.hint)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a room of process numbers")
def test_the_first_process_of_a_container_is_submitted_by_nobody() -> None:
    """The process has no parent that could be Spark's, and none to ask."""
    apart = ("unshare", "--pid", "--fork", "--kill-child")
    subprocess.run((*apart, sys.executable, "-c", "import spark_jobs.runtime.application.jvm"), check=True, timeout=60)
