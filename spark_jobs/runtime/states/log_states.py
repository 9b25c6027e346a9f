"""The states of operators in a worker process, restored at the beginning of a batch from memory, files, and the log.

A state at a position depends only on the log before the position. A worker keeps the state at the end of its last task
of each source partition. The changes of this task can be undone, because its batch may be evaluated again. If
other workers have evaluated later batches, the worker reads the events of these batches from the log and folds them
into the state.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.operators.framed_states import timed_state
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.lookup_join.join import LookupJoinOperator
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.operators.state_kinds import state_kind
from spark_jobs.engine.operators.timed_state import BEGINNING, NO_MARKS
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.faults import FAULTS
from spark_jobs.runtime.kafka.range_reader import RangeReader, SourceRange
from spark_jobs.runtime.states.clock_marks import ClockMarks
from spark_jobs.runtime.states.logged_events import DecodedBy, as_declared, logged_events
from spark_jobs.runtime.states.row_snapshots import RowSnapshots, SnapshotPlace
from spark_jobs.runtime.states.state_needs import StateNeeds, needs_of

__all__ = ["LogStates", "StateClock"]

log = logging.getLogger(__name__)


class _PartitionPlace(NamedTuple):
    """A source partition of a stream."""

    stream_id: str
    source_id: str
    partition: int


class StateClock(NamedTuple):
    """The marks of the clock at the beginning of a task; watermarks in epoch milliseconds."""

    settled: int | None
    """The mark whose results an earlier task has made; None if there is none."""
    mark: int | None
    """The mark whose results this task must make; None if there is none."""


class _Behind(NamedTuple):
    """A state that lacks some events of the log."""

    needs: StateNeeds
    state: LogState
    begin: int
    """The position from which on the log must be folded into the state."""


class LogStates:
    """The states of a process, by stream, source partition and computation. Only a single thread may use them."""

    def __init__(
        self,
        settings: Settings,
        open_reader: Callable[[Settings], RangeReader] = RangeReader,
        open_snapshots: Callable[[Settings], RowSnapshots] = RowSnapshots,
    ) -> None:
        """Begin without states.

        Args:
            settings: The evaluator's settings.
            open_reader: Opens the reader of the streams' topics.
            open_snapshots: Opens the stored states.
        """
        self._settings = settings
        self._open_reader = open_reader
        self._snapshots = open_snapshots(settings)
        self._marks = ClockMarks(settings)
        self._limit = settings.limits.state_megabytes << 20
        self._states: dict[_PartitionPlace, dict[str, LogState]] = {}
        """For each source partition, the states by computation id."""
        self._sizes: dict[str, dict[_PartitionPlace, int]] = {}
        """For each computation id, the memory of the states by source partition, in bytes."""
        self._needs: dict[str, tuple[Snapshot, list[StateNeeds]]] = {}
        """For each stream id, the constant tables of its last task, and the needs of the entries in these tables."""

    @cached_property
    def _reader(self) -> RangeReader:
        """The reader of topics, made when a log is first read, since a reader must not be forked or pickled."""
        return self._open_reader(self._settings)

    def begun(
        self,
        stream: Stream,
        snapshot: Snapshot,
        views: Mapping[str, TableView],
        partition: int,
        first: int,
        stopped: Collection[str] = (),
        clock: StateClock | None = None,
        decoded_by: DecodedBy = as_declared,
    ) -> dict[str, LogState]:
        """Return the states of a stream's computations at the beginning of a task.

        A state is `torn`, and must not be used, if its computation is stopped, or if the state became too large while
        the log was folded into it.

        Args:
            stream: The stream, as the task's batch declares it.
            snapshot: The constant tables of the batch.
            views: By table id, the joined tables at the batch's pins.
            partition: The source partition of the task.
            first: The position of the task's first event.
            stopped: The ids of computations all of whose groups are quarantined; their states are dropped.
            clock: The marks of the clock at `first`; None if there are none.
            decoded_by: Divides records of the log into parts, each with the declaration that decodes the part.

        Raises:
            SchemaAway: The registry does not answer with a schema.
            PartitionUnreadable: Kafka refuses to read the partition.
            OperationalError: Kafka failed, or the file system with the marks of the clock failed.
        """
        here = _PartitionPlace(stream.stream_id, stream.source_id, partition)
        # The states are taken out, so that no later task finds them half changed if an exception is raised here.
        wanted, known = self._wanted(stream, snapshot), self._states.pop(here, {})
        states: dict[str, LogState] = {}
        behind, began = [], time.monotonic()
        for needs in wanted:
            name = needs.computation.computation_id
            if name in stopped:
                states[name] = self._unusable(name, needs, first)
                continue
            since = needs.since(partition)
            place = _place_of(needs, stream, partition)
            state = self._usable(known.get(name), first, clock) or self._stored(place, needs, first)
            if state is None:
                state = _kind_of(needs)(min([first, *since.values()]))
                for column in since:  # a state without rows lacks the values of no column
                    state.hold(column, state.position)
            if state.position < first:
                state = self._caught_up(place, needs, state, first)
            states[name] = state
            if state.position > state.began:
                state.reached = state.position
            needs.prepare(state, partition)
            late = [begin for column, begin in since.items() if state.since.get(column, first) > begin]
            if (begin := min([state.position, *late])) < first:
                state.rewind(begin)
                behind.append(_Behind(needs, state, begin))
            for column, begin in since.items():
                state.hold(column, min(begin, first))
        for name in known.keys() - states.keys():
            self._snapshots.forget(SnapshotPlace(stream.source_id, partition, name))
            self._sizes.pop(name, None)
        if behind:
            self._fold(stream, views, partition, behind, first, decoded_by)
        if clock is not None and clock.settled is not None:
            for needs in wanted:
                if not (state := states[needs.computation.computation_id]).torn:
                    needs.settle(state, clock.settled)
        self._states[here] = states
        for needs in wanted:
            name = needs.computation.computation_id
            state = states[name]
            if state is not known.get(name):
                state.restore_seconds = time.monotonic() - began
            if not state.torn:
                state.begin()
                self._snapshots.keep(_place_of(needs, stream, partition), state)
        if any(state is not known.get(name) for name, state in states.items()):
            self._measure(here, states)
        return states

    def full(self, states: Mapping[str, LogState]) -> list[str]:
        """Return the computations of a task whose states take more memory in this process than the limit."""
        full = [name for name in states if sum(self._sizes.get(name, {}).values()) > self._limit]
        for name in full:
            log.error("the state of a computation is too large", extra={"computation": name})
        return full

    def _measure(self, here: _PartitionPlace, states: Mapping[str, LogState]) -> None:
        for name, state in states.items():
            self._sizes.setdefault(name, {})[here] = state.nbytes

    def _unusable(self, name: str, needs: StateNeeds, position: int) -> LogState:
        """Drop all states of a computation, and return a state that must not be used."""
        for states in self._states.values():
            states.pop(name, None)
        self._sizes.pop(name, None)
        state = _kind_of(needs)(position)
        state.torn = True
        return state

    def ended(self, stream: Stream, partition: int, end: int, states: Mapping[str, LogState]) -> None:
        """Note the end of a task. If a state lacks some events of the task, the next task undoes the state's changes.

        Args:
            stream: The stream.
            partition: The source partition of the task.
            end: The position after the task's last record.
            states: The states that `begun` returned.
        """
        for needs in self._needs[stream.stream_id][1]:
            state = states[needs.computation.computation_id]
            if state.whole and not state.torn:
                state.position, state.complete = end, True
                if end > state.began:  # changes by a mark without events are not stored: the next task gets it again
                    self._snapshots.store_changes(_place_of(needs, stream, partition), state)
        self._measure(_PartitionPlace(stream.stream_id, stream.source_id, partition), states)

    def forget(self, stream_id: str) -> None:
        """Forget a stream; its states can be restored from files and from the log."""
        self._needs.pop(stream_id, None)
        self._states = {place: states for place, states in self._states.items() if place.stream_id != stream_id}
        known = {name: next(iter(sizes)).stream_id for name, sizes in self._sizes.items()}
        self._sizes = {name: sizes for name, sizes in self._sizes.items() if known[name] != stream_id}

    def _wanted(self, stream: Stream, snapshot: Snapshot) -> list[StateNeeds]:
        known = self._needs.get(stream.stream_id)
        if known is None or known[0] is not snapshot:
            parts = snapshot.by_computation()
            all_needs = (
                needs_of(self._settings, stream, each, parts[each.computation_id]) for each in snapshot.computations
            )
            known = (snapshot, [needs for needs in all_needs if needs is not None])
            self._needs[stream.stream_id] = known
        return known[1]

    def _usable(self, state: LogState | None, first: int, clock: StateClock | None) -> LogState | None:
        """Return a state whose position is `first` or before; None if the state cannot be used.

        If necessary, the changes of the last task are undone.
        """
        if state is None or state.torn:
            return None
        # If the task of a mark is carried out again, Kafka may lack the mark's results, so they must be made again.
        again = clock is not None and clock.mark is not None and state.began == state.position == first
        if not state.complete or state.position > first or (again and _has_taken(state, clock)):
            state.undo()
        return state if state.position <= first else None

    def _stored(self, place: SnapshotPlace, needs: StateNeeds, first: int, after: int = -1) -> LogState | None:
        state = self._snapshots.last(place, first, _kind_of(needs), after)
        if state is not None:
            state.keep(needs.names)
        return state

    def _caught_up(self, place: SnapshotPlace, needs: StateNeeds, state: LogState, first: int) -> LogState:
        """Return a state at `first`, or as near before it as files allow.

        If other workers have evaluated many batches since, the files of the next changes may be gone. A stored state
        over joins then replaces the worker's state, because the log does not tell how the rows were joined.
        """
        state.keep(needs.names)  # stored changes do not fit a state with a column that other workers have dropped
        self._snapshots.catch_up(place, state, first)
        if place.joined and state.position < first:
            later = self._stored(place, needs, first, state.position)
            if later is not None:
                state = later
                self._snapshots.catch_up(place, state, first)
        needs.settle(state, BEGINNING)  # stored changes do not remove the keys that became silent by marks of the clock
        return state

    def _fold(
        self,
        stream: Stream,
        views: Mapping[str, TableView],
        partition: int,
        behind: Sequence[_Behind],
        first: int,
        decoded_by: DecodedBy,
    ) -> None:
        """Bring states to the position `first` by the log. A state ignores the events that it already has."""
        clocked = [(each, state) for each in behind if (state := timed_state(each.state)) is not None]
        marks = self._marks.of(stream.source_id, partition) if clocked else []
        for each, timed in clocked:
            own = [mark for mark in marks if each.begin <= mark.position < first]
            positions, watermarks = [mark.position for mark in own], [mark.watermark for mark in own]
            timed.marks = np.array(positions, np.int64), np.array(watermarks, np.int64)
        begin = max(min(each.begin for each in behind) - stream.base, 0)
        wanted = SourceRange(stream.topic, partition, begin, first - stream.base)
        log.debug("log is read for states", extra={"stream": stream.stream_id, "partition": partition, "from": begin})
        cuts = sorted({each.state.position - stream.base for each in behind})
        pieces = logged_events(self._reader, stream, wanted, cuts, decoded_by, self._settings)
        for events in pieces:
            for each in behind:
                if not each.state.torn:
                    try:
                        self._folded(each, events, views)
                    except FAULTS as fault:  # only the groups over this computation stop
                        name, reason = each.needs.computation.computation_id, type(fault).__name__
                        log.warning("a state cannot be restored", extra={"computation": name, "reason": reason})
                        each.state.torn = True
                        continue
                    each.state.reached = max(each.state.reached, int(events.offsets[-1]) + 1)
                    # This compares only the partition's state; `full` adds the computation's states of all partitions.
                    each.state.torn = each.state.nbytes > self._limit
        for each in behind:
            each.state.position = first
        for each, timed in clocked:
            if timed.marks[1].size and not each.state.torn:
                each.needs.settle(each.state, int(timed.marks[1].max()))
            timed.marks = NO_MARKS

    def _folded(self, each: _Behind, events: Events, views: Mapping[str, TableView]) -> None:
        limits = self._settings.evaluator
        join = LookupJoinOperator(each.needs.computation, views, limits.value_bytes, limits.event_rows)
        _, slices = join.step(join.begin(), events)
        for _, rows in slices:
            if rows is not None and rows.count:
                each.needs.fold(each.state, rows)


def _kind_of(needs: StateNeeds) -> type[LogState]:
    kind = state_kind(needs.computation)
    assert kind is not None, "only a computation with a state has needs"
    return kind


def _place_of(needs: StateNeeds, stream: Stream, partition: int) -> SnapshotPlace:
    computation = needs.computation
    return SnapshotPlace(stream.source_id, partition, computation.computation_id, joined=bool(computation.nodes))


def _has_taken(state: LogState, clock: StateClock | None) -> bool:
    """Tell whether a state has already applied the mark whose results a task must make."""
    timed = timed_state(state)
    return timed is not None and clock is not None and clock.mark is not None and timed.watermark >= clock.mark
