"""Conjuncts that several tables of a shared index have, equal up to constants: each is checked once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Call, Expression, Slot
from grouping.model.sql_type import SqlType
from spark_jobs.engine.constants.constant_rows import ConstantRows, concatenated
from spark_jobs.engine.constants.table_shape import TableShape
from spark_jobs.engine.index import Ints

__all__ = ["SharedKind", "SharedPart", "SharedConjunct", "ConjunctCost", "shared_conjuncts"]

SharedKind = tuple[Expression, tuple[SqlType, ...], int]
"""A conjunct, its slots numbered from 0; their types; and its number among equal conjuncts of a predicate."""


class SharedPart(Protocol):
    """A part of a table: `spark_jobs.engine.constants.constant_part.ConstantPart`."""

    shape: TableShape
    rows: ConstantRows
    alive: NDArray[np.bool_] | None
    version: int


@dataclass(slots=True)
class ConjunctCost:
    """The cost of checking a conjunct so far, and how often it held."""

    seconds: float = 0.0
    checked: int = 0
    held: int = 0

    def add(self, seconds: float, checked: int, held: int) -> None:
        """Count some pairs; older ones count less and less."""
        if self.checked > _REMEMBERED:
            self.seconds, self.checked, self.held = self.seconds / 2, self.checked // 2, self.held // 2
        self.seconds += seconds
        self.checked += checked
        self.held += held

    @property
    def rank(self) -> float:
        """Seconds per excluded pair: conjuncts are checked in ascending order."""
        return self.seconds / max(self.checked - self.held, 1)


_REMEMBERED = 1_000_000
"""Pairs after which older ones begin to count less."""


@dataclass(frozen=True, slots=True)
class SharedConjunct:
    """A conjunct that several tables have, up to constants."""

    kind: SharedKind
    constants: tuple[pa.Array, ...]
    """By slot, the constants of all rows of the tables with this conjunct."""
    members: NDArray[np.bool_]
    """Which members have the conjunct."""
    shift: Ints
    """By member: the difference from a row of the shared index to its row in `constants`."""
    tally: ConjunctCost = field(default_factory=ConjunctCost)

    @property
    def conjunct(self) -> Expression:
        """The conjunct."""
        return self.kind[0]

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The types of its slots."""
        return self.kind[1]


def shared_conjuncts(
    members: Sequence[SharedPart], starts: Ints, tallies: Mapping[SharedKind, ConjunctCost]
) -> Iterator[SharedConjunct]:
    """Yield the conjuncts of the members' predicates that are left to check, each once up to constants.

    Args:
        members: The parts.
        starts: The first row of each in the shared index.
        tallies: Earlier measurements of conjuncts.
    """
    have: dict[SharedKind, list[tuple[int, tuple[int, ...]]]] = {}
    for number, member in enumerate(members):
        counts: dict[tuple[Expression, tuple[SqlType, ...]], int] = {}
        for conjunct in _left(member.shape):
            slots: dict[int, int] = {}
            renumbered = _renumbered(conjunct, slots)
            typed = (renumbered, tuple(member.shape.types[slot] for slot in slots))
            counts[typed] = counts.get(typed, 0) + 1
            have.setdefault((*typed, counts[typed]), []).append((number, tuple(slots)))
    for kind, having in have.items():
        of = np.zeros(len(members), np.bool_)
        shift = np.zeros(len(members), np.int64)
        size = 0
        for number, _ in having:
            of[number], shift[number] = True, size - starts[number]
            size += len(members[number].rows)
        constants = tuple(
            concatenated([members[number].rows.constants[slots[i]] for number, slots in having])
            for i in range(len(kind[1]))
        )
        yield SharedConjunct(kind, constants, of, shift, tallies.get(kind) or ConjunctCost())


def _left(shape: TableShape) -> Iterable[Expression]:
    """Return the conjuncts that the key does not decide."""
    keys = {*shape.path.equal, shape.path.set_member}
    return (conjunct for position, conjunct in enumerate(shape.plan.conjuncts) if position not in keys)


def _renumbered(expression: Expression, slots: dict[int, int]) -> Expression:
    """Return an expression with its slots renumbered in order of occurrence; `slots` maps old numbers to new ones."""
    match expression:
        case Slot(index):
            return Slot(slots.setdefault(index, len(slots)))
        case Call(op, args, kind):
            return Call(op, tuple(_renumbered(arg, slots) for arg in args), kind)
    return expression
