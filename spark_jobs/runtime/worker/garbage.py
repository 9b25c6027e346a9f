"""Garbage collection in a worker: collections skip permanent objects, and freed memory is returned to the system."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa

__all__ = ["GarbagePolicy", "give_back", "settle"]


def settle() -> None:
    """Make garbage collections skip all objects that are alive now, because pyspark collects garbage after every task.

    An object is still freed when its last reference goes.
    """
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Return freed memory to the system. While constant tables are loaded, they take three times their later memory."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # only glibc has this function
        trim(0)


class GarbagePolicy:
    """Calls `settle` and `give_back` after a worker's first, second, fourth, eighth task and so on.

    Modules and tables are loaded when they are first needed, mostly by the first tasks.
    """

    def __init__(self) -> None:
        self._tasks = 0
        self._next = 1

    def task_done(self) -> None:
        """Count a task, and call `settle` and `give_back` if they are due."""
        self._tasks += 1
        if self._tasks == self._next:
            self._next *= 2
            settle()
            give_back()
