"""The outcome of an event for a query, and the question for it; both cross a process boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.model.records import TriggerSpec
from grouping.model.catalog import Stream
from grouping.model.table import Table
from grouping.plan.group import CompiledQuery

__all__ = ["ConjunctOutcome", "EventOutcome", "EventQuestion", "RowsRefused"]


class RowsRefused(ValueError):
    """Given rows do not fit their table."""


@dataclass(frozen=True, slots=True)
class EventQuestion:
    """A question to the evaluation process: a live query and an event."""

    stream: Stream
    """The query's stream; records of it are JSON."""
    query: CompiledQuery
    trigger: TriggerSpec
    """The query's trigger."""
    window: tuple[int | None, int | None]
    """START and EXPIRE."""
    rows: Mapping[str, Sequence[bytes]]
    """Id of a joined table → its rows as JSON objects."""
    tables: Mapping[str, Table]
    """The joined tables by id; records of them are JSON."""
    value: bytes
    """The record's value: JSON, whatever the format of the stream."""
    key: bytes | None
    """The record's key."""
    headers: tuple[tuple[str, bytes], ...]
    """The record's headers."""
    at_ms: int
    """The record's time, epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class ConjunctOutcome:
    """The value of one conjunct of WHERE."""

    conjunct: str
    value: bool | None
    """TRUE, FALSE or (None) NULL."""
    columns: dict[str, Any]
    """The columns that the conjunct reads, as JSON values."""


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """The outcome of an event for a query."""

    matches: bool | None
    """Whether the event matches; None if it depends on rows of tables that were not given."""
    why: str | None
    """Why the event is no match, or may be none; None for a match."""
    conjuncts: list[ConjunctOutcome] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the SELECT list for the event; empty for a query with aggregates."""
    dead_letter: str | None = None
    """The code with which the event, or its result, becomes a dead letter."""
