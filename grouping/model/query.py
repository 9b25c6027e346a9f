"""Statements after parsing, before any name in them is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

import msgspec

from grouping.model.column import EventTime, StreamColumn
from grouping.model.source_access import AccessKind
from grouping.model.sql_type import SqlType
from grouping.model.trigger import ChangeBased, Trigger

__all__ = [
    "AlterCq",
    "AlterStream",
    "ChangeAccess",
    "CreateCq",
    "CreateStream",
    "CreateTable",
    "CreateView",
    "Describe",
    "DigestClause",
    "Drop",
    "DropCqs",
    "Edge",
    "ExplainCq",
    "ExplainSelect",
    "Listed",
    "PackedDigest",
    "Pause",
    "Publish",
    "SetQuota",
    "Show",
    "ShowCqsOf",
    "ShowQuota",
    "SourceKind",
    "Statement",
]

SourceKind = Literal["stream", "table", "view"]
Edge = Literal["", "enter", "exit", "both", "changes", "silence"]  # "" if each match is a result


@dataclass(frozen=True, slots=True)
class DigestClause:
    """The digest clause: the rows of a timer-based CQ's digest."""

    kind: Literal["all", "latest", "count", "top"] = "all"
    columns: tuple[str, ...] = ()
    """The columns of LATEST BY, or the column of TOP, spelt as in the command."""
    rows: int = 0
    """The n of TOP."""
    even_if_empty: bool = False

    @classmethod
    @lru_cache(maxsize=1000)
    def of(cls, packed: PackedDigest) -> DigestClause:
        """Return the clause from its fields in a stored record."""
        return cls(*packed)  # type: ignore[arg-type]  # the kind was checked when it was parsed


PackedDigest = tuple[str, tuple[str, ...], int, bool]
"""The fields of a digest clause."""


@dataclass(frozen=True, slots=True)
class Publish:
    """DO PUBLISH …: the kind of the destination."""

    mode: Literal["shared", "dedicated", "virtual"] | None = None
    """The word after PUBLISH; None without a word."""
    digest: DigestClause | None = None


class CreateCq(msgspec.Struct, frozen=True):
    """CREATE [OR REPLACE] CQ."""

    name: str
    select: str
    """The text of the SELECT; empty once the SELECT is compiled."""
    or_replace: bool = False
    publish: Publish = msgspec.field(default_factory=Publish)
    trigger: Trigger = msgspec.field(default_factory=ChangeBased)
    start: datetime | None = None
    expire: datetime | timedelta | None = None
    """The instant of EXPIRE, or the length of time of EXPIRE AFTER, which begins when the command is accepted."""


@dataclass(frozen=True, slots=True)
class CreateStream:
    """CREATE STREAM, with options as written, which are not yet checked against a topic."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    topic: str
    format: str
    """``json``, ``avro``, ``protobuf``, or a format of changes (`change_format.CHANGE_FORMATS`)."""
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
    partition_key: tuple[str, ...] = ()
    """The columns of PARTITION KEY, spelt as declared: events with equal values in them are in one partition."""
    explode: str | None = None
    """The path to the elements that are events (`explode.explode_text`); None if each record is one event."""
    decimals: str | None = None
    """How texts for DECIMAL columns of Debezium are written."""
    schemas: str | None = None
    """Writer schemas by the ids that records name, as JSON."""
    registry: str | None = None
    """The URL of the registry that gives each id its schema (`registries.registry_url`)."""
    descriptor: str | None = None
    """The FileDescriptorSet of Protobuf records, in base64."""
    message: str | None = None
    """The full name of the message of Protobuf records."""
    from_topic: bool | None = None
    """True if the statement has FROM TOPIC in place of columns, which are inferred from records of the topic."""
    event_time: EventTime | None = None
    """The event time; None without WATERMARK FOR and the option `idle`."""

    @property
    def stream_columns(self) -> tuple[StreamColumn, ...]:
        """The columns as the catalog keeps them."""
        return tuple(StreamColumn(name, str(kind), self.places.get(name, "")) for name, kind in self.columns)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE, with options as written, which are not yet checked against a topic."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    key: tuple[str, ...]
    """The columns of the PRIMARY KEY, spelt as declared."""
    topic: str
    format: str
    """``json``, ``avro``, or a format of changes (`change_format.CHANGE_FORMATS`)."""
    partitions: int | None = None
    schema: str | None = None
    framing: Literal["single-object", "confluent", "raw"] = "single-object"
    access: AccessKind | None = None
    if_not_exists: bool = False
    places: Mapping[str, str] | None = None
    """By column, the text of its FROM; None if no column has FROM."""
    decimals: str | None = None
    timestamps: str | None = None
    """The unit of numbers for TIMESTAMP columns."""


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW."""

    name: str
    select: str
    """The SELECT's text."""
    access: AccessKind | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterStream:
    """ALTER STREAM … ADD COLUMN, or … SET; an option that is None stays as it is."""

    name: str
    added: StreamColumn | None = None
    lenient: bool | None = None
    timestamps: str | None = None
    schemas: str | None = None
    idle_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AlterCq:
    """ALTER CQ … SET; a field that is None stays as it is."""

    name: str
    trigger: Trigger | None = None
    start: datetime | None = None
    expire: datetime | timedelta | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP kind [IF EXISTS], or NiagaraCQ's DELETE CQ."""

    kind: Literal["cq", "stream", "table", "view"]
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """PAUSE or RESUME of a CQ, or of a group by its id; only operators may pause a group."""

    kind: Literal["cq", "group"]
    name: str
    paused: bool


