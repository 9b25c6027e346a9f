"""A data folder has one evaluator, of one prefix."""

from __future__ import annotations

from pathlib import Path

import pytest

from grouping.model.errors import OperationalError
from spark_jobs.driver.predecessor import held


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
