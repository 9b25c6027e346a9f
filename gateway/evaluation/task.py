"""Evaluates records for a query with the evaluator's own code: decodes, matches and splits them as a task does."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from gateway.evaluation.one_entry import VERSION, snapshot_of
from gateway.evaluation.records import PlacedRecord, source_batch
from gateway.evaluation.standing_query import StandingQuery
from grouping.digests.pending_log import Place
from grouping.settings.evaluator_settings import EvaluatorSettings
from grouping.settings.settings import Settings
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.operators.extended_rows import ExtendedRows
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.state_kinds import state_kind
from spark_jobs.engine.pipeline import end_records, evaluate
from spark_jobs.engine.rows.cpu_budget import CpuBudget
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.headers import unpacked_headers
from spark_jobs.engine.rows.output import dead_letter_code
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.stages.task import Observer, Task

__all__ = ["AT_ONCE", "Letter", "Place", "TaskOutput", "evaluated"]

AT_ONCE = 1_000
"""The largest number of records of a task. A task makes at most this number of dead letters for single events, so no
dead letter is missing."""
_SETTINGS = Settings.model_construct(evaluator=EvaluatorSettings(future_seconds=1e9))
"""The default settings, without those of the environment. There is no clock here, so `future_seconds` is so large that
no event time is too far in the future."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """The output of a task for some records."""

    pieces: list[Events]
    """The events of the records that could be decoded. There are several pieces only for a stream with
    `explode` whose records have very many elements."""
    snapshot: Snapshot
    """The constant tables with which the events were evaluated."""
    framed: dict[int, ExtendedRows] = field(default_factory=dict)
    """For a query with window functions: index of a piece → its rows with the values of the frames."""
    values: dict[Place, list[bytes]] = field(default_factory=dict)
    """Place of an event → its results, one for each matching row of the join with tables."""
    times: dict[Place, list[bytes]] = field(default_factory=dict)
    """Place of an event → `ce_time` of its results."""
    edges: dict[Place, list[str]] = field(default_factory=dict)
    """For a query with edges: place of an event → the edges that its results report."""
    letters: dict[Place, Letter] = field(default_factory=dict)
    pending: list[bytes] = field(default_factory=list)
    """Records of matches that wait for a tick."""


def evaluated(
    standing: StandingQuery, records: Sequence[PlacedRecord], destination: str, mode: str, at_once: int = AT_ONCE
) -> Iterator[TaskOutput]:
    """Yield the outputs of tasks, each for some of the records.

    Args:
        standing: The query.
        records: The records, in their order.
        destination: The id of the destination, or of the store, for the matches.
        mode: ``shared`` for results, ``pending`` for matches that wait for a tick.
        at_once: The largest number of records of a task.
    """
    snapshot, plan = snapshot_of(standing, destination, mode), standing.query.plan
    kind = None if plan.computation is None else state_kind(plan.computation)
    states: dict[int | None, dict[str, LogState]] = defaultdict(lambda: defaultdict(kind))
    for first in range(0, len(records), at_once):
        some = records[first : first + at_once]
        # A task of the evaluator has the records of one partition. Here, the partitions are kept apart only if the
        # results depend on them: for a query with aggregates, or whose computation has a state.
        apart = plan.kept is not None or (plan.computation is not None and plan.computation.has_state)
        partitions = {record.partition for record in some} if apart else {None}
        for partition in partitions:
            own = some if partition is None else [record for record in some if record.partition == partition]
            yield _task(standing, snapshot, source_batch(own), states[partition])


def _task(
    standing: StandingQuery, snapshot: Snapshot, batch: pa.RecordBatch, states: Mapping[str, LogState]
) -> TaskOutput:
    stream, events = standing.stream, _DecodedEvents()
    guard = UnitGuard(UnitSelection(), NotEvaluatedLetters(stream, _SETTINGS), set(), CpuBudget(math.inf))
    task = Task.of(stream, _SETTINGS, VERSION, guard, snapshot, standing.views, observer=events, states=states)
    records = [*evaluate(task, batch), *end_records(task)]
    output = TaskOutput(events.pieces, snapshot, events.framed)
    for rows in records:
        _take(output, rows)
    return output


class _DecodedEvents(Observer):
    """Keeps the decoded events, and the rows with the values of their frames."""

    def __init__(self) -> None:
        self.pieces: list[Events] = []
        self.framed: dict[int, ExtendedRows] = {}

    def decoded(self, events: Events, letters: pa.RecordBatch | None) -> None:
        """Keep decoded events."""
        self.pieces.append(events)

    def operated(self, rows: RowSource) -> None:
        """Keep rows with the values of frames."""
        if isinstance(rows, ExtendedRows):
            self.framed[len(self.pieces) - 1] = rows


def _take(output: TaskOutput, rows: pa.RecordBatch) -> None:
    """Add records, which the evaluator would write to Kafka, to the fields of the output."""
    code = dead_letter_code(rows)
    for row in rows.select(["value", "topic", "headers"]).to_pylist():
        headers = dict(unpacked_headers(row["headers"]))
        if code is not None:
            letter = Letter(code, headers["detail"].decode())
            output.letters[_place(headers["source"])] = letter
        elif row["topic"] == _SETTINGS.topics.pending:
            output.pending.append(row["value"])
        else:
            place = _place(headers.get("cause", headers["ce_id"]))
            output.values.setdefault(place, []).append(row["value"])
            output.times.setdefault(place, []).append(headers["ce_time"])
            if (edge := headers.get("edge")) is not None:
                output.edges.setdefault(place, []).append(edge.decode())


def _place(source: bytes) -> Place:
    """Return the place in ``<stream or topic>/<partition>/<offset>``, after which the number of a row may follow."""
    _, partition, offset, *_number = source.decode().split("/")
    return int(partition), int(offset)
