"""No role loads pandas at its start, although pyarrow imports pandas where it is installed."""

from __future__ import annotations

import subprocess
import sys

_WORKER = """
import sys
from grouping.process.without_pandas import spare_pandas
spare_pandas()
import pyarrow as pa
import pyspark.daemon, spark_jobs.runtime.kafka.sink, spark_jobs.runtime.worker.worker
column = pa.array(["a", None])
print("pandas" in sys.modules)
print(pa.table({"v": column}).to_pandas()["v"].tolist())
"""


def test_workers_make_arrays_without_pandas() -> None:
    """A worker's modules, and an array of a list, leave pandas alone; an explicit call of pyarrow still gets it."""
    done = subprocess.run([sys.executable, "-c", _WORKER], capture_output=True, text=True, check=True)
    assert ["False", "['a', None]"] == done.stdout.splitlines()
