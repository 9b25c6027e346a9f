"""A fault in the environment is a single line that names the variable and shows no value, for every program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grouping.model.errors import OperationalError
from grouping.settings.given_settings import given_settings


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("CQ_KAFKA_EXTRA", '{"sasl.password": hush', "CQ_KAFKA_EXTRA is not valid: it must be a JSON object"),
        ("cq_evaluator_spark", "hush", "cq_evaluator_spark is not valid: it must be a JSON object"),
        ("CQ_KAFKA", "{hush", "CQ_KAFKA is not valid: it must be a JSON object"),
        ("CQ_KAFKA_EXTRA", '["hush"]', "CQ_KAFKA_EXTRA is not valid: "),
        ("CQ_TIMERS_WAIT_SECONDS", "hush", "CQ_TIMERS_WAIT_SECONDS is not valid: input should be a valid number"),
        ("CQ_KAFKA_PASSWORD_FILE", "/nonexistent", 'secret cannot be read: "/nonexistent": no such file or directory'),
        ("CQ_KAFKA_PASSWORD_FILE", sys.executable, "the file of a secret is not text in UTF-8"),
    ],
)
def test_what_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, line: str) -> None:
    """Neither the line nor its chained exceptions contain the value."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(OperationalError) as refusal:
        given_settings()
    assert line in refusal.value.line
    assert "hush" not in refusal.value.line
    assert refusal.value.__context__ is None


@pytest.mark.parametrize("program", ["spark_jobs.runtime.driver.job", "gateway.cli status", "gateway.cli gateway"])
def test_nobody_sees_a_stack_trace(program: str, tmp_path: Path) -> None:
    """A single line and exit code 1, for every program."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "CQ_KAFKA_EXTRA": "{x", "CQ_DATA": str(tmp_path)}
    command = [sys.executable, "-m", *program.split()]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (1, 1) == (ran.returncode, len(ran.stderr.splitlines())), ran.stderr
    assert "CQ_KAFKA_EXTRA is not valid: it must be a JSON object" in ran.stderr
