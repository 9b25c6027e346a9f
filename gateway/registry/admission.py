"""Decides, from the workers' statistics of a stream, whether a group can take another destination (docs/results.md).

The workers' statistics are older than the last commands, and do not include the latest destinations. The gateway adds
the expected matches of these destinations. Missing statistics never cause a refusal: a group that no worker has
measured counts as having no matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from gateway.model.records import Destination
from gateway.registry.expectations import BatchTimes, Expectations
from gateway.registry.replicas import Replicas
from gateway.registry.table_memory import TableMemory
from gateway.state.working_copy import WorkingCopy
from grouping.access.access_path import AccessPath, choose_index
from grouping.access.stream_statistics import PartitionStatistics, StreamStatistics
from grouping.model.errors import InputError
from grouping.model.expression import Call, Expression, Slot, walk
from grouping.model.group import ConstantRow
from grouping.model.ids import GroupId, StreamId
from grouping.model.refusals import predicate_too_large
from grouping.plan.computation import Computation
from grouping.plan.group import CompiledQuery, GroupPlan
from grouping.settings.settings import Settings
from grouping.values.like_pattern import like_prefix

__all__ = ["Admission"]

_FRESH_MS = 1_000
"""How long statistics are used before they are read again, in milliseconds."""
_NODE_MICROS = 0.02
"""µs to check a node (operator, column or constant) of a residual, for one candidate.

The benchmark ``residual`` measured 0.04 to 0.18 µs for whole predicates of 3 to 9 nodes, some with STRING columns.
"""
_COSTLY = {
    "levenshtein": 10.0,
    "split": 6.0,
    "get_json_object": 5.0,
    "format_string": 5.0,
    "parse_url": 3.0,
    **dict.fromkeys(("regexp_replace", "regexp_extract", "regexp_count", "regexp_instr", "regexp_substr"), 2.0),
    **dict.fromkeys(("rlike", "soundex", "translate", "md5", "sha1", "sha2"), 1.0),
}
"""Function → µs to compute the function for one candidate, with short texts. If the workers have measured a longer time
for the candidates of the group, the measured time is used instead."""
_MEASURED_PAIRS = 1_000
"""The measured time of a group is used only if the workers have measured at least this many candidates."""
_KEYED_MICROS, _INDEXED_MICROS, _SCANNED_MICROS = 10.0, 60.0, 800.0
"""µs that a group takes in each micro-batch with few events: with a hash or composite index, with another index, and
without an index."""
_CHECKED_MICROS, _COMPUTED_MICROS = 300.0, 700.0
"""Additional µs: for a residual with an index that is not a hash or composite index, and for an index over a value that
is computed from columns.

