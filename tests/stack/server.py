"""The real servers as a user starts them: the command line, a data folder, and `endpoints.json`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

import psutil

from gateway.cli.status import local_answer
from gateway.local.run_folder import RunFolder

__all__ = ["DEDICATED_LIMIT", "EVENT_ROWS", "LINGER_SECONDS", "SPARK_FROM", "TRACED_SHARE", "Stack"]

DEDICATED_LIMIT = 20
SPARK_FROM = 40
"""The number of destinations with the same tick from which on Spark makes their digests: a small one, for tests."""
EVENT_ROWS = 1000
"""The largest number of joined rows for an event: the smallest value that the setting allows."""
LINGER_SECONDS = 15
"""The seconds from a dedicated topic's cq.end to its deletion: enough to read the end, few enough to await the rest."""
TRACED_SHARE = 0.01
"""The share of events of the shared servers that are traced."""
_ENVIRONMENT = {
    "CQ_TRACES_SHARE": str(TRACED_SHARE),
    "CQ_RESULTS_DEDICATED_LIMIT": str(DEDICATED_LIMIT),
    "CQ_RESULTS_LINGER_SECONDS": str(LINGER_SECONDS),
    "CQ_COMMANDS_REMEMBER_DAYS": "1",
    "CQ_EVALUATOR_EVENT_ROWS": str(EVENT_ROWS),
    "CQ_EVALUATOR_IDLE_SECONDS": "1",
    # Each poll of an idle stream takes 10 ms of CPU time away from the work that other tests wait for.
    "CQ_EVALUATOR_POLL_MS": "250",
    "CQ_TIMERS_SPARK_FROM": str(SPARK_FROM),
    # A JVM runs for only some minutes here, on the cores of the tests: its second compiler costs more than it saves.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
}
_OWN_LINE = re.compile(r"\d{4}-\d\d-\d\d \S+ (INFO|WARNING|ERROR|CRITICAL) ")


