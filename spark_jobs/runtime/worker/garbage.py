"""Garbage collection in a worker: it skips permanent objects, and freed memory returns to the system."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa

__all__ = ["GarbagePolicy", "give_back", "settle"]


def settle() -> None:
    """Make collections skip all objects that are alive now; an object is still freed with its last reference.

    pyspark collects garbage after every task.
    """
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Return freed memory to the system: constant tables take three times as much memory to load as afterwards."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc has it, others don't
        trim(0)


class GarbagePolicy:
    """Settles a worker after the tasks 1, 2, 4, 8 and so on: modules and tables are loaded when first needed."""

    def __init__(self) -> None:
        self._tasks = 0
        self._next = 1

    def task_done(self) -> None:
        """Count a task, and settle after the first, the second, the fourth and so on."""
        self._tasks += 1
        if self._tasks == self._next:
            self._next *= 2
            settle()
            give_back()
