"""`cq status`: reports of gateway and evaluator on the streams, for a person and a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app
from gateway.cli.status import servers_are_elsewhere
from gateway.local.run_folder import RunFolder, write_json
from grouping.settings.given_settings import given_settings

_QUARANTINED = {"g_1": {"since": "2026-11-21T10:00:00Z", "until": "2026-11-21T10:01:00Z", "reason": "it failed"}}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    """A data folder on which everything is ready."""
    run = RunFolder(tmp_path)
    run.prepare()
    with run.taken():
        roles = {
            "gateway": {"state": "ready", "pid": os.getpid(), "restarts": 1},
            "redis": {"state": "ready", "pid": None, "restarts": 0},
        }
        write_json(run.state, {"state": "ready", "told_at": time.monotonic(), "roles": roles})
        write_json(run.endpoints, {"bootstrap": "127.0.0.1:9092", "metrics_url": None, "pids": {"gateway": 1}})
        streams = {
            "quotes": {"behind": 3, "seconds_behind": 2.5, "cqs": 2, "groups": 1, "quarantined": _QUARANTINED},
            "orders": {"behind": 0, "quarantined": {}},
        }
        profiles = {"state": "loading", "rows": 1_200_000, "bytes": 70_000_000, "workers": 2, "lag": 5}
        owners = {"state": "unread", "rows": None, "bytes": None, "workers": 0, "lag": None}
        tables = {"profiles": profiles, "owners": owners}
        write_json(run.status("gateway"), {"streams": streams, "tables": tables})
        yield run


def _status(run: RunFolder, reason: str | None, *options: str) -> tuple[int, str]:
    write_json(run.status("evaluator"), {"streams": {"quotes": {"reason": reason}, "orders": {"reason": None}}})
    ran = CliRunner().invoke(app, ["status", "--data", str(run.data), *options])
    return ran.exit_code, ran.output


def test_a_stream_that_does_not_go_on_is_no_ready_state(run: RunFolder) -> None:
    """The state is degraded and the stream says why; the others say nothing of it."""
    reason = "a worker died, 3 times at one batch"
    code, output = _status(run, reason, "--json")
    report = json.loads(output)
    assert (1, "degraded", reason) == (code, report["state"], report["streams"]["quotes"]["reason"])
    assert "reason" not in report["streams"]["orders"]
    assert f"    not evaluated: {reason}" in _status(run, reason)[1].splitlines()


def test_a_stream_of_the_lane_is_told(run: RunFolder) -> None:
    """A person and a program see which streams share a query, and how far behind each stream is."""
    figures = run.read(run.status("gateway"))
    figures["streams"]["quotes"] |= {"lane": True}
    write_json(run.status("gateway"), figures)
    assert json.loads(_status(run, None, "--json")[1])["streams"]["quotes"]["lane"] is True
    lines = _status(run, None)[1].splitlines()
    assert "  stream quotes: 2 CQs, 3 events behind (2.5 s), in the lane" in lines
    assert "  stream orders: 0 events behind" in lines


def test_dead_letters_among_the_first_records_are_told(run: RunFolder) -> None:
    """The warning stands below the stream, which goes on."""
    report = run.read(run.status("gateway"))
    warning = "60 of the first 100 records are dead letters, mostly for this reason: The value is JSON but no object."
    report["streams"]["quotes"]["warnings"] = [warning]
    write_json(run.status("gateway"), report)
    code, output = _status(run, None)
    assert 0 == code
    assert f"    {warning}" in output.splitlines()


def test_a_stream_without_an_evaluator_is_no_ready_state(run: RunFolder) -> None:
    """With several evaluators, the gateway reports the evaluator of each stream, and a missing one."""
    report = run.read(run.status("gateway"))
    report["streams"]["quotes"] |= {"evaluator": "evaluator/fast"}
    report["streams"]["orders"] |= {"reason": "its evaluator/slow does not run", "seconds_behind": 0.0}
    write_json(run.status("gateway"), report)
    code, output = _status(run, None, "--json")
    assert (1, "degraded") == (code, json.loads(output)["state"])
    lines = _status(run, None)[1].splitlines()
    assert "  stream quotes: 2 CQs, 3 events behind (2.5 s), by evaluator/fast" in lines
    assert "    not evaluated: its evaluator/slow does not run" in lines


def test_a_quarantined_group_is_told_and_all_else_is_ready(run: RunFolder) -> None:
    """A subscriber's query makes nobody else's state worse."""
    code, output = _status(run, None, "--json")
    report = json.loads(output)
    assert (0, "ready", _QUARANTINED) == (code, report["state"], report["streams"]["quotes"]["quarantined"])
    lines = _status(run, None)[1].splitlines()
    assert "    g_1 has not been evaluated since 2026-11-21T10:00:00Z: it failed" in lines


def test_the_last_error_and_totals_are_told(run: RunFolder) -> None:
    """The last warning of a role, and its time; and the totals."""
    error = {"at": "2026-11-25T10:00:00.000+00:00", "level": "WARNING", "message": "a server failed error='away'"}
    write_json(run.status("gateway"), run.read(run.status("gateway")) | {"last_error": error})
    report = json.loads(_status(run, None, "--json")[1])
    assert error == report["roles"]["gateway"]["last_error"]
    assert {"cqs": 2, "groups": 1, "streams": 2, "tables": 2} == report["totals"]
    lines = _status(run, None)[1].splitlines()
    assert "    warning at 2026-11-25T10:00:00.000+00:00: a server failed error='away'" in lines
    assert "  2 CQs in 1 group over 2 streams, 2 tables" in lines


def test_a_recovery_is_told(run: RunFolder) -> None:
    """A person who waits for a gateway that fills Redis anew sees the progress."""
    recovery = {"topic": "cq.catalog", "read": 3_400_000, "records": 10_200_000}
    write_json(run.status("gateway"), run.read(run.status("gateway")) | {"recovery": recovery})
    assert recovery == json.loads(_status(run, None, "--json")[1])["roles"]["gateway"]["recovery"]
    lines = _status(run, None)[1].splitlines()
    assert "    has read 3,400,000 of 10,200,000 records of cq.catalog" in lines


def test_tables_are_told(run: RunFolder) -> None:
    """A program finds each table by its name, a person its state and size."""
    report = json.loads(_status(run, None, "--json")[1])
    assert {"profiles": ("loading", 1_200_000), "owners": ("unread", None)} == {
        name: (table["state"], table["rows"]) for name, table in report["tables"].items()
    }
    lines = _status(run, None)[1].splitlines()
    assert "  table profiles: loading, 1200000 rows (70.0 MB in each worker), 5 changes to be read" in lines
    assert "  table owners: unread" in lines


def test_version_addresses_and_uptimes_are_told(run: RunFolder) -> None:
    """A person and a program see the running roles, where, and since when."""
    report = json.loads(_status(run, None, "--json")[1])
    assert {"bootstrap": "127.0.0.1:9092"} == report["addresses"]
    gateway, redis = report["roles"]["gateway"], report["roles"]["redis"]
    assert gateway["uptime_seconds"] >= 0
    assert redis["uptime_seconds"] is None
    output = _status(run, None)[1]
    assert f"ready  (version {report['version']})" == output.splitlines()[0]
    assert "  bootstrap 127.0.0.1:9092" in output.splitlines()
    assert "  stream quotes: 2 CQs, 3 events behind (2.5 s)" in output.splitlines()
    assert "  stream orders: 0 events behind" in output.splitlines()


def _logs(run: RunFolder, *options: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "gateway.cli", "logs", "--data", str(run.data), *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def test_logs_are_shown(run: RunFolder) -> None:
    """The last lines of one role or of all; the error for an unknown role names the existing roles."""
    assert (1, "", f'cq: there are no logs in the data folder "{run.data}".\n') == _logs(run)
    for role in ("gateway", "evaluator"):
        run.log(role).write_text("".join(f"{role} {number}\n" for number in range(9)))
    assert (0, "gateway 7\ngateway 8\n", "") == _logs(run, "gateway", "-n", "2")
    assert {"evaluator 8", "gateway 8"} <= set(_logs(run, "--lines", "1")[1].splitlines())
    assert (1, 'cq: there is no log of "spark". There are: evaluator, gateway.\n') == _logs(run, "spark")[::2]


def test_a_folder_on_which_the_first_start_failed_is_stopped(tmp_path: Path) -> None:
    """The supervisor has written no state of any role there."""
    RunFolder(tmp_path).prepare()
    ran = CliRunner().invoke(app, ["status", "--data", str(tmp_path)])
    assert (1, SystemExit) == (ran.exit_code, type(ran.exception))
    assert ran.output.startswith("stopped ")


def test_a_container_looks_at_the_servers_of_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No supervisor runs there; a folder on which `cq up` ran keeps its answer."""
    run = RunFolder(tmp_path)
    run.prepare()
    assert not servers_are_elsewhere(given_settings(), run)
    monkeypatch.setenv("CQ_KAFKA_BOOTSTRAP", "kafka:19092")
    assert servers_are_elsewhere(given_settings(), run)
    write_json(run.state, {"state": "stopped", "roles": {}})
    assert not servers_are_elsewhere(given_settings(), run)
