"""The resources of the evaluator's tasks: the number of cores, and the memory for each Python worker."""

from __future__ import annotations

import re
from collections.abc import Mapping

from grouping.store.notes import ExecutorsNote

__all__ = ["executors_note", "worker_bytes"]

_SIZE = re.compile(r"(\d+)([kmgt]?)b?")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "": 1 << 20}
"""The bytes of Spark's units; an option without a unit is in MiB."""
_LIMITING = ("yarn", "k8s:")
"""The beginnings of the URLs of masters that kill an executor when it exceeds its memory limit."""


def executors_note(options: Mapping[str, str], cores: int, executors: int) -> ExecutorsNote:
    """Return the present resources of the executors.

    Args:
        options: Spark's options.
        cores: The cores of all executors; with a local master, which has no executors, the cores of the driver.
        executors: The number of executors.

    Example:
        >>> executors_note({"spark.executor.pyspark.memory": "2g"}, 8, 4)
        ExecutorsNote(cores=8, worker_bytes=1073741824)
    """
    given = int(options.get("spark.executor.cores", "0"))
    return ExecutorsNote(cores, worker_bytes(options, given or -(-cores // max(executors, 1))))


def worker_bytes(options: Mapping[str, str], cores: int) -> int | None:
    """Return the memory of a Python worker in bytes; None if no option sets this memory.

    The memory of all workers of an executor is `spark.executor.pyspark.memory`. Without this option, on clusters that
    enforce memory limits, this memory is `spark.executor.memoryOverhead`, if set. The default of
    `spark.executor.memoryOverhead` is not used, because Spark does not derive it from the needs of workers.

    Args:
        options: Spark's options.
        cores: The cores of an executor, which has a worker for each core.

    Example:
        >>> worker_bytes({"spark.executor.pyspark.memory": "4g"}, 4) == 1 << 30
        True
        >>> worker_bytes({"spark.master": "yarn", "spark.executor.memoryOverhead": "2048"}, 2) == 1 << 30
        True
        >>> worker_bytes({"spark.master": "spark://m:7077", "spark.executor.memoryOverhead": "2g"}, 2)
    """
    given = options.get("spark.executor.pyspark.memory")
    if given is None and options.get("spark.master", "").startswith(_LIMITING):
        given = options.get("spark.executor.memoryOverhead")
    found = _SIZE.fullmatch((given or "").lower())
    return None if found is None else int(found[1]) * _UNITS[found[2]] // cores