class Stack:
    """`cq up` on a data folder. The class uses only the files and exit codes that docs/operating.md describes."""

    prefix = "cq."
    known: ClassVar[WeakSet[Stack]] = WeakSet()
    """The stacks of this process, for the report of a failure."""
    folders: ClassVar[list[Path]] = []
    """The data folders of all stacks of this process, including those that have ended."""

    def __init__(self, data: Path, *options: str, within: Sequence[str] = (), **environment: str) -> None:
        """Prepare `cq up` on a folder.

        Args:
            data: The folder.
            options: Further options.
            within: A command that runs `cq` in another environment.
            environment: Environment variables.
        """
        self.data = data
        self._within = within
        self._options = options
        self._environment = environment
        self.known.add(self)
        if data not in self.folders:
            self.folders.append(data)

    @property
    def bootstrap(self) -> str:
        """Kafka's address."""
        return str(self.endpoints()["bootstrap"])

    @property
    def redis_url(self) -> str:
        """The URL of Redis."""
        return str(self.endpoints()["redis_url"])

    def endpoints(self) -> dict[str, Any]:
        """Return the present content of `endpoints.json`."""
        return json.loads((self.data / "endpoints.json").read_text())

    def up(self) -> str:
        """Start everything, and return the output of `cq up` when everything is ready."""
        return self._cq("up", "--data", str(self.data), *self._options, "--detach", timeout=400)

    def foreground(self) -> subprocess.Popen[str]:
        """Start everything as a child of this process, and return the child when it is ready."""
        command = [*self._within, sys.executable, "-m", "gateway.cli", "up", "--data", str(self.data), *self._options]
        up = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **_ENVIRONMENT, **self._environment}, start_new_session=True,
        )  # fmt: skip
        assert up.stdout is not None
        assert up.stdout.readline().startswith("ready"), self.logs()
        return up

    def down(self) -> None:
        """Stop everything; no process of the stack may be left."""
        pids = [pid for pid in self.endpoints()["pids"].values() if pid]
        families: list[int] = []
        for pid in pids:
            with suppress(psutil.NoSuchProcess):  # the process has ended
                families += [child.pid for child in psutil.Process(pid).children(recursive=True)]
        self._cq("down", "--data", str(self.data), timeout=300)
        deadline = time.monotonic() + 60
        while left := [pid for pid in {*pids, *families} if _alive(pid)]:
            assert time.monotonic() < deadline, f"cq down left the processes {left}"
            time.sleep(0.05)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Stop everything if this process is killed within the block, since `--detach` leaves programs running."""
        down = [*self._within, sys.executable, "-m", "gateway.cli", "down", "--data", str(self.data)]
        guard = subprocess.Popen(
            ["sh", "-c", 'read -r line || exec "$@"', "sh", *down],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            yield
        finally:
            guard.communicate(b"\n")  # the end of the input without a line is the death of this process

    def status(self) -> tuple[int, dict[str, Any]]:
        """Return the exit code and the answer of `cq status --json`."""
        ran = self._run("status", "--data", str(self.data), "--json", timeout=120)
        return ran.returncode, json.loads(ran.stdout)

    def doctor(self) -> tuple[int, dict[str, Any]]:
        """Return the exit code and the answer of `cq doctor --json`, with the settings that the roles have."""
        ran = self._run("doctor", "--data", str(self.data), "--json", timeout=400)
        return ran.returncode, json.loads(ran.stdout)

    def report(self) -> dict[str, Any]:
        """Return the answer of `cq status --json`, without a process of its own.

        A test that waits for a state calls this many times, and each `cq status` would take a second of CPU time.
        """
        time.sleep(0.05)
        return local_answer(RunFolder(self.data))

    def stream_report(self, name: str) -> dict[str, Any]:
        """Return the report of `cq status` on a stream: empty until the evaluator has reported it."""
        return dict(self.report()["streams"].get(name, {}))

    def table_report(self, name: str) -> dict[str, Any]:
        """Return the report of `cq status` on a table: empty until the gateway has reported it."""
        return dict(self.report()["tables"].get(name, {}))

    def kill(self, role: str) -> int:
        """Kill a role with SIGKILL, and return its pid; if the role is just being started again, wait for its pid."""
        while not (pid := self.endpoints()["pids"][role]):
            time.sleep(0.05)
        with suppress(ProcessLookupError):  # ended by itself, since a server was killed before
            os.kill(pid, signal.SIGKILL)
        return int(pid)

    def kill_workers(self) -> None:
        """Kill all Python workers of Spark, and first wait until there is a worker: the first events start them."""
        deadline = time.monotonic() + 120
        while not self._killed_workers():
            assert time.monotonic() < deadline, "no worker evaluates events"
            time.sleep(0.05)

    def _killed_workers(self) -> int:
        """Kill the present workers, and return their number."""
        workers = 0
        for each in psutil.Process(int(self.endpoints()["pids"]["evaluator"])).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # ended by itself meanwhile
                if "pyspark.worker" in each.cmdline():
                    each.kill()
                    workers += 1
        return workers

    def await_restart(self, role: str, pid: int, timeout: float = 500.0) -> None:
        """Return when the role runs under another pid and everything is ready again."""
        deadline = time.monotonic() + timeout
        while (report := self.report())["state"] != "ready" or report["roles"][role]["pid"] in (None, pid):
            assert time.monotonic() < deadline, f"{role} was not restarted: {report}"

    def settled_jobs(self) -> int:
        """Return how many jobs Spark has started, from a status written after the call."""
        return int(self._evaluator_report()["jobs"])

    def settled_streams(self) -> dict[str, dict[str, Any]]:
        """Return the evaluator's report on each stream, from a status written after the call."""
        return dict(self._evaluator_report()["streams"])

    def _evaluator_report(self) -> dict[str, Any]:
        run = RunFolder(self.data)
        report = run.read(run.status("evaluator"))
        for _ in range(2):  # figures of the first report that comes may have been taken before the call
            before = report.get("told_at")
            while (report := run.read(run.status("evaluator"))).get("told_at") in (None, before):
                time.sleep(0.05)
        return report

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Fail if the evaluator logs within the block that groups could not be evaluated together.

        The results do not show this, because the evaluator then evaluates each group by itself.
        """
        path = self.data / "logs" / "evaluator.log"
        before = path.stat().st_size
        yield
        with path.open(errors="replace") as log:
            log.seek(before if before <= path.stat().st_size else 0)  # else a new log was begun
            lines = [line for line in log if _OWN_LINE.match(line) and " not evaluated " in line]
        assert not lines, "".join(lines)

    def logs(self) -> str:
        """Return the ends of the log files under the data folder, for the report of a failure."""
        ends = [
            f"--- {path}\n" + path.read_text(errors="replace")[-3000:]
            for path in sorted((self.data / "logs").glob("*.log"))
        ]
        return "\n".join(ends)

    def own_words(self, lines: int = 12) -> str:
        """Return the last lines that each role wrote itself, without lines of the Kafka driver and of Java."""
        ends = []
        for path in sorted((self.data / "logs").glob("*.log")):
            own = [line for line in path.read_text(errors="replace").splitlines() if _OWN_LINE.match(line)]
            ends += [f"--- {path.name}", *own[-lines:]]
        return "\n".join(ends)

    def _cq(self, *arguments: str, timeout: float) -> str:
        ran = self._run(*arguments, timeout=timeout)
        assert ran.returncode == 0, (
            f"cq {arguments[0]} exited {ran.returncode}:\n{ran.stdout}\n{ran.stderr}\n{self.logs()}"
        )
        return ran.stdout

    def _run(self, *arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
        # Files, not pipes: processes that --detach leaves running inherit them, and a pipe would never end.
        out, err = self.data.parent / "cq.out", self.data.parent / "cq.err"
        with out.open("w") as stdout, err.open("w") as stderr:
            code = subprocess.run(
                [*self._within, sys.executable, "-m", "gateway.cli", *arguments],
                stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                env={**os.environ, **_ENVIRONMENT, **self._environment}, timeout=timeout, check=False,
            ).returncode  # fmt: skip
        return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
