"""Whether a group bears one more destination, by what workers saw of its stream (contract §6).

The workers' figures lag behind the commands, so what was admitted since counts with its expectation. Nothing is
refused for want of knowledge: without statistics a group is as small as it was observed to be.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import msgspec

from gateway.records import Destination
from gateway.working_copy import WorkingCopy
from grouping.access_path import AccessPath, choose_index
from grouping.errors import InputError
from grouping.expression import Call, Expression, Slot
from grouping.group import CompiledQuery, ConstantRow, GroupPlan
from grouping.like_pattern import like_prefix
from grouping.redis_store import mapped
from grouping.settings import Settings
from grouping.stream_statistics import PartitionStatistics, StreamStatistics

__all__ = ["Admission"]

_FRESH_MS = 1_000
"""How long statistics are used before they are read again."""
_PAIR_MICROS = 0.1
"""Time to check what an index leaves of a predicate for one candidate.

Measured by the benchmark ``residual``: 0.04 to 0.18 for 18 kinds of predicates, strings among the columns, median 0.08.
"""
_STEPS = 256
"""Versions of the constant tables for which it is known what was admitted before."""
_KNOWN_PATHS = 10_000
_ALL_OF = 1_000
_ONE_IN = 16
"""Of a group's first destinations each is estimated, of the others one in so many: estimates take 20 µs."""

_decode = msgspec.msgpack.Decoder(PartitionStatistics).decode


class Admission:
    """Reads the statistics of streams and refuses what would cost too much."""

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        self._limits = settings.limits
        self._working = working
        self._known: dict[str, tuple[int, StreamStatistics]] = {}
        self._admitted: dict[tuple[str, str], _Admitted] = {}
        self._groups: dict[str, _Group] = {}
        """What the statistics say of groups, as long as they are used."""
        self._paths: dict[str, AccessPath] = {}
        """By group: the index that it is given at first."""

    def statistics(self, stream_id: str, now_ms: int) -> StreamStatistics:
        """Return what workers saw of a stream lately."""
        known = self._known.get(stream_id)
        if known is None or not 0 <= now_ms - known[0] < _FRESH_MS:
            with mapped():
                bodies = self._working.redis.hvals(self._working.key("statistics", stream_id))
            known = self._known[stream_id] = (now_ms, StreamStatistics(_decode(body) for body in bodies))
            self._forget()
        return known[1]

    def _forget(self) -> None:
        """Let go what is known of streams and groups that are gone."""
        parts = self._working.parts
        self._groups.clear()
        for stream_id in self._known.keys() - parts.keys() - self._working.streams.keys():
            del self._known[stream_id]
        for stream_id, group_id in [key for key in self._admitted if key[1] not in parts.get(key[0], {})]:
            del self._admitted[stream_id, group_id]

    def index(self, plan: GroupPlan, now_ms: int) -> AccessPath:
        """Return how a group is looked up: the index in use, or the one that it is given at first."""
        load = self.statistics(plan.stream_id, now_ms).group(plan.group_id)
        return self._by_shape(plan) if load is None else load.path

    def check(self, query: CompiledQuery, mode: str, now_ms: int) -> None:
        """Check that a group bears a new destination, and count it as admitted.

        Args:
            query: What is to be created.
            mode: The destination's; a virtual one may match whatever it likes.
            now_ms: The time.

        Raises:
            InputError: quota-exceeded, with the figure and the limit.
        """
        plan, working = query.plan, self._working
        known = self.statistics(plan.stream_id, now_ms)
        group = self._groups.get(plan.group_id)
        if group is None or group.known is not known:
            group = self._groups[plan.group_id] = self._look_at(plan, known)
        if group.path.residual:
            rows = working.parts.get(plan.stream_id, {}).get(plan.group_id, 0)
            self._check_residual(plan, (_candidates(group, query, rows) + 1) * _PAIR_MICROS)
        if mode == "virtual":
            return
        admitted = group.admitted
        if admitted is None:
            self._check_matches(plan, group.observed)
            return
        own = 0.0
        if weight := admitted.weight():
            own = known.matches(plan.conjuncts, query.row) or 0.0
        self._check_matches(plan, group.observed + admitted.since(known.version) + own)
        admitted.add((working.epoch, working.versions.get(plan.stream_id, 0) + 1), own * weight)

    def _look_at(self, plan: GroupPlan, known: StreamStatistics) -> _Group:
        load, path = known.group(plan.group_id), self._by_shape(plan)
        rows, candidates, observed = 0, 0.0, 0.0
        if load is not None:
            rows, candidates, observed = load.rows, load.per_event(load.candidates), load.per_event(load.matches)
        admitted = None
        # Where keys alone decide, a few hot values in a sample say little of all others: what was observed does.
        if path.kind != "hash" or path.residual:
            admitted = self._admitted.setdefault((plan.stream_id, plan.group_id), _Admitted())
        return _Group(known, path, rows, candidates, observed, admitted)

    def _by_shape(self, plan: GroupPlan) -> AccessPath:
        path = self._paths.get(plan.group_id)
        if path is None:
            if len(self._paths) >= _KNOWN_PATHS:
                self._paths.clear()
            path = self._paths[plan.group_id] = choose_index(plan.conjuncts)
        return path

    def ended(self, destination: Destination) -> None:
        """Count a destination as admitted no more."""
        admitted = self._admitted.get((destination.stream_id, destination.group_id))
        if admitted is not None and destination.mode != "virtual":
            admitted.remove()

    def _check_matches(self, plan: GroupPlan, figure: float) -> None:
        limit = self._limits.matches_per_event
        if figure > limit:
            raise InputError(
                "too many matches per event are expected",
                code="quota-exceeded",
                detail=f'Those of the group "{plan.group_id}" would be {figure:,.1f}, and the limit is {limit:,.1f}.',
                hint="Publish VIRTUAL: an event is then written once, and each reader applies its own filter.",
            )

    def _check_residual(self, plan: GroupPlan, micros: float) -> None:
        limit = self._limits.residual_micros
        if micros > limit:
            raise InputError(
                "the predicate is too expensive to check",
                code="quota-exceeded",
                detail=f'What no index decides would take {micros:,.1f} µs per event in the group "{plan.group_id}", '
                f"and the limit is {limit:,.1f} µs.",
                hint="Add a comparison with =, IN or a bound that leaves few events.",
            )


