"""A worker that hangs ends itself; a waiting or slow worker does not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from spark_jobs.engine.isolation.hang_guard import HangGuard

_HANGS = """
from spark_jobs.engine.isolation.hang_guard import HangGuard
def made():
    yield 1
    while True: pass
print(*HangGuard(0.2).pieces(made()))
"""


def test_who_makes_nothing_for_too_long_ends() -> None:
    """The process is gone soon, whatever it does, and its last words name the place of the hang."""
    ran = subprocess.run([sys.executable, "-c", _HANGS], capture_output=True, text=True, timeout=60, check=False)
    assert (-signal.SIGALRM, "") == (ran.returncode, ran.stdout)
    assert "in made" in ran.stderr


def test_the_consumers_time_does_not_count() -> None:
    """Who takes the pieces may wait; each piece has its own time, and an error comes through."""

    def made() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError

    pieces = HangGuard(0.2).pieces(made())
    assert 1 == next(pieces)
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        pass
    assert 2 == next(pieces)
    with pytest.raises(ValueError):
        next(pieces)


_STEPS = """
import sys, time
from spark_jobs.engine.isolation.hang_guard import HangGuard
guard = HangGuard(3.0)
def made():
    for _ in range(3):
        guard.begin_step(suspected=False)
        time.sleep(1.2)
    yield 1
    guard.begin_step(suspected=True)
    time.sleep(0.8)
    yield 2
for piece in guard.pieces(made()):
    print(piece, flush=True)
"""


def test_a_step_of_suspects_is_given_less_time() -> None:
    """Many steps together may take longer than the limit of one; a suspect step has a fifth of the time."""
    ran = subprocess.run([sys.executable, "-c", _STEPS], capture_output=True, text=True, timeout=60, check=False)
    assert (-signal.SIGALRM, "1\n") == (ran.returncode, ran.stdout)
