"""The shape of a constant table: the group's plan, and how it is looked up and checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from grouping.access.access_path import AccessPath, choose_index
from grouping.model.expression import Expression, LookupKey, Reference
from grouping.model.sql_type import SqlType
from grouping.plan.group import GroupPlan
from spark_jobs.engine.index.lookup import comparison

__all__ = ["KeyColumns", "TableShape"]

KeyColumns = tuple[tuple[Reference, SqlType, SqlType], ...]
"""For each key column: the column, its type, and the type of the constants."""


@dataclass(frozen=True)
class TableShape:
    """The shape of one of a group's tables. Entries whose constants have the same types are in one table.

    Entries of virtual destinations have tables of their own. *Leaving* entries also have tables of their own: entries
    of members that have left their destination, but still get results of earlier events.
    """

    plan: GroupPlan
    types: tuple[SqlType, ...]
    """For each slot, the type of its constants."""
    virtual: bool
    """Whether the entries are of virtual destinations."""
    until: tuple[int, ...]
    """For leaving entries, by source partition: the offset of the first event that is no longer a match.

    Empty for all other entries.
    """
    path: AccessPath
    ending: bool = False
    """Whether this is the second table of a group with UNTIL, which is looked up by the condition of UNTIL."""

    @classmethod
    def of(
        cls,
        plan: GroupPlan,
        types: tuple[SqlType, ...],
        *,
        virtual: bool,
        until: tuple[int, ...] = (),
        ending: bool = False,
    ) -> TableShape:
        """Return the shape of a table, with the access path that is chosen without statistics."""
        if ending:
            plan = plan.ending()
        return cls(plan, types, virtual, until, choose_index(plan.conjuncts), ending)

    @property
    def filters(self) -> tuple[Expression, ...]:
        """The conjuncts that are evaluated only once for each event."""
        return tuple(self.plan.conjuncts[i] for i in self.path.filters)

    @property
    def residual(self) -> tuple[Expression, ...]:
        """The conjuncts that are evaluated for each pair of an event and a candidate."""
        return tuple(self.plan.conjuncts[i] for i in self.path.residual)

    @cached_property
    def key_terms(self) -> tuple[tuple[LookupKey, int], ...]:
        """The key columns, each with the slot with which it is compared; empty if the index has no equality key."""
        if self.path.kind not in ("hash", "composite"):
            return ()
        positions = self.path.equal or (self.path.set_member,)
        found = [comparison(self.plan.conjuncts[position]) for position in positions if position is not None]
        return tuple((key, slot) for _, key, slot in found)

    @cached_property
    def shared_key(self) -> KeyColumns | None:
        """The key by which the table can share an index with other tables; None if it cannot share an index."""
        if self.virtual or not self.key_terms or self.plan.stay is not None:
            return None
        return tuple((key.reference, key.type, self.types[slot].member) for key, slot in self.key_terms)
