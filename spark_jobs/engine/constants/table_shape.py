"""The shape of a constant table: the group's plan, and how it is looked up and checked."""

from __future__ import annotations

from dataclasses import dataclass

from grouping.access.access_path import AccessPath, choose_index
from grouping.model.expression import Expression
from grouping.model.group import GroupPlan
from grouping.model.sql_type import SqlType

__all__ = ["TableShape"]


@dataclass(frozen=True, slots=True)
class TableShape:
    """The table of a group's rows with the same constant types; virtual and leaving ones stand apart."""

    plan: GroupPlan
    types: tuple[SqlType, ...]
    """The types of the constants, by slot."""
    virtual: bool
    until: tuple[int, ...]
    """Where all rows are leaving: by source partition, the offset of the first event that no longer counts."""
    path: AccessPath

    @classmethod
    def of(
        cls, plan: GroupPlan, types: tuple[SqlType, ...], *, virtual: bool, until: tuple[int, ...] = ()
    ) -> TableShape:
        """Choose the index."""
        return cls(plan, types, virtual, until, choose_index(plan.conjuncts))

    @property
    def filters(self) -> tuple[Expression, ...]:
        """The conjuncts that are evaluated once per event."""
        return tuple(self.plan.conjuncts[i] for i in self.path.filters)

    @property
    def residual(self) -> tuple[Expression, ...]:
        """The conjuncts that are evaluated on candidate pairs."""
        return tuple(self.plan.conjuncts[i] for i in self.path.residual)
