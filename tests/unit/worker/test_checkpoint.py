"""The progress of a query, from its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_jobs.runtime.kafka.pin_log import MicroBatch
from spark_jobs.runtime.streams.checkpoint import Checkpoint, StreamPosition
from spark_jobs.runtime.streams.files import LocalFiles


def _checkpoint(folder: Path) -> Checkpoint:
    return Checkpoint(str(folder), LocalFiles())


def _log(folder: Path, batch: int, end: int, *, committed: bool) -> None:
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"quotes":{{"0":{end},"1":7}}}}')
    if committed:
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_last_commit_passes_over_the_batch_in_flight(tmp_path: Path) -> None:
    """A batch that was planned and not committed does not count; batches are numbers, 10 comes after 9."""
    _log(tmp_path, 9, 90, committed=True)
    _log(tmp_path, 10, 100, committed=True)
    _log(tmp_path, 11, 110, committed=False)
    assert _checkpoint(tmp_path).last_commit("quotes") == StreamPosition(10, {"0": 100, "1": 7})


def test_nothing_is_known_before_the_first_commit(tmp_path: Path) -> None:
    """A query that never committed has no position."""
    _log(tmp_path, 0, 5, committed=False)
    assert _checkpoint(tmp_path).last_commit("quotes") is None
    assert _checkpoint(tmp_path / "absent").last_commit("quotes") is None


def test_a_removed_checkpoint_is_gone(tmp_path: Path) -> None:
    """Removing one checkpoint leaves the others."""
    for stream_id in ("s_1", "s_2"):
        _log(tmp_path / stream_id, 0, 5, committed=True)
    _checkpoint(tmp_path / "s_1").remove()
    assert LocalFiles().names(str(tmp_path)) == ["s_2"]


def test_a_checkpoint_that_spark_cannot_go_on_from_is_not_whole(tmp_path: Path) -> None:
    """A checkpoint without a batch, or with an empty last file, is as good as lost."""
    assert not _checkpoint(tmp_path / "absent").is_whole()
    (tmp_path / "commits").mkdir()
    assert not _checkpoint(tmp_path).is_whole()
    _log(tmp_path, 9, 90, committed=True)
    _log(tmp_path, 10, 100, committed=False)
    assert _checkpoint(tmp_path).is_whole()
    for name in ("offsets/10", "commits/9"):
        before = (tmp_path / name).read_text()
        (tmp_path / name).write_text("")
        assert not _checkpoint(tmp_path).is_whole(), name
        (tmp_path / name).write_text(before)
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_text("")
    assert not _checkpoint(tmp_path).is_whole()


def test_a_position_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    """The position before counts: events evaluated since then come again with the same ids."""
    _log(tmp_path, 9, 90, committed=True)
    _log(tmp_path, 10, 100, committed=True)
    (tmp_path / "offsets" / "10").write_text("")
    assert _checkpoint(tmp_path).last_commit("quotes") == StreamPosition(9, {"0": 90, "1": 7})


def test_a_micro_batch_gets_other_bounds(tmp_path: Path) -> None:
    """The batch begins at the end of the batch before, or at the source's start; a changed file loses its checksum."""
    checkpoint = _checkpoint(tmp_path)
    assert checkpoint.under_way("quotes") is None
    _log(tmp_path, 0, 90, committed=False)
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_text('\0v1\n{"quotes":{"0":80,"1":7}}')
    checksum = tmp_path / "offsets" / ".0.crc"
    checksum.touch()
    assert ({"0": 80, "1": 7}, {"0": 90, "1": 7}) == checkpoint.under_way("quotes")
    checkpoint.move("quotes", {"0": 82}, {"0": 85})
    assert ({"0": 82, "1": 7}, {"0": 85, "1": 7}) == checkpoint.under_way("quotes")
    assert '\0v1\n{"quotes":{"0":82,"1":7}}' == (tmp_path / "sources" / "0" / "0").read_text()
    assert ["v1", '{"batchWatermarkMs":0}'] == (tmp_path / "offsets" / "0").read_text().splitlines()[:2]
    assert not checksum.exists()
    _log(tmp_path, 0, 85, committed=True)
    assert checkpoint.under_way("quotes") is None
    _log(tmp_path, 1, 99, committed=False)
    checkpoint.move("quotes", {"0": 86}, {})
    assert ({"0": 86, "1": 7}, {"0": 99, "1": 7}) == checkpoint.under_way("quotes")
    assert StreamPosition(0, {"0": 86, "1": 7}) == checkpoint.last_commit("quotes")


