"""Python imports this module before anything else in the roles of a chaos run, by its folder on their path.

The module moves the roles' clock by the seconds in a file, lowers bounds, makes some records deadly, and plants the
fault named in the environment. The product knows nothing of it.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from pathlib import Path

_LOOK_SECONDS = 0.1


class _Offset:
    """The seconds in a file, read now and then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = float("-inf")
        self._seconds = 0.0

    def seconds(self) -> float:
        now = time.monotonic()
        if now - self._read_at >= _LOOK_SECONDS:
            self._read_at = now
            try:
                self._seconds = float(self._path.read_text())
            except (OSError, ValueError):
                return self._seconds  # it is being written
        return self._seconds


def _move_clock(path: Path) -> None:
    offset, time_ns, time_s = _Offset(path), time.time_ns, time.time
    time.time = lambda: time_s() + offset.seconds()
    time.time_ns = lambda: time_ns() + int(offset.seconds() * 1e9)


if _clock := os.environ.get("CQ_CHAOS_CLOCK"):
    _move_clock(Path(_clock))
    import_module("tests.chaos.bounds").lower()
    import_module("tests.chaos.deadly").plant()
if _planted := os.environ.get("CQ_CHAOS_PLANTED"):
    import_module(f"tests.chaos.planted.{_planted}").plant()