All five constants are rounded results of the benchmark ``fixed``. The cost of a computation is in its nodes
(`Computation.batch_micros`).
"""
_RUNS = ("ordered", "composite")
"""The kinds of indexes that keep entries in the order of their constants, so that matching entries are neighbours."""
_KNOWN_SHAPES = 10_000

_decode = msgspec.msgpack.Decoder(PartitionStatistics).decode


class Admission:
    """Reads the statistics of streams and refuses destinations that would cost too much."""

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        self.replicas = Replicas(working)
        """The workers' reports on the tables that queries join."""
        self._limits = settings.limits
        self._working = working
        self._known: dict[StreamId, tuple[int, StreamStatistics]] = {}
        self._admitted: dict[tuple[StreamId, GroupId], Expectations] = {}
        self._groups: dict[str, _Group] = {}
        """Id of a group → estimates from the present statistics."""
        self._shapes: dict[str, _Shape] = {}
        self._batch_times = BatchTimes()
        self.memory = TableMemory(settings, working, self.replicas)
        """The workers' memory for constant tables."""

    def statistics(self, stream_id: StreamId, now_ms: int) -> StreamStatistics:
        """Return the workers' latest statistics of a stream."""
        known = self._known.get(stream_id)
        if known is None or not 0 <= now_ms - known[0] < _FRESH_MS:
            self.refresh([stream_id], now_ms)
        return self._known[stream_id][1]

    def refresh(self, stream_ids: Sequence[StreamId], now_ms: int) -> None:
        """Read the workers' statistics of streams, with one request to Redis."""
        found = self._working.evaluator.statistics(stream_ids)
        known = {stream_id: StreamStatistics(_readable(bodies)) for stream_id, bodies in found.items()}
        self._known |= {stream_id: (now_ms, statistics) for stream_id, statistics in known.items()}
        self.memory.observe(known, now_ms)

    def forget(self) -> None:
        """Forget the statistics of dropped streams and groups."""
        inventory = self._working.inventory
        self._groups.clear()
        for stream_id in self._known.keys() - inventory.dependencies.keys() - inventory.streams.keys():
            del self._known[stream_id]
            self._batch_times.forget(stream_id)
            self.memory.forget(stream_id)
        for stream_id, group_id in [key for key in self._admitted if key[1] not in inventory.groups(key[0])]:
            del self._admitted[stream_id, group_id]

    def index(self, plan: GroupPlan, now_ms: int) -> AccessPath:
        """Return the access path of a group: the path in use, or for a new group the path that its predicate gives."""
        load = self.statistics(plan.stream_id, now_ms).group(plan.group_id)
        return self._shape(plan).path if load is None else load.path

    def check(self, query: CompiledQuery, destination: Destination, now_ms: int, computed: float = 0.0) -> None:
        """Check that a group and its workers can take a new destination, and count the destination as admitted.

        Args:
            query: The query to create.
            destination: The query's destination. The limit on matches per event does not apply to virtual destinations.
            now_ms: The present, epoch milliseconds.
            computed: Expected time of the stream's computations in each micro-batch, in microseconds.

        Raises:
            InputError: quota-exceeded, with the figure and the limit.
        """
        plan, inventory, limits = query.plan, self._working.inventory, self._limits
        known = self.statistics(plan.stream_id, now_ms)
        group = self._groups.get(plan.group_id)
        if group is None or group.known is not known:
            group = self._groups[plan.group_id] = self._look_at(plan, known)
        if group.shape.nodes > limits.normal_form:
            raise predicate_too_large(f"{group.shape.nodes:,}", limits.normal_form)
        if plan.computation is not None:
            self._check_tables(plan.computation, now_ms)
        self._check_batch_time(plan, group, known, computed)
        if group.shape.residual_micros:
            rows = inventory.groups(plan.stream_id).get(plan.group_id, 0)
            pairs = _candidates(group, query, rows) + 1
            self._check_residual(plan, pairs * max(group.shape.residual_micros, group.pair_micros))
        version = (inventory.epoch, inventory.versions.get(plan.stream_id, 0) + 1)
        if destination.mode == "virtual":
            self.memory.check(destination, version)
            return
        admitted, own, weight = group.admitted, 0.0, 0
        # For edges, an ordered index finds only the entries between the values of an event and of the event before it.
        # Any other index finds the matches of both events, and the edges are the difference between these matches.
        crossed = (
            (plan.before is not None or plan.lasting is not None)
            and query.edge != "changes"
            and group.shape.path.kind in _RUNS
            and not group.shape.path.residual
        )
        matches = group.candidates if plan.before is not None and not crossed else group.observed
        if admitted is not None and not crossed:
            if weight := admitted.weight():
                own = known.matches(plan.conjuncts, query.row) or 0.0
            matches += admitted.since(known.version) + own
        if matches > limits.matches_per_event:
            raise _too_many_matches(plan, matches, limits.matches_per_event)
        self.memory.check(destination, version)  # last of the checks, because it counts the row as admitted
        if admitted is not None:
            admitted.add(version, own * weight)

    def _look_at(self, plan: GroupPlan, known: StreamStatistics) -> _Group:
        load, shape = known.group(plan.group_id), self._shape(plan)
        rows, candidates, observed, pair_micros = 0, 0.0, 0.0, 0.0
        if load is not None:
            pair_micros = load.micros / load.candidates if load.candidates >= _MEASURED_PAIRS else 0.0
            rows, candidates, observed = load.rows, load.per_event(load.candidates), load.per_event(load.matches)
        admitted = None
        # Estimates need a sample of column values. The sample has only a few frequent values, so it cannot estimate the
        # matches of an equality. For a hash index without residual, only the observed matches are used.
        if shape.path.kind != "hash" or shape.path.residual:
            admitted = self._admitted.setdefault((plan.stream_id, plan.group_id), Expectations())
        return _Group(known, shape, rows, candidates, observed, pair_micros, admitted)

    def _shape(self, plan: GroupPlan) -> _Shape:
        shape = self._shapes.get(plan.group_id)
        if shape is None:
            if len(self._shapes) >= _KNOWN_SHAPES:
                self._shapes.clear()
            shape = self._shapes[plan.group_id] = _Shape.of(plan.conjuncts)
        return shape

    def ended(self, destination: Destination) -> None:
        """Undo the admission of a destination."""
        self.memory.ended(destination)
        admitted = self._admitted.get((destination.stream_id, destination.group_id))
        if admitted is not None and destination.mode != "virtual":
            admitted.remove()

    def _check_tables(self, computation: Computation, now_ms: int) -> None:
        limit = self._limits.table_rows
        for table_id in set(computation.table_ids):
            table = self._working.inventory.tables[table_id]
            figures = self.replicas.of(table, now_ms)
            if figures is not None and figures.rows > limit:
                raise InputError(
                    f'table "{table.name}" is too large to be joined',
                    code="quota-exceeded",
                    detail=f"The table has {figures.rows:,} rows, and each worker holds all of them. The limit is "
                    f"{limit:,} rows.",
                    hint="Remove rows that are not needed any more, or ask for a higher limit.",
                )

    def _check_batch_time(self, plan: GroupPlan, group: _Group, known: StreamStatistics, computed: float) -> None:
        """Check that micro-batches of a stream stay short enough with a new group, and count the group."""
        live, stream_id = self._working.inventory.groups(plan.stream_id), plan.stream_id
        if plan.group_id in live:
            return

        def measured(group_id: GroupId) -> float | None:
            load = known.group(group_id)
            return None if load is None else _batch_micros(load.path)

        own, limit = group.shape.batch_micros, self._limits.batch_milliseconds
        expected = self._batch_times.expected(stream_id, known, live, measured) + computed + own
        if expected > limit * 1000:
            raise InputError(
                "the queries of the stream take too long in every micro-batch",
                code="quota-exceeded",
                detail=f"With this query, the queries would take {expected / 1000:,.1f} ms in each micro-batch, even "
                f"without matches. The limit is {limit:,.1f} ms.",
                hint="Compare a column with = or IN: queries with such a key are looked up together.",
            )
        self._batch_times.add(stream_id, plan.group_id, own)

    def _check_residual(self, plan: GroupPlan, micros: float) -> None:
        limit = self._limits.residual_micros
        if micros > limit:
            raise InputError(
                "the predicate is too expensive to check",
                code="quota-exceeded",
                detail=f"The conjuncts without an index would take {micros:,.1f} µs per event in the group "
                f'"{plan.group_id}", and the limit is {limit:,.1f} µs.',
                hint="Add a comparison with =, IN or a bound that few events satisfy.",
            )


