"""The base of nodes with a state by key: the key, and the conditions that select the node's input rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from grouping.model.expression import Column, Expression
from grouping.plan.expression_text import render_reference, without_values
from grouping.plan.passing import PASSING

__all__ = ["KeyedRows", "key_of"]


class KeyedRows(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rows of the node below for which WHERE is TRUE, by key."""

    by: tuple[Column, ...]
    """The columns of the key, without repetitions, in the order of their stored texts.

    The key has the columns that the query names. For frames and silences, it also has the columns that WHERE compares
    with constants for equality. In a key, NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0.
    """
    where: tuple[Expression, ...] = ()
    """The conditions of WHERE that select the input rows, with their constants, in canonical order."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of the node over the rows below."""
        return (*self.by, *self.where)

    @property
    def conditions(self) -> list[Expression]:
        """The conditions, in which slot 0 stands for each constant, since signatures hide constants."""
        return [without_values(each) for each in self.where if each != PASSING]

    @property
    def key_text(self) -> str:
        """The columns of the key as SQL."""
        return ", ".join(render_reference(column.reference) for column in self.by)


def key_of(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return columns as the key of a node."""
    return tuple(sorted(set(columns), key=lambda column: column.stored))
