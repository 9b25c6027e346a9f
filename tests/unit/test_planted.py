"""The planted faults of chaos: each changes code that still exists."""

from __future__ import annotations

import subprocess
import sys

from tests.chaos.planted import PLANTED

_PLANT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(f"tests.chaos.planted.{name}").plant()
importlib.import_module("tests.chaos.deadly").plant()
import gateway.state.commit, gateway.state.timer_state
import gateway.state.recovery.catalog_replay, gateway.state.recovery.recovery
import spark_jobs.engine.match.residual, spark_jobs.runtime.worker.worker
assert spark_jobs.engine.match.residual.holds.__module__ == "tests.chaos.deadly"
"""


def test_each_fault_changes_something() -> None:
    """Each planted fault still applies: with a renamed function, chaos would no longer prove that it finds faults."""
    done = subprocess.run([sys.executable, "-c", _PLANT_ALL, *PLANTED], capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
