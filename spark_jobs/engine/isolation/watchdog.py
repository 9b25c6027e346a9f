"""Ends a process in which an evaluation has exceeded its CPU budget, but does not reach the next check of the budget.

A library's function may take minutes for a single long text. A thread of the worker, or of the gateway, then
quarantines the work units of the evaluation, and ends the process. So the next try already leaves these units out.
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
"""The process is ended when it has exceeded its budget by this much CPU time. Most expressions take less time between
two checks.

If a subscriber's units get only a part of the budget, they get only the same part of this time, too.
"""
_EVERY_SECONDS = 0.25


class BudgetWatchdog:
    """Watches the CPU budget of the task that a process runs. Each process has a single watchdog."""

    def __init__(self) -> None:
        self._watched: tuple[CpuBudget, Callable[[StoppedEvaluation], None]] | None = None
        self._thread: threading.Thread | None = None

    def watch(self, budget: CpuBudget, report: Callable[[StoppedEvaluation], None]) -> None:
        """Watch an evaluation.

        Args:
            budget: The budget of the evaluation.
            report: Quarantines the work units of the evaluation; is called before the process ends.
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
