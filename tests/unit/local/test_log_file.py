"""Logs that are begun anew when they have grown."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.local.log_file import renew
from gateway.local.program import Program
from gateway.local.role import Role

_MOST = 20_000
_TALKING = """
import sys
for number, _ in enumerate(sys.stdin):
    print(f"line {number:100}", flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a log may be."""
    return tmp_path / "evaluator.log"


@pytest.fixture
def writer(log: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that appends a line to the log for each line received."""
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-c", _TALKING], stdin=subprocess.PIPE, stdout=output, text=True)
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(10)


def _write(writer: subprocess.Popen[str], log: Path, lines: int) -> None:
    """Have lines written, and return when the last of them is there."""
    assert writer.stdin is not None
    before = log.read_text().count("\n")
    writer.stdin.write("\n" * lines)
    writer.stdin.flush()
    deadline = time.monotonic() + 30
    while log.read_text().count("\n") < before + lines:
        assert time.monotonic() < deadline, "the lines do not come"


def test_a_process_goes_on_in_the_log_that_is_begun_anew(log: Path, writer: subprocess.Popen[str]) -> None:
    """Earlier lines are kept once, each line is in one of both files, and the new log begins without a gap."""
    kept = log.with_name("evaluator.log.1")
    assert not renew(log.with_name("none.log"), _MOST)
    _write(writer, log, 10)
    assert not renew(log, _MOST)
    for _ in range(2):
        _write(writer, log, 200)
        assert renew(log, _MOST)
    _write(writer, log, 3)
    numbers = [int(line.split()[1]) for line in (kept.read_text() + log.read_text()).splitlines()]
    assert list(range(210, 413)) == numbers


def test_the_lines_that_a_start_waits_for_stay(tmp_path: Path, log: Path) -> None:
    """A role that is not ready yet keeps its log, however large; a ready role stays ready when its log is truncated."""
    kept = log.with_name("evaluator.log.1")
    program = Program(
        "kafka", ("sleep", "60"), tmp_path, log, lambda since: b"up" in log.read_bytes()[since:], stop_seconds=5.0
    )
    log.write_text("of an earlier start\n")
    role = Role(program, dict(os.environ), time.monotonic, 60.0)
    role.start()
    try:
        for word, state in (("-" * _MOST, "starting"), ("up", "ready")):
            with log.open("a") as file:
                file.write(f"{word}\n")
            role.renew_log(_MOST)
            role.step()
            assert (state, False) == (role.state, kept.exists())
        role.renew_log(_MOST)
        assert (0, True) == (log.stat().st_size, kept.exists())
        with log.open("a") as file:
            file.write("cq gateway: no room\n")
        role.step()
        assert ("ready", "cq gateway: no room") == (role.state, role.last_words())
    finally:
        role.terminate()
        role.end()
