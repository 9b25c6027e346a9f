"""A question about an event and a query, and its outcome. Both are sent between processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.model.trigger_spec import TriggerSpec
from grouping.model.catalog import Stream
from grouping.model.table import Table
from grouping.plan.group import CompiledQuery

__all__ = ["ConjunctOutcome", "EventOutcome", "EventQuestion", "RowsRefused"]


class RowsRefused(ValueError):
    """Rows that were given for a table do not fit the table."""


@dataclass(frozen=True, slots=True)
class EventQuestion:
    """A question to the evaluation process: a live query and an event."""

    stream: Stream
    """The query's stream, with JSON as the format of its records."""
    query: CompiledQuery
    trigger: TriggerSpec
    """The query's trigger."""
    window: tuple[int | None, int | None]
    """START and EXPIRE."""
    rows: Mapping[str, Sequence[bytes]]
    """Id of a joined table → its rows as JSON objects."""
    tables: Mapping[str, Table]
    """Id of a joined table → the table, with JSON as the format of its records."""
    value: bytes
    """The record's value, which is always JSON, even if the real stream has another format."""
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
    """TRUE or FALSE; None for NULL."""
    columns: dict[str, Any]
    """Column that the conjunct reads → its JSON value."""


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """The outcome of an event for a query."""

    matches: bool | None
    """Whether the event matches; None if this is unknown, because rows of tables were not given or the evaluation
    failed."""
    why: str | None
    """Why the event does not match, or why this is unknown; None for a match."""
    conjuncts: list[ConjunctOutcome] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the SELECT list for the event; empty for a query with aggregates."""
    dead_letter: str | None = None
    """The code of the dead letter that the event or its result becomes; None without one."""
