"""An archive of Java classes is used if there is one, and an unfitting archive does no harm."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from spark_jobs.runtime.application.spark_options import archive_path, shared_classes


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python environment of the test's own."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_without_an_archive_nothing_is_asked_of_java(prefix: Path) -> None:
    assert "" == shared_classes()
    path = archive_path()
    assert path is not None and path.is_relative_to(prefix)


def test_one_that_does_not_fit_is_passed_over(prefix: Path) -> None:
    """Java starts without it, and says nothing."""
    path = archive_path()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_text("no archive")
    ran = subprocess.run(["java", *shared_classes().split(), "-version"], check=False, capture_output=True, text=True)
    assert 0 == ran.returncode
    assert "" == ran.stdout
    assert str(path) not in ran.stderr


def test_each_java_has_an_archive_of_its_own(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = shutil.which("java")
    assert java is not None
    first = archive_path()
    other = prefix / "jdk" / "bin" / "java"
    other.parent.mkdir(parents=True)
    shutil.copy(Path(java).resolve(), other)
    monkeypatch.setenv("JAVA_HOME", str(prefix / "jdk"))
    assert archive_path() not in (None, first)


def test_each_spark_has_an_archive_of_its_own(prefix: Path) -> None:
    """Java would pass over an archive of other jars at each start, without a message."""
    path = archive_path()
    assert path is not None and pyspark.__version__ in path.name


def test_a_path_that_options_cannot_name_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my environment"))
    assert archive_path() is None
