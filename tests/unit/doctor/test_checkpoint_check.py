"""The doctor's look at Spark's checkpoints on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.doctor.checkpoint_check import check_checkpoints
from gateway.model.inventory import Inventory
from grouping.model.catalog import Stream
from grouping.settings.evaluator_settings import EvaluatorSettings
from grouping.settings.settings import Settings

_STREAM = Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "")


def _checkpoint(folder: Path, **last: str) -> None:
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True)
        for batch, text in (("9", "v1\n{}"), ("10", last.get(log, 'v1\n{}\n{"quotes":{"0":1}}'))):
            (folder / log / batch).write_text(text)
        (folder / log / ".10.crc").write_text("x")


@pytest.mark.parametrize("place", ["", "of our own"])
def test_checkpoints_are_of_streams_and_readable(tmp_path: Path, place: str) -> None:
    """Checkpoints without a stream, or with a torn last file, are reported; Spark's other files are ignored."""
    own = str(tmp_path / place) if place else ""
    settings = Settings(data=tmp_path, prefix="p.", evaluator=EvaluatorSettings(checkpoints=own))
    folder = tmp_path / place / "p." if place else tmp_path / "checkpoints"
    inventory = Inventory()
    inventory.streams["s_1"] = _STREAM

    def found() -> list[tuple[str, str]]:
        return [(finding.code, finding.subject) for finding in check_checkpoints(settings, inventory)]

    assert [] == found()
    _checkpoint(folder / _STREAM.source_id)
    assert [] == found()
    _checkpoint(folder / "s_0", offsets="")
    assert [("checkpoint-unknown", str(folder / "s_0"))] == found()
    for torn in ("", 'v1\n{"quo'):
        (folder / _STREAM.source_id / "commits" / "10").write_text(torn)
        assert ("checkpoint-unreadable", "stream quotes") in found()


def test_checkpoints_behind_a_url_are_not_looked_for(tmp_path: Path) -> None:
    """A folder of this machine is then of something else."""
    _checkpoint(tmp_path / "checkpoints" / "s_0")
    settings = Settings(data=tmp_path, evaluator=EvaluatorSettings(checkpoints="s3a://bucket/cq"))
    assert [] == list(check_checkpoints(settings, Inventory()))
