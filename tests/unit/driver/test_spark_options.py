"""Spark's options, for any master."""

from __future__ import annotations

from pathlib import Path

import pytest

from grouping.model.errors import OperationalError
from grouping.settings.evaluator_settings import EvaluatorSettings
from grouping.settings.settings import Settings
from spark_jobs.runtime.application.spark_options import spark_options

_HOST, _BIND = "spark.driver.host", "spark.driver.bindAddress"


@pytest.fixture
def jars(tmp_path: Path) -> str:
    """A folder with a connector."""
    (tmp_path / "spark-sql-kafka-0-10.jar").touch()
    return str(tmp_path)


def _options(jars: str, **given: object) -> dict[str, str]:
    settings = {"jars": jars, "spark_secret": "hidden", **given}
    return spark_options(Settings(evaluator=EvaluatorSettings.model_validate(settings)))


def test_a_local_driver_listens_on_loopback(jars: str) -> None:
    """Elsewhere executors must reach the driver, at the given address or at the address found by Spark."""
    assert {"127.0.0.1"} == {_options(jars)[name] for name in (_HOST, _BIND)}
    assert not {_HOST, _BIND} & _options(jars, master="spark://m:7077").keys()
    found = _options(jars, master="k8s://https://m", driver_host="evaluator", bind_address="0.0.0.0")  # noqa: S104
    assert ("evaluator", "0.0.0.0") == (found[_HOST], found[_BIND])  # noqa: S104


def test_a_cluster_without_a_secret_is_refused(jars: str) -> None:
    """Tasks hold secrets; who wants them in the open says so. A local master needs no secret."""
    for master in ("spark://m:7077", "yarn", "k8s://https://m"):
        with pytest.raises(OperationalError, match="is not local, and there is no secret"):
            _options(jars, master=master, spark_secret="")
        for chosen in ("true", "false"):
            given = _options(jars, master=master, spark_secret="", spark={"spark.authenticate": chosen})
            assert chosen == given["spark.authenticate"]
    assert "spark.authenticate" not in _options(jars, spark_secret="")


def test_further_options_are_passed_through(jars: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the environment, as JSON."""
    monkeypatch.setenv("CQ_EVALUATOR_JARS", jars)
    monkeypatch.setenv("CQ_EVALUATOR_SPARK", '{"spark.executor.memory": "4g"}')
    assert "4g" == spark_options(Settings())["spark.executor.memory"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("spark.speculation", "Leave it out."),
        ("spark.master", "Set CQ_EVALUATOR_MASTER instead."),
        ("spark.driver.host", "Set CQ_EVALUATOR_DRIVER_HOST instead."),
        ("executor.memory", 'Names begin with "spark.".'),
    ],
)
@pytest.mark.parametrize("master", ["local[2]", "spark://m:7077"])
def test_what_the_evaluator_relies_on_stays(jars: str, name: str, hint: str, master: str) -> None:
    """Such an option is refused by name, without its value, which may be a secret."""
    with pytest.raises(OperationalError, match=name) as refusal:
        _options(jars, master=master, spark={name: "hush"})
    assert hint == refusal.value.hint
    assert "hush" not in refusal.value.line