class _Group(NamedTuple):
    """What statistics say of a group."""

    known: StreamStatistics
    path: AccessPath
    rows: int
    """That the index had."""
    candidates: float
    """Rows that its index leaves, per event."""
    observed: float
    """Matches per event."""
    admitted: _Admitted | None
    """None where only what was observed counts."""


def _candidates(group: _Group, query: CompiledQuery, rows: int) -> float:
    """Return how many of a group's rows an event is expected to be checked against, those of an index being few."""
    path = group.path
    if path.kind == "scan":
        return rows
    if path.prefix is not None and _met_by_all(query.plan.conjuncts[path.prefix], query.row):
        # It is checked for every event, and of the rows that are not observed yet any may be like it.
        return group.candidates + max(0, rows - group.rows)
    return group.candidates


def _met_by_all(conjunct: Expression, row: ConstantRow) -> bool:
    """Tell whether a LIKE begins with a wildcard."""
    match conjunct:
        case Call("like", (_, Slot(index))) if isinstance(pattern := row.values[index], str):
            prefix = like_prefix(pattern)
            return prefix is not None and not prefix[0]
    return False


class _Admitted:
    """What was expected of the destinations admitted to a group, by the version that they came with."""

    def __init__(self) -> None:
        self._total = 0.0
        self._count = 0
        self._versions: list[tuple[int, int]] = []
        self._before: list[float] = []

    def weight(self) -> int:
        """Return for how many the next one's expectation stands: of many only some are looked at, 0 for the others."""
        if self._count < _ALL_OF:
            return 1
        return 0 if self._count % _ONE_IN else _ONE_IN

    def add(self, version: tuple[int, int], expected: float) -> None:
        if self._versions[-1:] != [version]:
            self._versions.append(version)
            self._before.append(self._total)
            del self._versions[:-_STEPS], self._before[:-_STEPS]
        self._total += expected
        self._count += 1

    def remove(self) -> None:
        """Let one go; which one is not known, so that it takes its share of the sum."""
        if self._count:
            self._total -= self._total / self._count
            self._count -= 1

    def since(self, version: tuple[int, int]) -> float:
        """Return what was admitted after a version."""
        first = bisect_right(self._versions, version)
        return max(0.0, self._total - self._before[first]) if first < len(self._before) else 0.0
