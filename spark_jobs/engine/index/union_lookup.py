"""The index for an access path. The index for an OR has an index for each branch, all over the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from grouping.access.access_path import AccessPath, branches_of
from grouping.model.expression import Expression
from grouping.model.sql_type import SqlType
from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.element_lookup import ElementLookup
from spark_jobs.engine.index.lookup import Candidates, Lookup
from spark_jobs.engine.index.prefix_lookup import PrefixLookup
from spark_jobs.engine.index.union_candidates import UnionCandidates
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["AnyCandidates", "AnyLookup", "lookup_of"]


class UnionLookup:
    """The indexes of an OR's branches. They do not change after they are built."""

    def __init__(self, branches: Sequence[AnyLookup]) -> None:
        """Take an index for each branch, over the same rows."""
        self._branches = branches

    def find(self, events: EventColumns, selected: Ints) -> UnionCandidates:
        """Return the candidates of the events at the positions `selected`."""
        return UnionCandidates([branch.find(events, selected) for branch in self._branches], events.source.count)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return sum(branch.nbytes for branch in self._branches)


AnyCandidates = Candidates | UnionCandidates
AnyLookup = Lookup | PrefixLookup | ElementLookup | UnionLookup


def lookup_of(
    conjuncts: Sequence[Expression],
    path: AccessPath,
    types: Sequence[SqlType],
    constants: Sequence[pa.Array],
    count: int,
) -> AnyLookup:
    """Return the index of rows for an access path; the arguments are as in `Lookup`."""
    if path.prefix is not None:
        return PrefixLookup(conjuncts[path.prefix], constants)
    if path.element is not None:
        return ElementLookup(conjuncts[path.element], types, constants)
    if path.union_of is None:
        return Lookup(conjuncts, path, types, constants, count)
    branches = zip(branches_of(conjuncts[path.union_of]), path.branches, strict=True)
    return UnionLookup([lookup_of(branch, own, types, constants, count) for branch, own in branches])
