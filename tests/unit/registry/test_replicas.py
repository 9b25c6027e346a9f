"""The figures of a table from the notes of several workers."""

from __future__ import annotations

from gateway.registry.replicas import ReplicaFigures
from grouping.store.notes import ReplicaNote

_NOW = 1_000_000


def _note(seconds_ago: int, rows: int = 1, *reached: int, nbytes: int = 10, waiting: int = 0) -> ReplicaNote:
    return ReplicaNote(_NOW - 1000 * seconds_ago, rows, nbytes, dict(enumerate(reached)), waiting)


def test_figures_are_those_of_the_worker_that_is_furthest() -> None:
    """Rows are of the newest state, memory of the largest worker, offsets the highest of any."""
    figures = ReplicaFigures.of([_note(3, 5, 7, 9, nbytes=50), _note(1, 4, 8, 9, nbytes=40)], _NOW)
    assert ReplicaFigures(4, 50, 2, {0: 8, 1: 9}, waiting=False, by_evaluator={"": 50}) == figures
    assert ReplicaFigures.of([], _NOW) is None


def test_a_worker_that_is_gone_counts_no_more() -> None:
    """Its note is older than the others'; and nothing waits that was told to wait long ago."""
    figures = ReplicaFigures.of([_note(90, 9, 99, nbytes=900, waiting=5), _note(2, 4, 8)], _NOW)
    assert ReplicaFigures(4, 10, 1, {0: 8}, waiting=False, by_evaluator={"": 10}) == figures
    assert [True, False] == [
        each is not None and each.waiting
        for each in (ReplicaFigures.of([_note(ago, 0, waiting=5)], _NOW) for ago in (5, 90))
    ]


def test_a_key_in_two_partitions_is_told_by_one_worker() -> None:
    """A worker that has read less may not have met it yet."""
    split = ReplicaNote(_NOW, 1, 10, {0: 7}, split_keys=True)
    assert [True, False] == [
        each is not None and each.split_keys
        for each in (ReplicaFigures.of([split, _note(1, 1, 9)], _NOW), ReplicaFigures.of([_note(1)], _NOW))
    ]
    assert split == ReplicaNote.unpack(split.pack())
