"""The code that makes digests out of groups: the evaluator's arithmetic, as used by the gateway.

The code lies with the evaluator (`spark_jobs/groups/`); the gateway gets it from whoever puts its parts together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from grouping.digests.cursor import Offsets
from grouping.digests.group_gather import GroupPart
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.rolling import StoreReaders
from grouping.digests.rows import Rows
from grouping.model.group import ConstantRow, GroupPlan, SelectList

__all__ = ["DigestGroups", "GroupCode", "GroupDestination", "GroupMerging", "TooManyGroups", "TooManyTogether"]


class TooManyGroups(Exception):
    """Some questions have more groups than a digest may hold."""

    def __init__(self, questions: Iterable[int]) -> None:
        """Name the questions by their numbers."""
        super().__init__("too many groups")
        self.questions = frozenset(questions)


class TooManyTogether(Exception):
    """Some questions have more groups together than are to be in memory at once; each alone has not."""


class GroupDestination(NamedTuple):
    """A destination of a query."""

    groups: Any
    """Its own, as `GroupMerging.groups` returns them: destinations that differ in HAVING's constants share them."""
    row: ConstantRow
    with_none: bool
    """Whether without GROUP BY and without matches there is a row."""


class DigestGroups(NamedTuple):
    """The contents of a destination's digest."""

    rows: Rows
    """The groups that HAVING leaves, as JSON objects in the order of their keys."""
    matches: int
    """The number of matches that were counted, whatever HAVING leaves."""
    left_out: str = ""
    """Why some of the rows are missing, a full sentence."""
    failure: str = ""
    """Why there are no rows: there was no room for them."""


class GroupMerging(Protocol):
    """Puts the parts of groups together as they are gathered."""

    size: int
    """Bytes of all groups, once `groups` has returned them."""
    late: NDArray[np.int64]
    """By question: matches of times before its digest."""

    def take(self, parts: Sequence[GroupPart]) -> None:
        """Take in what counts of some records, in the order of the log; raises TooManyGroups and TooManyTogether."""

    def groups(self) -> Sequence[Any]:
        """Return the groups of each question; raises TooManyGroups and TooManyTogether."""


class GroupCode(Protocol):
    """The evaluator's code for groups."""

    @property
    def faults(self) -> tuple[type[BaseException], ...]:
        """Exceptions of the other methods where an expression fails."""

    def merging(self, select: SelectList, questions: int) -> GroupMerging:
        """Return what puts the groups of so many questions together."""

    def kept(
        self, plan: GroupPlan, select: SelectList, destinations: Sequence[GroupDestination]
    ) -> Iterator[DigestGroups]:
        """Yield what the destinations of one query get after HAVING, in their order."""

    def rolled(
        self,
        select: SelectList,
        records: Sequence[tuple[int, PendingMatches]],
        readers: Mapping[bytes, StoreReaders],
        covered: Offsets,
        before: int,
    ) -> list[bytes]:
        """Return records that stand for others, as `spark_jobs.groups.rolled.rolled_records` does."""
