"""Ends a process whose evaluation is over its CPU budget and does not return to a check.

A call of a library may take minutes for one long text. A thread of the worker, or of the gateway, then quarantines the
charged work units, and ends the process. So the next try leaves these units out, after a single death.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from spark_jobs.engine.rows.cpu_budget import CpuBudget, StoppedEvaluation

__all__ = ["BudgetWatchdog"]

log = logging.getLogger(__name__)

_GRACE_SECONDS = 2.0
"""The CPU time beyond the budget after which the process is ended. Most expressions take less between two checks.

Units of a subscriber who has only a part of the budget have the same part of this time.
"""
_EVERY_SECONDS = 0.25


class BudgetWatchdog:
    """Watches the budget of the process's task. There is one for each process."""

    def __init__(self) -> None:
        self._watched: tuple[CpuBudget, Callable[[StoppedEvaluation], None]] | None = None
        self._thread: threading.Thread | None = None

    def watch(self, budget: CpuBudget, report: Callable[[StoppedEvaluation], None]) -> None:
        """Watch an evaluation.

        Args:
            budget: Its budget.
            report: Quarantines the work units that are charged, before the process ends.
        """
        self._watched = budget, report
        if self._thread is None or not self._thread.is_alive():  # threads do not outlive a fork
            self._thread = threading.Thread(target=self._run, name="cq-watchdog", daemon=True)
            self._thread.start()

    def rest(self) -> None:
        """Stop watching."""
        self._watched = None

    def _run(self) -> None:
        wait = threading.Event()
        while not wait.wait(_EVERY_SECONDS):
            watched = self._watched
            if watched is None:
                continue
            budget, report = watched
            try:
                stopped = budget.overdue(_GRACE_SECONDS)
            except (IndexError, RuntimeError):  # the evaluation went on meanwhile
                continue
            if stopped is not None:
                try:
                    report(stopped)
                finally:
                    log.error("process ended: an evaluation over its CPU budget did not stop")
                    os._exit(1)
