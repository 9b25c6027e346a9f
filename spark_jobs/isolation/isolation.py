"""The evaluation of a task's events: a share of the queries (`grouping.store.quarantine`) that fails, fails alone.

All shares are evaluated together, at no cost of their own. Where that raises, its halves are tried, and so on: the one
at fault is left out, its events become dead letters, and from then on the worker evaluates it by itself. One that takes
too much CPU time is stopped midway (`spark_jobs.batch.cpu_budget`). A share that did that, or that killed workers, is
not evaluated at all for a while, and suspects are evaluated apart (`caution`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
import pyarrow as pa

from grouping.model.computation import Computation
from grouping.store.quarantine import SLOW, parts_of
from spark_jobs.batch.cpu_budget import CpuBudget, CpuExceeded, charged
from spark_jobs.batch.event_column import VALUE_BYTES
from spark_jobs.batch.events import Events
from spark_jobs.batch.faults import FAULTS, halved
from spark_jobs.batch.matches import Matches
from spark_jobs.batch.row_source import RowSource
from spark_jobs.index import Ints
from spark_jobs.isolation.caution import Caution
from spark_jobs.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.match.evaluate import candidates, matches
from spark_jobs.tables.constant_cache import Snapshot
from spark_jobs.tables.load import Loads

__all__ = ["Isolation", "Join", "Write"]

log = logging.getLogger(__name__)

Records = Iterator[pa.RecordBatch]
Shares = Sequence[str]
Write = Callable[[RowSource, Matches], Records]
"""Makes the records of matches."""
Join = Callable[[Events, Computation], Iterator[tuple[int, RowSource | None]]]
"""Makes the rows of a computation over events, in slices, each with the number of events that are done after it.

None stands for the rows of one event that makes too many.
"""


class Isolation:
    """Evaluates the events of one task."""

    def __init__(
        self,
        snapshot: Snapshot,
        write: Write,
        not_evaluated: NotEvaluatedLetters,
        caution: Caution,
        failed: set[str],
        loads: Loads,
        value_bytes: int = VALUE_BYTES,
        join: Join | None = None,
        settle: Callable[[], Records] = lambda: iter(()),
        budget: CpuBudget | None = None,
    ) -> None:
        """Begin a task.

        Args:
            snapshot: The constant tables.
            write: Makes the records of matches.
            not_evaluated: Writes the dead letters of what is left out.
            caution: What is known of shares that did harm.
            failed: Shares that have raised in this worker; those that do now are added.
            loads: Where to count what each table costs.
            value_bytes: What a text that is computed may have.
            join: Makes the rows of a computation; None where no group is over one.
            settle: Makes the records that are due once the matches of some rows are written.
            budget: The CPU time of each share; by default there is no limit.
        """
        self._alone = snapshot.over("")
        self._over = [(each, snapshot.over(each.computation_id)) for each in snapshot.computations]
        self._join = join
        self._settle = settle
        self._write = write
        self._not_evaluated = not_evaluated
        self._caution = caution
        self._failed = failed
        self._loads = loads
        self._value_bytes = value_bytes
        self._budget = budget or CpuBudget(math.inf)

    def records(self, events: Events) -> Records:
        """Yield the records of some events."""
        with self._budget.batch(events.count, len(self._caution.left_out)):
            yield from self._records(events)

    def _records(self, events: Events) -> Records:
        yield from self._looked_up(self._alone, events)
        yield from self._settle()
        for computation, snapshot in self._over:
            yield from self._joined(computation, snapshot, events)

    def _joined(self, computation: Computation, snapshot: Snapshot, events: Events) -> Records:
        """Yield the records of the groups over a computation; a join that fails leaves these groups out.

        They are in hand together while it is made, as it is made for all of them.
        """
        assert self._join is not None, "groups over computations come with what makes these"
        caution = self._caution
        hands: Shares = ()
        if caution.concerns(self._failed):
            together, apart, left_out, withheld = caution.divide(snapshot.groups, self._failed)
            if not together and not apart:
                for share in left_out:
                    yield from self._not_evaluated(events, np.arange(events.count), share, caution.left_out[share])
                yield from self._not_evaluated.withheld(events, withheld)
                return
            hands = [*together, *chain.from_iterable(apart)] if apart else ()
        slices, done = self._join(events, computation), 0
        while done < events.count:
            caution.hold(hands)
            try:
                with charged(computation.computation_id, lambda: snapshot.groups):
                    done, rows = next(slices)
            except CpuExceeded:
                yield from self._left_out(events, np.arange(done, events.count), snapshot.groups)
                return
            except FAULTS as fault:
                yield from self._join_failed(snapshot, events, done, f"its join failed with {type(fault).__name__}")
                return
            if rows is None:
                yield self._not_evaluated.too_many_rows(events, done - 1, computation)
            elif rows.count:
                yield from self._looked_up(snapshot, rows)
                yield from self._settle()

    def _join_failed(self, snapshot: Snapshot, events: Events, done: int, reason: str) -> Records:
        """Yield what stands for the groups over a join, from the first event on for which it could not be made."""
        for share in snapshot.groups:
            self._report(share)
            self._failed.add(share)
            yield from self._not_evaluated(events, np.arange(done, events.count), share, reason)

    def _looked_up(self, snapshot: Snapshot, rows: RowSource) -> Records:
        yield from self._stage(_Lookup(snapshot, rows, self._loads, self._value_bytes, self._written, self._caution))

    def _written(self, events: RowSource, found: Matches) -> Records:
        yield from self._stage(_Output(events, found, self._write))

    def _stage(self, stage: _Stage) -> Records:
        """Yield what a stage makes of its shares: of suspects by themselves, then of those that did no harm together.

        Suspects come first, so that the next death tells of them: among the others there may be one more that kills.
        """

        def failed(share: str, reason: str) -> Records:
            self._failed.add(share)
            yield from self._not_evaluated(stage.events, stage.touched(share), share, reason)

        def tried(shares: Shares | None) -> Records:
            waiting = [shares]
            while waiting:
                some = waiting.pop()
                if some is not None and (withheld := caution.withheld(some)):  # since one of theirs was too slow
                    yield from self._not_evaluated.withheld(stage.events, withheld)
                    some = [share for share in some if share not in set(withheld)]
                if some is not None and not some:
                    continue
                try:
                    yield from halved(some, stage.shares, stage.records, self._report, failed)
                    continue
                except CpuExceeded:
                    stopped = self._budget.stopped
                    guilty, others = _parted(stage.shares() if some is None else some, stopped.suspects)
                    if not guilty:
                        raise  # it is nobody's
                # Outside of the handler, which would keep what was stopped in memory.
                self._budget.again()
                half = len(guilty) // 2
                if stopped.alike or not half:
                    for share in guilty:
                        yield from self._left_out(stage.events, stage.touched(share, safely=True), [share])
                else:
                    waiting += [guilty[:half], guilty[half:]]
                if others:
                    waiting.append(others)

        caution = self._caution
        if not caution.concerns(self._failed):
            yield from tried(None)
            return
        together, apart, left_out, withheld = caution.divide(stage.shares(), self._failed)
        for lot in apart:
            caution.hold(lot)
            yield from tried(lot)
        caution.hold(())
        if together:
            yield from tried(together if apart or left_out or withheld else None)
        yield from self._not_evaluated.withheld(stage.events, withheld)
        for share in left_out:
            yield from self._not_evaluated(
                stage.events, stage.touched(share, safely=True), share, caution.left_out[share]
            )

    def _left_out(self, events: RowSource, rows: Ints, shares: Shares) -> Records:
        """Yield what stands for shares that were too slow, and leave them out from now on."""
        self._caution.convict(shares)
        for share in shares:
            log.error("left out, it took too much CPU time", extra={"share": share})
            yield from self._not_evaluated(events, rows, share, SLOW)

    def _report(self, share: str) -> None:
        """Log the fault that is being handled; once, as it comes again with every batch."""
        if share not in self._failed:
            log.exception("not evaluated", extra={"share": share})


def _parted(shares: Shares, suspects: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return the shares among suspects, which are groups or SELECT lists, and the others; all where none is."""
    guilty = [share for share in shares if not suspects.isdisjoint(parts_of(share))]
    found = set(guilty)
    return guilty or [*shares], [share for share in shares if share not in found] if guilty else []