def _lane_log(folder: Path, batch: int, end: int, *, committed: bool) -> None:
    """Write a micro-batch of two topics."""
    _log(folder, batch, end, committed=committed)
    text = f'v1\n{{"batchWatermarkMs":0}}\n{{"quotes":{{"0":{end}}},"orders":{{"0":{end + 1}}}}}'
    (folder / "offsets" / str(batch)).write_text(text)


def _first_offsets(folder: Path) -> None:
    (folder / "sources" / "0").mkdir(parents=True)
    (folder / "sources" / "0" / "0").write_text('\0v1\n{"quotes":{"0":80},"orders":{"0":81}}')


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("first", [0, 9])
def test_topics_come_and_go(tmp_path: Path, first: int, *, committed: bool) -> None:
    """A topic that comes has no event in the micro-batch under way, and one that goes is in no later one."""
    checkpoint = _checkpoint(tmp_path)
    checkpoint.set_topics(["quotes"], {"trades": {"0": 5}})
    assert checkpoint.next_beginnings() is None
    _first_offsets(tmp_path)
    if first:
        _lane_log(tmp_path, first - 1, 80, committed=True)
    _lane_log(tmp_path, first, 90, committed=committed)
    checkpoint.set_topics(["quotes"], {"trades": {"0": 5}})
    begins = 90 if committed else 80
    assert {"quotes": {"0": begins}, "trades": {"0": 5}} == checkpoint.next_beginnings()
    assert (None if committed else ({"0": 5}, {"0": 5})) == checkpoint.under_way("trades")
    assert (None if committed else ({"0": 80}, {"0": 90})) == checkpoint.under_way("quotes")
    assert (None if committed else ({}, {})) == checkpoint.under_way("orders")
    assert checkpoint.is_whole()
    assert committed == checkpoint.is_idle()


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("first", [0, 9])
def test_a_topic_goes_on_by_a_copy(tmp_path: Path, first: int, *, committed: bool) -> None:
    """The copy has the micro-batch under way, under its number and its query's id, and nothing of other topics."""
    checkpoint, copy = _checkpoint(tmp_path / "lane"), _checkpoint(tmp_path / "own")
    assert not checkpoint.copy_of("orders", copy)
    _first_offsets(tmp_path / "lane")
    (tmp_path / "lane" / "metadata").write_text('{"id":"q_lane"}')
    if first:
        _lane_log(tmp_path / "lane", first - 1, 80, committed=True)
    _lane_log(tmp_path / "lane", first, 90, committed=committed)
    assert not checkpoint.copy_of("trades", copy)
    assert checkpoint.copy_of("orders", copy)
    assert copy.is_whole()
    for name in ("orders", "quotes"):
        expected = checkpoint if name == "orders" else _checkpoint(tmp_path / "absent")
        assert (expected.last_commit(name) or StreamPosition(-1, {})).offsets == (
            copy.last_commit(name) or StreamPosition(-1, {})
        ).offsets
    assert (checkpoint.last_commit("orders") is None) == (copy.last_commit("orders") is None)
    assert checkpoint.under_way("orders") == copy.under_way("orders")
    begun = None if committed else MicroBatch("s_1", "q_lane", first)
    assert begun == copy.begun_elsewhere("s_1")
    assert checkpoint.next_beginnings() != copy.next_beginnings()
    assert {"orders"} == (copy.next_beginnings() or {}).keys()
    assert json.loads((tmp_path / "own" / "metadata").read_text())["id"]
