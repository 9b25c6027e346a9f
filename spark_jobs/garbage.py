"""Keeps what stays for good out of the garbage collections that pyspark makes after every task."""

from __future__ import annotations

import gc

__all__ = ["Settling", "settle"]


def settle() -> None:
    """Take what is alive now for permanent: collections pass over it, and it is still freed when nobody uses it."""
    gc.collect()
    gc.freeze()


class Settling:
    """Settles a worker after its first tasks, ever more rarely: modules and tables are loaded when first needed."""

    def __init__(self) -> None:
        self._tasks = 0
        self._next = 1

    def task_done(self) -> None:
        """Count a task, and settle after the first, the second, the fourth and so on."""
        self._tasks += 1
        if self._tasks == self._next:
            self._next *= 2
            settle()
