"""A Python for executors, for each documented way: none has the repository."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.pages import ROOT

__all__ = ["ROOMS", "bare_python", "packed_environment"]

ROOMS = ("gateway", "grouping", "schemas", "spark_jobs")


def bare_python(folder: Path) -> Path:
    """Make an environment with the needed packages and without our own, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [packages] = folder.glob("lib/*/site-packages")
    # Python reads no .pth inside a folder named in a .pth: the one here would bring the repository.
    (packages / "packages.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"


def packed_environment(path: Path, environment: Path) -> Path:
    """Write a ``.tar.gz`` of an environment with our packages, for `spark.archives`."""
    [packages] = environment.glob("lib/*/site-packages")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(environment, ".")
        for file in _files():
            archive.add(file, packages.relative_to(environment) / file.relative_to(ROOT))
    return path


def _files() -> Iterator[Path]:
    for room in ROOMS:
        yield from (file for file in sorted((ROOT / room).rglob("*")) if file.suffix in (".py", ".avsc", ".lock"))
