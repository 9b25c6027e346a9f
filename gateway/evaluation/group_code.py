"""The evaluator's code for groups, for the gateway's ticks: loaded when first needed, since its libraries take long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from grouping.digests.cursor import Offsets
from grouping.digests.group_code import DigestGroups, GroupDestination, GroupMerging
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.rolling import StoreReaders
from grouping.model.group import GroupPlan, SelectList

__all__ = ["EvaluatorGroups"]


class EvaluatorGroups:
    """Groups as the evaluator counts them (`grouping.digests.group_code.GroupCode`)."""

    @property
    def faults(self) -> tuple[type[BaseException], ...]:
        """Exceptions raised where an expression fails."""
        from spark_jobs.batch.faults import FAULTS  # noqa: PLC0415

        return FAULTS

    def merging(self, select: SelectList, questions: int) -> GroupMerging:
        """Return what puts the groups of so many questions together."""
        from spark_jobs.groups.merging import GroupMerge  # noqa: PLC0415

        return GroupMerge(select, questions)

    def kept(
        self, plan: GroupPlan, select: SelectList, destinations: Sequence[GroupDestination]
    ) -> Iterator[DigestGroups]:
        """Yield the results of a query's destinations after HAVING, in their order."""
        from spark_jobs.groups.kept import kept_groups  # noqa: PLC0415

        return kept_groups(plan, select, destinations)

    def rolled(
        self,
        select: SelectList,
        records: Sequence[tuple[int, PendingMatches]],
        readers: Mapping[bytes, StoreReaders],
        covered: Offsets,
        before: int,
    ) -> list[bytes]:
        """Return records that stand for others."""
        from spark_jobs.groups.rolled import rolled_records  # noqa: PLC0415

        return rolled_records(select, records, readers, covered, before)