class _Shape(NamedTuple):
    """Facts about a group that follow from its predicate."""

    path: AccessPath
    """The access path of a new group of this shape."""
    nodes: int
    """The number of operators, columns and constants in the predicate."""
    residual_micros: float
    """Expected µs to check the residual of one candidate."""
    batch_micros: float
    """Expected µs in each micro-batch, independent of the events."""

    @classmethod
    def of(cls, conjuncts: Sequence[Expression]) -> _Shape:
        path, nodes = choose_index(conjuncts), [sum(1 for _ in walk(conjunct)) for conjunct in conjuncts]
        costly = sum(
            _COSTLY.get(each.op, 0.0)
            for position in path.residual
            for each in walk(conjuncts[position])
            if isinstance(each, Call)
        )
        residual = sum(nodes[position] for position in path.residual) * _NODE_MICROS + costly
        computed = any(_computes(conjuncts[position]) for position in path.keys)
        return cls(path, sum(nodes), residual, _batch_micros(path) + (_COMPUTED_MICROS if computed else 0.0))


class _Group(NamedTuple):
    """Estimates for a group, from the statistics of its stream."""

    known: StreamStatistics
    shape: _Shape
    rows: int
    """The number of rows in the index when the workers last counted candidates."""
    candidates: float
    """The number of candidates that the index finds for an event."""
    observed: float
    """The number of matches of an event."""
    pair_micros: float
    """Measured µs for a candidate; 0 if fewer than `_MEASURED_PAIRS` candidates were measured."""
    admitted: Expectations | None
    """Expected matches of recently admitted destinations; None if only the observed matches are used."""


