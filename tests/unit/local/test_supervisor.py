"""The supervisor over small programs: order, restarts, and nothing left behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path

import psutil
import pytest

from gateway.local.program import Program
from gateway.local.role import STEADY, Role
from gateway.local.run_folder import RunFolder, write_json
from gateway.local.sessions import supervised
from gateway.local.status_file import StatusFile, StatusWatch
from gateway.local.supervisor import Supervisor, supervised_state
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
print("up", child.pid, flush=True)
time.sleep(300)
"""
"""A role with a child of its own, as an evaluator has."""

TELLING = """
import sys, time
from pathlib import Path
from gateway.local.status_file import StatusFile
while True:
    StatusFile(Path(sys.argv[1])).write("ready")
    time.sleep(0.05)
"""
"""A role that tells its state, as gateway and evaluator do."""

_ADDRESSES = {"bootstrap": "b", "redis_url": "r"}


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


def _supervise(
    run: RunFolder,
    programs: list[Program],
    acts: list[Callable[[], None]],
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Run until every act has been done, one each time all is ready, then stop as a Ctrl-C would."""
    lines: list[str] = []
    stages = [[program] for program in programs]
    supervisor = Supervisor(run, stages, _ADDRESSES, lines.append, Settings(), clock)
    step = supervisor.step

    def step_and_act() -> None:
        step()
        if json.loads(run.state.read_text())["state"] == "ready":
            if acts:
                acts.pop(0)()
            else:
                os.kill(os.getpid(), signal.SIGINT)

    supervisor.step = step_and_act  # type: ignore[method-assign]
    supervisor.run()
    return lines


def test_stages_start_in_order(run: RunFolder) -> None:
    """A role starts when the stage before is ready, and `ready` comes last, with the addresses."""
    lines = _supervise(run, [_program(run, "kafka"), _program(run, "gateway")], [])
    assert ["kafka", "gateway", "ready"] == [line.split()[0] for line in lines]
    assert "bootstrap b" in lines[-1]


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
    """A role's own state counts as long as it runs: a waiting role is not ready, and is not restarted."""
    status = run.status("gateway")
    program = replace(_program(run, "gateway"), ready=lambda _: run.read(status).get("state") == "ready", status=status)
    role = Role(program, dict(os.environ), time.monotonic, 60.0)
    role.start()
    try:
        lines = []
        for state in ("ready", "waiting", "waiting", "ready"):
            write_json(status, {"state": state})
            lines.append((role.step(), role.state))
        assert [(True, "ready"), (True, "waiting"), (False, "waiting"), (True, "ready")] == lines
        assert role.restarts == 0
    finally:
        role.terminate()
        role.end()


class WatchedRole:
    """A role that reports its state, with a clock moved by hand."""

    def __init__(self, run: RunFolder) -> None:
        status = run.status("gateway")
        self.now = 0.0
        program = replace(
            _program(run, "gateway"),
            command=(sys.executable, "-c", TELLING, str(status)),
            ready=lambda _: run.read(status).get("state") == "ready",
            heard=StatusWatch(status).heard,
            status=status,
        )
        self.role = Role(program, dict(os.environ), lambda: self.now, 60.0)
        self.role.start()

    def until(self, state: str) -> float:
        """Return after how many seconds of its clock, a second a look, the role has that state.

        While a running process is to get ready, the clock stands: the duration depends on the machine.
        """
        begun = self.now
        while self.role.state != state:
            self.role.step()
            self.now += 0.0 if state == "ready" and self.role.pid is not None else 1.0
            time.sleep(0.02)
            assert self.now < begun + 500, f"still {self.role.state}, not {state}"
        return self.now - begun


@pytest.fixture
def watched(run: RunFolder) -> Iterator[WatchedRole]:
    """A watched role, once ready."""
    watched = WatchedRole(run)
    watched.until("ready")
    yield watched
    watched.role.terminate()
    watched.role.end()


def test_a_role_that_hangs_is_not_ready_and_started_again(watched: WatchedRole) -> None:
    """A stopped role is silent after ten seconds, and replaced after the setting's time."""
    stopped = watched.role.pid
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    assert 10 <= watched.until("silent") <= 13
    assert 50 <= watched.until("restarting") <= 53
    watched.until("ready")
    assert (1, True) == (watched.role.restarts, watched.role.pid != stopped)


def test_a_start_for_which_there_is_no_room_is_tried_again(watched: WatchedRole) -> None:
    """A full disk ends neither the supervisor nor the role's restarts."""
    role, full = watched.role, [OSError(errno.ENOSPC, "No space left on device")] * 3

    def prepare() -> None:
        if full:
            raise full.pop()

    role.program = replace(role.program, prepare=prepare)
    assert role.pid is not None
    os.kill(role.pid, signal.SIGKILL)
    watched.until("restarting")
    watched.until("ready")
    assert ([], 4) == (full, role.restarts)


def test_restarts_in_a_row_wait_and_the_first_does_not(watched: WatchedRole) -> None:
    """Each death soon after another waits longer; a role that was ready for a while is started at once."""

    def killed() -> float:
        assert watched.role.pid is not None
        os.kill(watched.role.pid, signal.SIGKILL)
        os.waitid(os.P_PID, watched.role.pid, os.WEXITED | os.WNOWAIT)  # the role's next look meets the death
        return watched.until("restarting") + watched.until("ready")

    at_once = 1  # a look, of a second
    assert [at_once, 1, 2, 5] == [killed() for _ in range(4)]
    watched.now += STEADY + 1
    assert at_once == killed()


def test_a_role_that_goes_on_is_ready_again(watched: WatchedRole) -> None:
    """A role that hung for less than the limit is not disturbed."""
    stopped = watched.role.pid
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    watched.until("silent")
    os.kill(stopped, signal.SIGCONT)
    watched.until("ready")
    assert (0, stopped) == (watched.role.restarts, watched.role.pid)


def test_a_supervisor_that_slept_blames_nobody(watched: WatchedRole) -> None:
    """Time in which the supervisor itself did not look is no role's silence."""
    for _ in range(4):
        watched.now += 1000.0
        assert (False, "ready") == (watched.role.step(), watched.role.state)


def test_a_new_word_is_heard_whatever_the_clock_says(tmp_path: Path) -> None:
    """Words count by being new: also where the disk is full, and where their times go backwards or stand still."""
    path = tmp_path / "gateway.json"
    watch, file = StatusWatch(path), StatusFile(path)
    assert not watch.heard()
    file.write("ready")
    assert [True, False] == [watch.heard(), watch.heard()]
    os.utime(path, (1_000_000, 1_000_000))
    assert [True, False] == [watch.heard(), watch.heard()]
    file.write("ready")
    os.utime(path, (1_000_000, 1_000_000))
    assert [True, False] == [watch.heard(), watch.heard()]


def test_a_supervisor_that_hangs_is_told_of() -> None:
    """The last written state counts for ten seconds."""
    report = {"state": "ready", "told_at": 500.0, "roles": {"gateway": {"state": "ready", "pid": 2, "restarts": 0}}}
    assert {"state": "ready", "roles": report["roles"]} == supervised_state(report, 1, 509.0)
    late = supervised_state(report, 1, 511.0)
    assert ("degraded", {"state": "silent", "pid": 1, "restarts": 0}) == (late["state"], late["roles"]["supervisor"])


def test_a_role_that_never_gets_ready_ends_the_start(run: RunFolder) -> None:
    """A person is told its own last line, with the place of its log."""
    refusing = _program(run, "gateway", "import sys; sys.exit('cq: another gateway serves the prefix \"cq.\"')")
    with pytest.raises(OperationalError, match="the gateway does not start: another gateway serves") as failure:
        _supervise(run, [_program(run, "kafka"), refusing], [])
    assert str(run.log("gateway")) in str(failure.value.hint)


def _long_start(run: RunFolder, progress: Iterator[str]) -> list[str]:
    """Start a role that is ready after fifty looks, with a clock that advances by ten seconds a look; return the lines.

    Args:
        run: The data folder.
        progress: By look, how far the role says that its start is.
    """
    looks, clock = count(), count(step=10.0)
    program = replace(_program(run, "gateway"), ready=lambda _: next(looks) >= 50, progress=lambda: next(progress))
    return _supervise(run, [program], [], lambda: next(clock))


def test_a_start_that_comes_further_may_take_any_time(run: RunFolder) -> None:
    """A gateway that fills Redis with ten million CQs takes minutes; people are told how far it is."""
    found = _long_start(run, (f"has read {read} of 50 records of cq.catalog" for read in count()))
    assert any(line.startswith("gateway has read ") for line in found)
    assert found[-1].startswith("ready")


def test_a_start_that_comes_no_further_ends(run: RunFolder) -> None:
    """A role that lives and gets nowhere is given up after three minutes."""
    with pytest.raises(OperationalError, match="the gateway is not ready after 2[0-9]{2} s"):
        _long_start(run, repeat("has read 7 of 50 records of cq.catalog"))


def test_nothing_survives_the_supervisor(run: RunFolder) -> None:
    """A supervisor that is killed takes its roles and their children with it."""
    code = f"""
import sys
from pathlib import Path
from gateway.local.run_folder import RunFolder
from gateway.local.supervisor import Supervisor
from grouping.settings.settings import Settings
from tests.unit.local.test_supervisor import _program
run = RunFolder(Path({str(run.data)!r}))
stages = [[_program(run, "evaluator")]]
Supervisor(run, stages, {{"bootstrap": "", "redis_url": ""}}, lambda line: print(line, flush=True), Settings()).run()
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
