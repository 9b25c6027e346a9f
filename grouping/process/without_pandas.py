"""Keeps pyarrow from importing pandas, which would take 0.3 s of CPU time and 36 MB."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa

__all__ = ["spare_pandas"]


def spare_pandas() -> None:
    """Let pyarrow make arrays from lists without importing pandas. PyArrow needs pandas only to recognise a Series.

    PyArrow looks for pandas only once, when it reads the first list. So this function reads a list, and makes the
    import fail meanwhile. Later imports of pandas work, and also pyarrow's ``to_pandas``.
    """
    absent = _PandasAbsent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(absent)


class _PandasAbsent(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Find no module; raise an error for pandas, as if it were not installed."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
