"""The conjuncts that the key of a shared index does not decide.

If conjuncts of several tables are equal up to constants, they are one shared conjunct, which is checked for all these
tables together.
"""

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
"""A conjunct with its slots numbered from 0, the types of these slots, and a number.

The number distinguishes conjuncts of the same predicate that are equal up to constants: 1 for the first, 2 for the
second, and so on.
"""


class SharedPart(Protocol):
    """A part of a table; implemented by `spark_jobs.engine.constants.constant_part.ConstantPart`."""

    shape: TableShape
    rows: ConstantRows
    alive: NDArray[np.bool_] | None
    version: int


@dataclass(slots=True)
class ConjunctCost:
    """The time that checks of a conjunct took, the number of checked pairs, and how many satisfied the conjunct."""

    seconds: float = 0.0
    checked: int = 0
    held: int = 0

    def add(self, seconds: float, checked: int, held: int) -> None:
        """Add a check of some pairs of an event and a constant row. Earlier pairs weigh less and less."""
        if self.checked > _REMEMBERED:
            self.seconds, self.checked, self.held = self.seconds / 2, self.checked // 2, self.held // 2
        self.seconds += seconds
        self.checked += checked
        self.held += held

    @property
    def rank(self) -> float:
        """The seconds for each pair that the conjunct has excluded. Conjuncts with lower ranks are checked first."""
        return self.seconds / max(self.checked - self.held, 1)


_REMEMBERED = 1_000_000
"""When more pairs than this were checked, the sums are halved, so that older pairs weigh less."""


@dataclass(frozen=True, slots=True)
class SharedConjunct:
    """A conjunct that one or more tables of a shared index have, up to constants."""

    kind: SharedKind
    constants: tuple[pa.Array, ...]
    """For each slot, the constants of all rows of the members with this conjunct."""
    members: NDArray[np.bool_]
    """For each member of the shared index, whether it has the conjunct."""
    shift: Ints
    """For each member, the number that must be added to a row of the shared index to get its row in `constants`."""
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
    """Yield each conjunct that the key does not decide, once for all members that have the conjunct.

    Args:
        members: The members: parts of tables.
        starts: For each member, the number of its first row in the shared index.
        tallies: Earlier measurements of conjuncts.
    """
    have: dict[SharedKind, list[tuple[int, tuple[int, ...]]]] = {}
    for number, member in enumerate(members):
        counts: dict[tuple[Expression, tuple[SqlType, ...]], int] = {}
        for conjunct in _not_in_key(member.shape):
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


def _not_in_key(shape: TableShape) -> Iterable[Expression]:
    """Return the conjuncts that the key does not decide."""
    keys = {*shape.path.equal, shape.path.set_member}
    return (conjunct for position, conjunct in enumerate(shape.plan.conjuncts) if position not in keys)


def _renumbered(expression: Expression, slots: dict[int, int]) -> Expression:
    """Return an expression with its slots renumbered in order of occurrence; `slots` gets the new number of each."""
    match expression:
        case Slot(index):
            return Slot(slots.setdefault(index, len(slots)))
        case Call(op, args, kind):
            return Call(op, tuple(_renumbered(arg, slots) for arg in args), kind)
    return expression
