"""Arrow arrays without pandas: pyarrow imports it where it is installed, a third of a second of CPU and 36 MB."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa

__all__ = ["spare_pandas"]


def spare_pandas() -> None:
    """Have pyarrow make arrays of lists without pandas, which pyarrow imports to recognise a Series.

    PySpark looks for pandas once, at the first list, and finds none here. Who imports pandas later has it, and so does
    pyarrow's own ``to_pandas``.
    """
    absent = _PandasAbsent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(absent)


class _PandasAbsent(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Find no module, and raise for pandas as if it were not installed."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
