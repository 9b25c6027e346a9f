"""The files of a checkpoint behind a URL: Hadoop's clients behave like a local folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.sink import checkpoint_location
from spark_jobs.runtime.streams.checkpoint import Checkpoint, StreamPosition
from spark_jobs.runtime.streams.files import Files, HadoopFiles, LocalFiles, files_of


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_are_written_read_and_removed(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    """Both give the same, whether a file is there or not."""
    base = f"{scheme}{tmp_path}"
    files = files_of(base, spark)
    assert ([], None) == (files.names(f"{base}/none"), files.text(f"{base}/none/file"))
    for text in ("one", "two – \u00fc"):
        files.write(f"{base}/a/b/file", text)
        assert text == files.text(f"{base}/a/b/file")
    files.write(f"{base}/a/other", "")
    assert {"b", "other"} == {name for name in files.names(f"{base}/a") if not name.startswith(".")}
    files.remove(f"{base}/a/b")
    files.remove(f"{base}/a/b")
    assert (None, "") == (files.text(f"{base}/a/b/file"), files.text(f"{base}/a/other"))


def test_a_checkpoint_is_the_same_by_its_folder_and_its_url(spark: SparkSession, tmp_path: Path) -> None:
    """A position written by Spark is found by both, and a new beginning noted through one is known to the other."""
    for kind, text in (("offsets", '{"quotes":{"0":7}}'), ("commits", "{}")):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "3").write_text(f"v1\n{text}")
    both = [Checkpoint(str(tmp_path), LocalFiles()), Checkpoint(f"file://{tmp_path}", HadoopFiles(spark))]
    assert [StreamPosition(3, {"0": 7})] * 2 == [each.last_commit("quotes") for each in both]
    assert [True, True] == [each.is_whole() for each in both]
    both[1].note_earlier_ends({"0": 9})
    assert [{"0": 9}] * 2 == [each.earlier_ends() for each in both]
    (tmp_path / "commits" / "3").write_text("")
    assert [False, False] == [each.is_whole() for each in both]
    both[1].remove()
    assert not tmp_path.exists()


def test_a_file_system_that_does_not_answer_is_told(spark: SparkSession) -> None:
    """In one line, with the location: a bucket without a client, a host that is not there."""
    files: Files = HadoopFiles(spark)
    for call in (files.names, files.text, files.remove):
        with pytest.raises(OperationalError, match="nofs://bucket/cq"):
            call("nofs://bucket/cq")


def test_a_url_keeps_its_slashes() -> None:
    """A folder of the prefix's own: other prefixes may have theirs in the same bucket."""
    settings = Settings(prefix="cq.", evaluator={"checkpoints": "s3a://bucket/cq/"})
    assert "s3a://bucket/cq/cq./s_1" == checkpoint_location("s_1", settings)
    assert str(Path("there/cq./s_1").absolute()) == checkpoint_location(
        "s_1", Settings(prefix="cq.", evaluator={"checkpoints": "there"})
    )
