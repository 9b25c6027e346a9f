"""Records through decode, match and split, as a task of the evaluator takes them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from gateway.evaluation.one_entry import VERSION, snapshot_of
from gateway.evaluation.records import PlacedRecord, source_batch
from gateway.evaluation.standing_query import StandingQuery
from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.isolation.isolation import Isolation, Join
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.operators.aggregate.counting import GroupCounting
from spark_jobs.engine.operators.aggregate.counting_stage import WritingStage, counting_stage
from spark_jobs.engine.operators.lookup_join.join import join_slices
from spark_jobs.engine.results.pending import pending_records
from spark_jobs.engine.results.split import split
from spark_jobs.engine.rows.cpu_budget import CpuBudget
from spark_jobs.engine.rows.event_column import VALUE_BYTES
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.headers import unpacked_headers
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.output import dead_letter_code, dead_letters

__all__ = ["Letter", "Place", "TaskOutput", "evaluated"]

Place = tuple[int, int]
"""Partition and offset of a record."""

_AT_ONCE = 1_000
"""Records of a task: each that cannot be evaluated has a dead letter of its own among so many."""
_SETTINGS = Settings.model_construct()
"""The defaults, whatever the environment says."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """The output of a task for some records."""

    events: Events
    """The records that could be decoded."""
    snapshot: Snapshot
    """The tables that they met."""
    values: dict[Place, list[bytes]] = field(default_factory=dict)
    """By event: its results, one for each row of the join with tables."""
    letters: dict[Place, Letter] = field(default_factory=dict)
    pending: list[bytes] = field(default_factory=list)
    """Records of matches that wait for a tick."""


def evaluated(
    standing: StandingQuery, records: Sequence[PlacedRecord], destination: str, mode: str
) -> Iterator[TaskOutput]:
    """Yield what tasks make of records, a number of them at a time.

    Args:
        standing: The query.
        records: In their order.
        destination: The id under which matches go.
        mode: ``shared`` for results, ``pending`` for matches that wait.
    """
    snapshot = snapshot_of(standing, destination, mode)
    for first in range(0, len(records), _AT_ONCE):
        some = records[first : first + _AT_ONCE]
        # A task has the records of a single partition; results of single matches do not depend on the partition.
        partitions = {record.partition for record in some} if standing.query.plan.kept is not None else {None}
        for partition in partitions:
            own = some if partition is None else [record for record in some if record.partition == partition]
            yield _task(standing.stream, snapshot, source_batch(own), partial(join_slices, views=standing.views))


def _task(stream: Stream, snapshot: Snapshot, batch: pa.RecordBatch, joined: Join) -> TaskOutput:
    events, letters = decode(batch, stream, _SETTINGS)
    output = TaskOutput(events, snapshot)
    if letters is not None:
        _take(output, letters)
    if events.count:
        not_evaluated = NotEvaluatedLetters(stream, _SETTINGS)
        counting = GroupCounting(evaluate_expression, partial(_too_large, stream), snapshot.bounds)
        counting.extend(int(events.partitions[0]), int(events.offsets[0]), int(events.offsets[-1]))
        write = partial(_records, stream, counting)
        guard = UnitGuard(UnitSelection(), not_evaluated, set(), CpuBudget(math.inf))
        stage = partial(counting_stage, counting)
        isolation = Isolation(guard, snapshot, write, Loads(), VALUE_BYTES, joined, stage)
        for rows in isolation.records(events):
            _take(output, rows)
        writing = WritingStage(counting, stream.stream_id, VERSION, not_evaluated.reasons, _SETTINGS)
        for rows in guard.run(writing):
            _take(output, rows)
        for unit, offsets, matches in counting.incomplete.values():
            _take(output, not_evaluated.incomplete(unit, offsets, matches))
    return output


def _records(stream: Stream, counting: GroupCounting, events: Events, found: Matches) -> Iterator[pa.RecordBatch]:
    yield from split(events, found, stream, _SETTINGS, evaluate_expression)
    yield from pending_records(events, found, stream, VERSION, _SETTINGS, evaluate_expression)
    counting.take(events, found)


def _too_large(stream: Stream, source: pa.RecordBatch, details: dict[int, str]) -> pa.RecordBatch:
    return dead_letters(source, details, "result-too-large", stream, _SETTINGS)


def _take(output: TaskOutput, rows: pa.RecordBatch) -> None:
    """Sort what is to be written to Kafka."""
    code = dead_letter_code(rows)
    for row in rows.select(["value", "topic", "headers"]).to_pylist():
        headers = dict(unpacked_headers(row["headers"]))
        if code is not None:
            letter = Letter(code, headers["detail"].decode())
            output.letters[_place(headers["source"])] = letter
        elif row["topic"] == _SETTINGS.topics.pending:
            output.pending.append(row["value"])
        else:
            output.values.setdefault(_place(headers["ce_id"]), []).append(row["value"])


def _place(source: bytes) -> Place:
    """Return the place that ``<stream or topic>/<partition>/<offset>`` names, whatever number of a row follows."""
    _, partition, offset, *_number = source.decode().split("/")
    return int(partition), int(offset)
