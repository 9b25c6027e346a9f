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
    """The table of a group's rows with the same constant types; virtual and leaving rows have tables of their own."""

    plan: GroupPlan
    types: tuple[SqlType, ...]
    """The types of the constants, by slot."""
    virtual: bool
    until: tuple[int, ...]
    """Where all rows are leaving: by source partition, the offset of the first event that no longer counts."""
    path: AccessPath
    ending: bool = False
    """Whether the table is a group's second one, which is looked up by UNTIL."""

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
        """Choose the index."""
        if ending:
            plan = plan.ending()
        return cls(plan, types, virtual, until, choose_index(plan.conjuncts), ending)

    @property
    def filters(self) -> tuple[Expression, ...]:
        """The conjuncts that are evaluated once per event."""
        return tuple(self.plan.conjuncts[i] for i in self.path.filters)

    @property
    def residual(self) -> tuple[Expression, ...]:
        """The conjuncts that are evaluated on candidate pairs."""
        return tuple(self.plan.conjuncts[i] for i in self.path.residual)

    @cached_property
    def key_terms(self) -> tuple[tuple[LookupKey, int], ...]:
        """The key columns, each with the slot to compare it with; empty if the index has no key."""
        if self.path.kind not in ("hash", "composite"):
            return ()
        positions = self.path.equal or (self.path.set_member,)
        found = [comparison(self.plan.conjuncts[position]) for position in positions if position is not None]
        return tuple((key, slot) for _, key, slot in found)

    @cached_property
    def shared_key(self) -> KeyColumns | None:
        """The common key of the tables of a shared index; None for a table outside of shared indexes."""
        if self.virtual or not self.key_terms or self.plan.stay is not None:
            return None
        return tuple((key.reference, key.type, self.types[slot].member) for key, slot in self.key_terms)