def _batch_micros(path: AccessPath) -> float:
    """Return the expected µs of a group in each micro-batch, independent of the events.

    The additional time for computed keys is not included.
    """
    if path.kind in ("hash", "composite"):
        return _KEYED_MICROS  # all keyed groups share a look-up and a check
    if path.kind == "scan":
        return _SCANNED_MICROS
    return _INDEXED_MICROS + (_CHECKED_MICROS if path.residual else 0.0)


def _computes(conjunct: Expression) -> bool:
    """Tell whether a comparison, or a comparison within an OR, has a computed operand."""
    if not isinstance(conjunct, Call):
        return False
    if conjunct.op in ("or", "and"):
        return any(_computes(part) for part in conjunct.args)
    return any(isinstance(part, Call) for part in conjunct.args)


def _candidates(group: _Group, query: CompiledQuery, rows: int) -> float:
    """Return the expected number of a group's constant rows against which one event is checked."""
    path = group.shape.path
    if path.kind == "scan":
        return rows
    if path.prefix is not None and _holds_for_all(query.plan.conjuncts[path.prefix], query.row):
        # The prefix of this pattern excludes no event, so each event is checked against the row. Rows that are newer
        # than the statistics may have such patterns too, so each of them counts as a candidate of every event.
        return group.candidates + max(0, rows - group.rows)
    return group.candidates


def _too_many_matches(plan: GroupPlan, figure: float, limit: float) -> InputError:
    return InputError(
        "too many matches per event are expected",
        code="quota-exceeded",
        detail=f'The group "{plan.group_id}" would have {figure:,.1f} matches per event; the limit is {limit:,.1f}.',
        hint="Publish VIRTUAL: an event is then written once, and each reader applies its own filter."
        if plan.computation is None
        else "Compare a column with = or IN as well.",
    )


def _readable(bodies: Iterable[bytes]) -> Iterator[PartitionStatistics]:
    """Yield the statistics that can be decoded.

    Statistics that a worker of another program version has written are skipped. Workers of this version soon replace
    them.
    """
    for body in bodies:
        with suppress(msgspec.MsgspecError):
            yield _decode(body)


def _holds_for_all(conjunct: Expression, row: ConstantRow) -> bool:
    """Tell whether the pattern of a LIKE begins with a wildcard, so that its prefix excludes no event."""
    match conjunct:
        case Call("like", (_, Slot(index))) if isinstance(pattern := row.values[index], str):
            prefix = like_prefix(pattern)
            return prefix is not None and not prefix[0]
    return False
