"""Secrets of Spark reach it, and stand in no argument of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.local.jars import SPARK, ensure_jars
from gateway.local.java import find_java
from grouping.settings.settings import Settings
from spark_jobs.runtime.application.properties_file import properties_file

_PROGRAM = """
import contextlib, psutil
from grouping.settings.given_settings import given_settings
from spark_jobs.runtime.application.jvm import end_jvm
from spark_jobs.runtime.application.session import open_session
spark = open_session(given_settings(), {"spark.sql.catalogImplementation": "in-memory"})
told = spark.sparkContext.getConf()
for name in ("spark.authenticate", "spark.authenticate.secret", "spark.network.crypto.enabled", "spark.hadoop.own.key"):
    print(told.get(name))
print(spark.range(3).count())
arguments = ""
for process in psutil.Process().children(recursive=True):
    with contextlib.suppress(psutil.NoSuchProcess):  # a worker that has just ended
        arguments += " ".join(process.cmdline()) + " "
print("--properties-file" in arguments, "hush" in arguments)
end_jvm()
"""


def test_a_secret_is_in_no_argument(tmp_path: Path) -> None:
    """Neither the one that processes share nor further options, whatever is in them; jobs run with them."""
    hidden = '"hush=:# \\ ü😀'
    given = {
        "CQ_EVALUATOR_MASTER": "local[1]",
        "CQ_EVALUATOR_JARS": str(ensure_jars(SPARK, Settings().jars, lambda there, of: None)),
        "CQ_EVALUATOR_SPARK_SECRET_FILE": str(tmp_path / "secret"),
        "CQ_EVALUATOR_SPARK": '{"spark.hadoop.own.key": "\\"hush=:# \\\\ ü😀"}',
        "JAVA_HOME": str(find_java().home),
        "PYTHONIOENCODING": "utf-8",
        "TMPDIR": str(tmp_path),
    }
    (tmp_path / "secret").write_text("hush-hush\n")
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env={**os.environ, **given}, capture_output=True, text=True, check=False
    )
    assert ["true", "hush-hush", "true", hidden, "3", "True False"] == ran.stdout.splitlines(), ran.stderr
    assert not list(tmp_path.glob("*.conf"))


def test_the_file_is_the_users_own_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further arguments for the JVM that the environment has stay as they are, also after a failure."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--verbose pyspark-shell")
    with pytest.raises(RuntimeError), properties_file({"spark.a": "b"}):
        _, name, *rest = os.environ["PYSPARK_SUBMIT_ARGS"].split()
        assert ["--load-spark-defaults", "--verbose", "pyspark-shell"] == rest
        assert (0o600, "spark.a=b\n") == (Path(name).stat().st_mode & 0o777, Path(name).read_text())
        raise RuntimeError
    assert "--verbose pyspark-shell" == os.environ["PYSPARK_SUBMIT_ARGS"]
    assert not Path(name).exists()
