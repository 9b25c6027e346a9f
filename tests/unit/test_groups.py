"""Groups of tests: each runs in a single process, whichever it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_CONFTEST = """
from tests.groups import TestGroups

def pytest_xdist_make_scheduler(config, log):
    return TestGroups(config, log)
"""
_TEST = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(number):
    with Path("ran").open("a") as file:
        file.write(f"{GROUP} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""


def test_each_group_is_on_one_process(tmp_path: Path) -> None:
    """Tests of several files with shared servers run in the same process; with four groups both processes have some."""
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    groups = {"tests/spark": "spark", "tests/stack/queries": "first", "tests/stack/state": "second"}
    for folder, group in groups.items():
        (tmp_path / folder).mkdir(parents=True)
        for name in "ab":
            (tmp_path / folder / f"test_{group}_{name}.py").write_text(_TEST.replace("GROUP", f"'{group}'"))
    (tmp_path / "tests/test_pure.py").write_text(_TEST.replace("GROUP", "'pure'"))
    root = Path(__file__).parents[2]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--numprocesses",
            "2",
            f"--rootdir={tmp_path}",
            "-p",
            "no:cacheprovider",
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root), "PATH": ""},
        check=True,
        capture_output=True,
        timeout=120,
    )
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert len(ran) == 28
    processes = {group: {process for one, process in ran if one == group} for group, _ in ran}
    assert {group: len(each) for group, each in processes.items()} == dict.fromkeys(
        ("spark", "first", "second", "pure"), 1
    )
    assert set.union(*processes.values()) == {"gw0", "gw1"}
