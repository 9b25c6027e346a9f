"""Statements after parsing, before any name in them is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

import msgspec

from grouping.model.access_statements import AccessStatement
from grouping.model.column import StreamColumn
from grouping.model.operator_statements import OperatorStatement
from grouping.model.source_access import AccessKind
from grouping.model.sql_type import SqlType

__all__ = [
    "AlterCq",
    "ChangeBased",
    "CreateCq",
    "CreateStream",
    "CreateTable",
    "CreateView",
    "CronBased",
    "DescribeCq",
    "DescribeStream",
    "DescribeFunction",
    "DescribeTable",
    "DescribeView",
    "DigestClause",
    "DropCq",
    "DropStream",
    "DropTable",
    "DropView",
    "ExplainCq",
    "ExplainEvent",
    "ExplainSelect",
    "ExplainStages",
    "PackedDigest",
    "PauseCq",
    "Publish",
    "ResumeCq",
    "Listed",
    "Show",
    "Statement",
    "TimerBased",
    "Trigger",
]


@dataclass(frozen=True, slots=True)
class ChangeBased:
    """Results leave as soon as an event matches."""


@dataclass(frozen=True, slots=True)
class TimerBased:
    """Results gather and leave at the ticks START + k × every."""

    every: timedelta
    over: timedelta | None = None
    """OVER LAST: each tick counts the matches of this time before it; a multiple of `every`."""


@dataclass(frozen=True, slots=True)
class CronBased:
    """Results gather and leave at the times of a cron expression."""

    cron: str
    zone: str = "UTC"


Trigger = ChangeBased | TimerBased | CronBased


@dataclass(frozen=True, slots=True)
class DigestClause:
    """The digest clause: the rows that a timer-based CQ sends at its tick."""

    kind: Literal["all", "latest", "count", "top"] = "all"
    columns: tuple[str, ...] = ()
    """LATEST BY's key columns, or TOP's one; as the command spells them."""
    rows: int = 0
    """TOP's n."""
    even_if_empty: bool = False

    @classmethod
    @lru_cache(maxsize=1000)
    def of(cls, packed: PackedDigest) -> DigestClause:
        """Return the clause of its fields, as records keep them."""
        return cls(*packed)  # type: ignore[arg-type]  # the kind was checked when it was parsed


PackedDigest = tuple[str, tuple[str, ...], int, bool]
"""The fields of a digest clause."""


@dataclass(frozen=True, slots=True)
class Publish:
    """DO PUBLISH …: where results go."""

    mode: Literal["shared", "dedicated", "virtual"] | None = None
    """The word after PUBLISH, None when there is none."""
    digest: DigestClause | None = None


class CreateCq(msgspec.Struct, frozen=True):
    """CREATE [OR REPLACE] CQ; by far the most frequent statement."""

    name: str
    select: str
    """The SELECT's own text; empty once it is compiled."""
    or_replace: bool = False
    publish: Publish = msgspec.field(default_factory=Publish)
    trigger: Trigger = msgspec.field(default_factory=ChangeBased)
    start: datetime | None = None
    expire: datetime | timedelta | None = None
    """An instant, or (EXPIRE AFTER) a length of time from acceptance."""


@dataclass(frozen=True, slots=True)
class CreateStream:
    """CREATE STREAM, options as they were written and not yet checked against a topic."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    """(name, type) in order."""
    topic: str
    format: Literal["json", "avro"]
    partitions: int | None = None
    start: Literal["latest", "earliest"] = "latest"
    schema: str | None = None
    framing: Literal["single-object", "confluent", "raw"] = "single-object"
    access: AccessKind | None = None
    if_not_exists: bool = False
    places: Mapping[str, str] = field(default_factory=dict)
    """By column, the text of its FROM."""
    lenient: bool = False
    timestamps: str = ""
    """The unit of numbers for TIMESTAMP columns; empty without the option."""

    @property
    def stream_columns(self) -> tuple[StreamColumn, ...]:
        """The columns as the catalog keeps them."""
        return tuple(StreamColumn(name, str(kind), self.places.get(name, "")) for name, kind in self.columns)


@dataclass(frozen=True, slots=True)
class DropStream:
    """DROP STREAM [IF EXISTS]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE, options as they were written and not yet checked against a topic."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    """(name, type) in order."""
    key: tuple[str, ...]
    """The columns of the PRIMARY KEY, spelt as declared."""
    topic: str
    format: Literal["json", "avro", "debezium-json"]
    partitions: int | None = None
    schema: str | None = None
    framing: Literal["single-object", "confluent", "raw"] = "single-object"
    access: AccessKind | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW."""

    name: str
    select: str
    """The SELECT's text."""
    access: AccessKind | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP VIEW [IF EXISTS]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterCq:
    """ALTER CQ … SET; a field that is None stays as it is."""

    name: str
    trigger: Trigger | None = None
    start: datetime | None = None
    expire: datetime | timedelta | None = None


@dataclass(frozen=True, slots=True)
class DropCq:
    """DROP CQ [IF EXISTS], or NiagaraCQ's DELETE CQ."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class PauseCq:
    """PAUSE CQ."""

    name: str


@dataclass(frozen=True, slots=True)
class ResumeCq:
    """RESUME CQ."""

    name: str


Listed = Literal["streams", "tables", "views", "cqs", "groups", "computations", "timers", "functions"]


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW STREAMS | TABLES | VIEWS | CQS | GROUPS | COMPUTATIONS | TIMERS | FUNCTIONS [LIKE …] [AFTER …] [LIMIT n]."""

    what: Listed
    like: str | None = None
    after: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeCq:
    """DESCRIBE CQ."""

    name: str


@dataclass(frozen=True, slots=True)
class DescribeStream:
    """DESCRIBE STREAM."""

    name: str


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """DESCRIBE TABLE."""

    name: str


@dataclass(frozen=True, slots=True)
class DescribeView:
    """DESCRIBE VIEW."""

    name: str


@dataclass(frozen=True, slots=True)
class DescribeFunction:
    """DESCRIBE FUNCTION."""

    name: str


@dataclass(frozen=True, slots=True)
class ExplainCq:
    """EXPLAIN CQ."""

    name: str


@dataclass(frozen=True, slots=True)
class ExplainEvent:
    """EXPLAIN CQ … FOR: whether an event matches it, and whether it would be delivered."""

    name: str
    event: str
    """The event's value, as JSON."""
    given: tuple[tuple[str, str], ...] = ()
    """The contents of WITH, by name: rows of joined tables as a JSON array, the record's `_key` and `_time`."""


@dataclass(frozen=True, slots=True)
class ExplainSelect:
    """EXPLAIN SELECT …: the plan of a query that is not created."""

    select: str


@dataclass(frozen=True, slots=True)
class ExplainStages:
    """EXPLAIN STAGES SELECT …: the tree of a query after each stage of the compiler."""

    select: str


Statement = (
    CreateCq
    | CreateStream
    | DropStream
    | CreateTable
    | DropTable
    | CreateView
    | DropView
    | AlterCq
    | DropCq
    | PauseCq
    | ResumeCq
    | Show
    | DescribeCq
    | DescribeStream
    | DescribeTable
    | DescribeView
    | DescribeFunction
    | ExplainCq
    | ExplainEvent
    | ExplainSelect
    | ExplainStages
    | AccessStatement
    | OperatorStatement
)
