"""The daemon that forks Spark's Python workers: archives that stay on its path."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path

import pytest

from spark_jobs.runtime.worker.daemon import drop_archives


def test_archives_of_spark_leave_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own archive, from `spark-submit --py-files`, stays, and its modules can be imported."""
    code = tmp_path / "cq-gateway.zip"
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("brought_by_py_files.py", "name = 'ours'")
    own = [f"/opt/spark/python/lib/{name}" for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip")]
    monkeypatch.setattr(sys, "path", [*sys.path, *own, "/opt/spark/jars/spark-core_2.13.jar", str(code)])
    before = sys.path[:]
    drop_archives()
    assert [*before[:-4], str(code)] == sys.path
    import brought_by_py_files

    assert "ours" == brought_by_py_files.name


def test_folders_within_archives_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jar whose folder `org` was imported, as Python's `copy` tries to, is read no more when caches are renewed."""
    jar = tmp_path / "spark-core.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("org/", "")
    monkeypatch.setattr(sys, "path", [*sys.path, str(jar)])
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("org.python")
    del sys.modules["org"]
    assert f"{jar}/org" in sys.path_importer_cache
    drop_archives()
    assert f"{jar}/org" not in sys.path_importer_cache