@dataclass(frozen=True, slots=True)
class ChangeAccess:
    """GRANT READ ON kind name TO subscriber, … | ALL; REVOKE READ ON … FROM … [CASCADE]."""

    granted: bool
    kind: SourceKind
    name: str
    readers: tuple[str, ...]
    """The subscribers; empty for ALL."""
    cascade: bool = False
    """Whether REVOKE drops CQs of subscribers that may not read the source any more."""


Listed = Literal["streams", "tables", "views", "cqs", "groups", "computations", "timers", "functions"]


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW STREAMS | TABLES | VIEWS | CQS | GROUPS | COMPUTATIONS | TIMERS | FUNCTIONS [LIKE …] [AFTER …] [LIMIT n]."""

    what: Listed
    like: str | None = None
    after: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE kind name."""

    kind: Literal["cq", "stream", "table", "view", "function"]
    name: str


@dataclass(frozen=True, slots=True)
class ExplainCq:
    """EXPLAIN CQ; with FOR: whether an event matches the CQ, and whether the event would be delivered."""

    name: str
    event: str | None = None
    """The event's value, as JSON; None without FOR."""
    given: tuple[tuple[str, str], ...] = ()
    """The contents of WITH, by name: rows of joined tables as a JSON array, the record's `_key` and `_time`."""


@dataclass(frozen=True, slots=True)
class ExplainSelect:
    """EXPLAIN SELECT …: the plan of a query that is not created; with STAGES also the tree after each stage."""

    select: str
    stages: bool = False


# -- statements of operators, about CQs and quotas of other subscribers ------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShowCqsOf:
    """SHOW CQS OF ALL | OF subscriber [LIKE …] [AFTER …] [LIMIT n]."""

    subscriber: str | None
    """None for all subscribers."""
    like: str | None = None
    after: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DropCqs:
    """DROP CQS LIKE pattern OF subscriber."""

    like: str
    subscriber: str


@dataclass(frozen=True, slots=True)
class SetQuota:
    """SET QUOTA name = n | DEFAULT, … FOR subscriber."""

    subscriber: str
    limits: tuple[tuple[str, int | None], ...]
    """Each limit with its number; the number is None for DEFAULT, the limit of the settings."""


@dataclass(frozen=True, slots=True)
class ShowQuota:
    """SHOW QUOTA FOR subscriber."""

    subscriber: str


Statement = (
    CreateCq
    | CreateStream
    | CreateTable
    | CreateView
    | AlterCq
    | AlterStream
    | Drop
    | Pause
    | ChangeAccess
    | Show
    | Describe
    | ExplainCq
    | ExplainSelect
    | ShowCqsOf
    | DropCqs
    | SetQuota
    | ShowQuota
)
