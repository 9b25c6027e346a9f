"""A data folder belongs to an evaluator and a prefix, and has a format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.local.run_folder import RunFolder
from grouping.model.errors import OperationalError
from grouping.process.data_folder import FORMAT
from spark_jobs.runtime.driver.predecessor import held


def test_a_data_folder_is_of_one_prefix(tmp_path: Path) -> None:
    """Another prefix is refused, also when nobody runs; so is a second evaluator while the first one runs."""
    data = tmp_path / "data"
    with held(data, "cq."):
        for prefix in ("cq.", "dev."):
            with pytest.raises(OperationalError, match="another evaluator runs"), held(data, prefix):
                pass
    with pytest.raises(OperationalError, match='of the prefix "cq."'), held(data, "dev."):
        pass
    with held(data, "cq."):
        pass


@pytest.mark.parametrize("expected", ['{"format": 99}', "", "[]", '{"format": "one"}'])
def test_a_data_folder_of_a_later_version_is_refused(tmp_path: Path, expected: str) -> None:
    """The folder is refused for every user, and before anything in it is used; a folder of unknown format too."""
    (tmp_path / "format.json").write_text(expected)
    message = "has format 99, and this version reads 1" if "99" in expected else "does not say the format"
    with pytest.raises(OperationalError, match=message), held(tmp_path, "cq."):
        pass
    with pytest.raises(OperationalError, match=message) as refused:
        RunFolder(tmp_path).prepare()
    assert refused.value.hint


def test_a_data_folder_of_an_earlier_version_is_taken(tmp_path: Path) -> None:
    """A folder without a format is of the first format, and records it from then on."""
    for _ in range(2):
        RunFolder(tmp_path).prepare()
        assert {"format": FORMAT} == json.loads((tmp_path / "format.json").read_text())


def test_a_data_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    """A folder open to others is closed; so are new files in it."""
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    RunFolder(data).prepare()
    assert 0o700 == data.stat().st_mode & 0o777
