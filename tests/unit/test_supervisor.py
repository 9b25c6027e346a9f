"""The supervisor over small programs: order, restarts, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gateway.local.program import Program
from gateway.role import Role
from gateway.run_folder import RunFolder, write_json
from gateway.sessions import supervised
from gateway.supervisor import Supervisor
from grouping.errors import OperationalError

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
print("up", child.pid, flush=True)
time.sleep(300)
"""
"""A role with a child of its own, as an evaluator has."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    """A data folder, on which nothing may run after the test."""
    folder = RunFolder(tmp_path / "data")
    folder.prepare()
    yield folder
    left = supervised(folder.data)
    for process in left:
        process.kill()
    assert not left


def _program(run: RunFolder, role: str, code: str = FAMILY) -> Program:
    log = run.log(role)

    def ready(since: int) -> bool:
        return b"up" in log.read_bytes()[since:]

    return Program(role, (sys.executable, "-c", code), run.data, log, ready, stop_seconds=5.0)


def _supervise(run: RunFolder, programs: list[Program], acts: list[Callable[[], None]]) -> list[str]:
    """Run until every act has been done, one each time all is ready, then stop as a Ctrl-C would."""
    told: list[str] = []
    supervisor = Supervisor(run, [[program] for program in programs], {"bootstrap": "b", "redis_url": "r"}, told.append)
    step = supervisor._step

    def step_and_act() -> None:
        step()
        if json.loads(run.state.read_text())["state"] == "ready":
            if acts:
                acts.pop(0)()
            else:
                os.kill(os.getpid(), signal.SIGINT)

    supervisor._step = step_and_act  # type: ignore[method-assign]
    supervisor.run()
    return told


def test_stages_start_in_order(run: RunFolder) -> None:
    """A role starts when the stage before is ready, and `ready` comes last, with the addresses."""
    told = _supervise(run, [_program(run, "kafka"), _program(run, "gateway")], [])
    assert ["kafka", "gateway", "ready"] == [line.split()[0] for line in told]
    assert "bootstrap b" in told[-1]


def test_a_dead_role_is_restarted(run: RunFolder) -> None:
    """After a SIGKILL the role runs anew, its old children are gone, and the endpoints name the new pid."""
    pids: list[int] = []
    families: list[psutil.Process] = []

    def kill() -> None:
        pids.append(json.loads(run.endpoints.read_text())["pids"]["evaluator"])
        families.extend(psutil.Process(pids[0]).children())
        os.kill(pids[0], signal.SIGKILL)

    def look() -> None:
        roles = json.loads(run.state.read_text())["roles"]
        pids.append(json.loads(run.endpoints.read_text())["pids"]["evaluator"])
        assert {"state": "ready", "pid": pids[1], "restarts": 1} == roles["evaluator"]
        assert len(families) == 1
        assert not any(process.is_running() for process in families)

    def await_death() -> None:
        psutil.wait_procs(families, timeout=20)

    _supervise(run, [_program(run, "evaluator")], [kill, await_death, look])
    assert pids[0] != pids[1]
    assert not run.endpoints.exists()


def test_a_role_that_waits_for_a_server_is_not_ready(run: RunFolder) -> None:
    """What a role says of itself counts as long as it runs: while it waits it is not ready, and is not restarted."""
    status = run.status("gateway")
    program = replace(_program(run, "gateway"), ready=lambda _: run.read(status).get("state") == "ready", status=status)
    role = Role(program, dict(os.environ), time.monotonic)
    role.start()
    try:
        told = []
        for state in ("ready", "waiting", "waiting", "ready"):
            write_json(status, {"state": state})
            told.append((role.step(), role.state))
        assert [(True, "ready"), (True, "waiting"), (False, "waiting"), (True, "ready")] == told
        assert role.restarts == 0
    finally:
        role.terminate()
        role.end()


def test_a_role_that_never_gets_ready_ends_the_start(run: RunFolder) -> None:
    """Its own last line is what a person is told, with the place of its log."""
    refusing = _program(run, "gateway", "import sys; sys.exit('cq: another gateway serves the prefix \"cq.\"')")
    with pytest.raises(OperationalError, match="the gateway does not start: another gateway serves") as failure:
        _supervise(run, [_program(run, "kafka"), refusing], [])
    assert str(run.log("gateway")) in str(failure.value.hint)


def test_nothing_survives_the_supervisor(run: RunFolder) -> None:
    """A supervisor that is killed takes its roles and their children with it."""
    code = f"""
import sys
from pathlib import Path
from gateway.run_folder import RunFolder
from gateway.supervisor import Supervisor
from tests.unit.test_supervisor import _program
run = RunFolder(Path({str(run.data)!r}))
stages = [[_program(run, "evaluator")]]
Supervisor(run, stages, {{"bootstrap": "", "redis_url": ""}}, lambda line: print(line, flush=True)).run()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        for line in supervisor.stdout:
            if line.startswith("ready"):
                break
        family = supervised(run.data)
        assert len(family) == 2
        supervisor.kill()
    assert not psutil.wait_procs(family, timeout=20)[1]


def test_one_supervisor_per_folder(run: RunFolder) -> None:
    """A second start on the same folder is refused, and the first is named; afterwards the folder is free."""
    with run.taken():
        assert run.holder() == os.getpid()
        with pytest.raises(OperationalError, match=f"runs already on .*pid {os.getpid()}"), run.taken():
            pass
    assert run.holder() is None
