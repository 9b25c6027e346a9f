"""A worker ends itself at a call of a library that is over the budget and does not return; its unit is quarantined."""

from __future__ import annotations

import subprocess
import sys

_ENDLESS = """
import logging, threading, time
import numpy as np
import pyarrow as pa
from functools import partial
from grouping.model.expression import Call, Column, Value
from spark_jobs.engine.rows.columns import SingleColumn
from spark_jobs.engine.rows.cpu_budget import CpuBudget, charged
from spark_jobs.engine.isolation.hang_guard import HangGuard
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.isolation.watchdog import BudgetWatchdog
from spark_jobs.engine.match.residual import evaluate_expression

class Aggregate:
    def units(self):
        return ["g_1/s_1", "g_2/s_2"]
    def records(self, units):
        with charged("s_2", lambda: ["s_2"]):
            call = Call("regexp_count", (Column("s", "STRING"), Value(".*x|.", "STRING")), "INT")
            yield evaluate_expression(call, SingleColumn(pa.array(["a" * {length}])), np.arange(1))

budget = CpuBudget({seconds})
guard = UnitGuard(UnitSelection(), None, set(), budget)
dog = BudgetWatchdog()
quarantine = lambda units: print(*units, flush=True)
watch = partial(dog.watch, budget, partial(guard.quarantine_stopped, quarantine=quarantine))
hang_guard = HangGuard(600.0, watch, dog.rest)
def made():
    with guard.batch(1):
        yield from guard.run(Aggregate())
for piece in hang_guard.pieces(made()):
    print("done", *piece.to_pylist(), flush=True)
"""


def _ran(**given: object) -> subprocess.CompletedProcess[str]:
    text = _ENDLESS
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", str(value))
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=200, check=False)


def test_a_call_that_does_not_return_ends_the_worker() -> None:
    """A text of 1 MB would take a quarter of an hour; no thread asks it to stop, and the process is gone in seconds."""
    ran = _ran(length=1_000_000, seconds=0.2)
    assert (1, "g_2/s_2\n") == (ran.returncode, ran.stdout), ran.stderr


def test_a_call_within_its_budget_is_left_alone() -> None:
    """The thread watches, and nothing happens."""
    ran = _ran(length=1_000, seconds=100.0)
    assert (0, "done 1000\n") == (ran.returncode, ran.stdout), ran.stderr
