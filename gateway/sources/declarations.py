"""Checks that streams, tables and views share: names, limits, IF NOT EXISTS, and refusals to drop a source in use."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from gateway.model.inventory import Inventory
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.query import CreateStream, CreateTable, CreateView
from grouping.model.table import Table, View
from grouping.model.wording import are, counted
from grouping.settings.settings import Settings
from grouping.statements.stream_declaration import declared_fields

__all__ = [
    "Declaration",
    "Origin",
    "check_name",
    "check_unread",
    "declared_columns",
    "describe_topic",
    "in_use",
    "is_declared",
    "listed_views",
    "reading_views",
    "too_many",
]


class Origin(NamedTuple):
    """The sender and the place of a command."""

    owner: str
    """The subscriber that sent the command. The new source belongs to this subscriber, whose limits apply."""
    position: str
    """The command's place on its topic: partition and offset, as text."""
    accepted_ms: int

    def source_id(self, letter: str, name: str) -> str:
        """Return the id of the command's new source.

        Two commands never give the same id, and the same command always gives the same id, also when it is repeated.
        """
        return f"{letter}_{hashlib.blake2b(f'{self.position}/{name}'.encode(), digest_size=6).hexdigest()}"


class Declaration(NamedTuple):
    """A CREATE of a source: the command's origin, and the state against which the command is checked."""

    settings: Settings
    working: WorkingCopy
    """The working copy, with the live sources; the new source becomes part of its unit of work."""
    catalog: Catalog
    """The live sources that the sender may see. The new source is added to `catalog.whole`."""
    origin: Origin

    def check_count(self, kind: str, sources: Iterable[Stream | Table | View]) -> None:
        """Check that the sender's limits allow one more source of a kind.

        Raises:
            InputError: quota-exceeded.
        """
        owner = self.origin.owner
        count = sum(source.owner == owner for source in sources)
        if count >= (limit := self.working.inventory.limit(owner, f"{kind}s", self.settings.limits)):
            raise too_many(owner, f"{kind}s", f"There {are(count)} {count}", limit, kind)


def declared_columns(statement: CreateTable) -> tuple[StreamColumn, ...]:
    """Return the columns that a CREATE TABLE declares, in the catalog's form."""
    places = statement.places or {}
    return tuple(StreamColumn(name, str(kind), places.get(name, "")) for name, kind in statement.columns)


def describe_topic(source: Stream | Table) -> dict[str, object]:
    """Return the part of a description that streams and tables share: the topic, its format and the columns."""
    return {
        "topic": source.topic,
        "format": source.format,
        "framing": None if source.format != "avro" and source.framing == "single-object" else source.framing,
        **({} if source.avro_schema is None else {"schema": source.avro_schema}),
        "columns": [msgspec.to_builtins(column) for column in source.columns],
    }


# -- refusals of CREATE ------------------------------------------------------------------------------------------------


def check_name(catalog: Catalog, name: str) -> None:
    """Check that no source has a name yet; streams, tables and views share one namespace.

    Args:
        catalog: The sources that the sender may see. A name is also taken if a source has it that the sender may not
            see, but then the error discloses nothing else about this source.
        name: The name.

    Raises:
        InputError: stream-exists.
    """
    if catalog.whole.find_source(name) is None:
        return
    existing = catalog.find_source(name)
    if existing is None:
        raise InputError(
            f'the name "{name}" is taken',
            code="stream-exists",
            detail="Streams, tables and views of all subscribers share one namespace.",
            hint="Choose another name.",
        )
    kind = "stream" if isinstance(existing, Stream) else "table" if isinstance(existing, Table) else "view"
    reads = (
        f'The {kind} reads topic "{existing.topic}" since'
        if isinstance(existing, Stream | Table)
        else f"The {kind} exists since"
    )
    raise InputError(
        f'{kind} "{existing.name}" exists already',
        code="stream-exists",
        detail=f"{reads} {existing.created_at}.",
        hint=f"DROP {kind.upper()} removes it once nothing uses it.",
    )


def too_many(owner: str, what: str, present: str, limit: int, kind: str) -> InputError:
    """Return the refusal of a source that exceeds its subscriber's limits."""
    return InputError(
        f'subscriber "{owner}" has too many {what}',
        code="quota-exceeded",
        detail=f"{present}; the limit is {limit}.",
        hint=f"Drop {kind}s that are not needed any more.",
    )


def is_declared(source: Stream | Table | View | None, statement: CreateStream | CreateTable | CreateView) -> bool:
    """Tell whether an existing source is the one that a CREATE … IF NOT EXISTS declares.

    All stored properties must be equal, with three exceptions. If the statement has no access, the source may have any
    access. The start offsets of a stream are not compared. For a statement with FROM TOPIC, the columns are not
    compared.
    """
    if source is None or statement.access not in (None, source.access.kind):
        return False
    match source:
        case View():
            return isinstance(statement, CreateView) and source.select == statement.select
        case Stream() | Table():
            wanted = CreateStream if isinstance(source, Stream) else CreateTable
            if isinstance(statement, CreateView) or not isinstance(statement, wanted):
                return False
            if isinstance(statement, CreateStream) and statement.from_topic:
                statement = _with_columns(statement, source)
            if isinstance(statement, CreateStream):
                return all(getattr(source, name) == value for name, value in declared_fields(statement).items())
            return isinstance(source, Table) and _is_declared_table(source, statement)


def _is_declared_table(table: Table, statement: CreateTable) -> bool:
    there = table.columns, table.topic, table.format, table.avro_schema, table.framing, table.key
    given = statement.topic, statement.format, statement.schema, statement.framing, statement.key
    same = (declared_columns(statement), *given) == there
    return same and (statement.decimals, statement.timestamps) == (table.decimals or None, table.timestamps or None)


def _with_columns(statement: CreateStream, source: Stream | Table) -> CreateStream:
    """Return a CREATE STREAM … FROM TOPIC, which itself has no columns, with the columns of a source."""
    columns = tuple((column.name, column.type) for column in source.columns)
    return replace(statement, columns=columns, places={column.name: column.from_text for column in source.columns})


# -- refusals of DROP --------------------------------------------------------------------------------------------------


def reading_views(inventory: Inventory, name: str) -> list[str]:
    """Return the names of the views that read a source, in order."""
    return sorted(view.name for view in inventory.views.values() if name in view.reads)


def listed_views(catalog: Catalog, views: Sequence[str]) -> str:
    """Return the number of views as text, with the names of the views that the sender may see."""
    shown = [name for name in views if catalog.find_source(name) is not None]
    return counted(len(views), "view") + (f" ({', '.join(shown)})" if shown else "")


def check_unread(catalog: Catalog, kind: str, name: str, cqs: int, views: Sequence[str]) -> None:
    """Check that no CQ and no view reads a table or a view.

    Raises:
        InputError: stream-in-use.
    """
    readers = [counted(cqs, "CQ")] if cqs else []
    readers += [listed_views(catalog, views)] if views else []
    if readers:
        raise in_use(kind, name, f"The {kind} is read by {' and '.join(readers)}.", "Drop these first.")


def in_use(kind: str, name: str, detail: str, hint: str) -> InputError:
    """Return the refusal to drop or change a source that a CQ or view reads."""
    return InputError(f'{kind} "{name}" is in use', code="stream-in-use", detail=detail, hint=hint)