class _Stage(Protocol):
    """A step of the evaluation, which may fail for some shares."""

    @property
    def events(self) -> RowSource:
        """The batch."""

    def shares(self) -> list[str]:
        """List the shares that take part."""

    def records(self, shares: Shares | None) -> Records:
        """Yield the records of some shares, None for all."""

    def touched(self, share: str, *, safely: bool = False) -> Ints:
        """Return the events that a share may have met; safely: without evaluating anything of it."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The look-up of groups, with their residuals."""

    snapshot: Snapshot
    events: RowSource
    loads: Loads
    value_bytes: int
    written: Write
    caution: Caution

    def shares(self) -> list[str]:
        return [*self.snapshot.groups]

    def records(self, shares: Shares | None) -> Records:
        snapshot = self.snapshot if shares is None else self.snapshot.only(shares)
        held = self.caution.held
        for found in matches(snapshot, self.events, loads=self.loads, value_bytes=self.value_bytes):
            yield from self.written(self.events, found)
            self.caution.hold(held)

    def touched(self, share: str, *, safely: bool = False) -> Ints:
        everything = np.arange(self.events.count)
        try:
            return everything if safely else candidates(self.snapshot.only([share]), self.events)
        except FAULTS:
            return everything


@dataclass(frozen=True, slots=True)
class _Output:
    """The output for matches: SELECT lists of groups, encoded."""

    events: RowSource
    found: Matches
    write: Write

    def shares(self) -> list[str]:
        return self.found.shares

    def records(self, shares: Shares | None) -> Records:
        yield from self.write(self.events, self.found if shares is None else self.found.only(shares))

    def touched(self, share: str, *, safely: bool = False) -> Ints:
        return np.unique(self.found.only([share]).event)
