"""`cq up`, `cq down` and `cq status` as a user meets them: their refusals, and their remains."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.local.sessions import supervised
from tests.kafka_client import wait_until
from tests.stack.lab import Lab
from tests.stack.server import Stack


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder of the test's own, on which nothing may run afterwards."""
    folder = tmp_path / "data"
    yield folder
    left = supervised(folder)
    for process in left:
        process.kill()
    assert not left


def _cq(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gateway.cli", *map(str, arguments)]
    variables = {**os.environ, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=400, check=False)


def _refusal(*arguments: str | Path, **environment: str) -> str:
    """Return the one line that a start in vain prints."""
    ran = _cq(*arguments, **environment)
    lines = ran.stderr.splitlines()
    assert (1, "", 1) == (ran.returncode, ran.stdout, len(lines)), ran.stderr
    assert lines[0].startswith("cq: ")
    return lines[0]


def test_a_taken_port_is_refused(data: Path) -> None:
    """The line names the port and the option to give another."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = _refusal("up", "--data", data, "--kafka-port", str(port))
    assert f"port {port} for kafka is taken" in line
    assert "--kafka-port" in line


def test_a_port_that_there_is_not(data: Path) -> None:
    """A number that no port has is told as any wrong option is."""
    ran = _cq("up", "--data", data, "--redis-port", "65536")
    assert (2, "") == (ran.returncode, ran.stdout)
    assert "--redis-port" in ran.stderr and "Traceback" not in ran.stderr


def test_a_given_server_must_answer(data: Path) -> None:
    """A Kafka or a Redis that is not there is named, without its password."""
    assert 'no Kafka answers at "127.0.0.1:1"' in _refusal("up", "--data", data, "--kafka", "127.0.0.1:1")
    line = _refusal("up", "--data", data, CQ_REDIS_URL="redis://:hush@127.0.0.1:1/0")
    assert "no Redis answers at" in line
    assert "hush" not in line


def test_a_bad_folder_is_refused(tmp_path: Path) -> None:
    """A data folder that cannot be made is one line, with --detach too."""
    (tmp_path / "file").touch()
    assert "cannot be used: not a directory" in _refusal("up", "--data", tmp_path / "file" / "data")
    assert "cannot be used: not a directory" in _refusal("up", "--detach", "--data", tmp_path / "file" / "data")


def test_without_java(data: Path, tmp_path: Path) -> None:
    """Where there is no Java the line says which ones will do."""
    line = _refusal("up", "--data", data, PATH=str(tmp_path), JAVA_HOME="")
    assert "no Java was found" in line
    assert "17 or 21" in line


def test_a_bad_setting_is_named(data: Path) -> None:
    """A setting of the environment that cannot be read is named as it is written there."""
    assert "CQ_METRICS_PORT" in _refusal("up", "--data", data, CQ_METRICS_PORT="many")


def test_nothing_runs_on_a_new_folder(data: Path) -> None:
    """Status says so with exit code 1; down has nothing to do and is content."""
    ran = _cq("status", "--data", data, "--json")
    report = json.loads(ran.stdout)
    assert (1, "stopped") == (ran.returncode, report["state"])
    assert not any(report[name] for name in ("roles", "addresses", "streams", "tables"))
    assert 0 == _cq("down", "--data", data).returncode


def test_a_second_start_is_refused(stack: Stack) -> None:
    """Who runs on the folder already is named, and is not disturbed."""
    pids = stack.endpoints()["pids"]
    assert f'runs already on "{stack.data}" (pid {pids["supervisor"]})' in _refusal("up", "--data", stack.data)
    assert pids == stack.endpoints()["pids"]


def test_the_doctor_finds_nothing_wrong(stack: Stack) -> None:
    """Whatever other tests have left, Redis, tables and topics are as the catalog says; only sources may have gone."""

    def sound() -> bool:
        """Tell whether nothing is wrong: a role may be late, and topics of the test before may be on their way out."""
        code, found = stack.doctor()
        print(found)  # for the report of a failure
        codes = {finding["code"] for finding in found["findings"]}
        assert code == bool(codes)
        return codes <= {"source-missing", "quarantined"}

    wait_until(sound, "doctor without findings")


def test_top_shows_streams_and_subscribers(stack: Stack, lab: Lab) -> None:
    """A stream with a CQ is there, with rates, and so is who has it."""
    source = lab.stream("a INT")
    lab.create("mine", f"SELECT a FROM {source.name} WHERE a = 1")
    report: dict[str, Any] = {}

    def shown() -> bool:
        report.update(json.loads(_cq("top", "--data", stack.data, "--once", "--json", "--every", "0.5").stdout))
        return any(each["stream"] == source.name and each["cqs"] for each in report["streams"])

    wait_until(shown, "the stream's CQ")
    [stream] = [each for each in report["streams"] if each["stream"] == source.name]
    assert (1, 1, 0, 0.0) == tuple(stream[name] for name in ("cqs", "groups", "behind", "seconds_behind"))
    assert report["subscribers"][0]["cqs"] >= 1


def test_loopback_only(stack: Stack) -> None:
    """Nothing that was started can be reached from another machine."""
    family = [psutil.Process(stack.endpoints()["pids"]["supervisor"]), *supervised(stack.data)]
    listening: list[str] = []
    for process in family:
        with suppress(psutil.NoSuchProcess):  # a worker that ended by itself meanwhile
            connections = process.net_connections("tcp")
            listening += [each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN]
    assert len(listening) >= 4
    assert {"127.0.0.1"} == {ip.removeprefix("::ffff:") for ip in listening}


def test_the_files_are_the_owners(stack: Stack) -> None:
    """Addresses, which may tell more than names, are readable by their owner alone."""
    assert 0o600 == (stack.data / "endpoints.json").stat().st_mode & 0o777
