"""Statements about streams, tables and views: the sources of queries, and the right to read them."""

from __future__ import annotations

from typing import NamedTuple

from gateway.access.source_rights import SourceRights, kind_of
from gateway.commands.table_states import TableStates
from gateway.registry.registry import Registry
from gateway.sources.declarations import Origin, is_declared
from gateway.sources.grants import SourceGrants, readers_of
from gateway.sources.readers import SourceReaders
from gateway.sources.streams import create_stream, describe_stream, drop_stream
from gateway.sources.tables import create_table, describe_table, drop_table, exactness
from gateway.sources.topics_read import MadeTopics
from gateway.sources.views import create_view, describe_view, drop_view
from gateway.state.catalog_records import pause_record, source_record
from gateway.state.work import Change, joined
from gateway.state.working_copy import WorkingCopy
from gateway.topics.topic_desk import TopicDesk, TopicQuestions
from grouping.model.access_statements import Grant, Revoke
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.query import (
    CreateStream,
    CreateTable,
    CreateView,
    DescribeStream,
    DescribeTable,
    DescribeView,
    DropStream,
    DropTable,
    DropView,
)
from grouping.model.table import Table
from grouping.model.view import View
from grouping.settings.settings import Settings

__all__ = ["SourceChange", "SourceDescription", "SourceOutcome", "SourceStatements", "describe_source"]

SourceChange = CreateStream | DropStream | CreateTable | DropTable | CreateView | DropView | Grant | Revoke
"""A statement after which queries compile differently."""
SourceDescription = DescribeStream | DescribeTable | DescribeView
Source = Stream | Table | View


class SourceOutcome(NamedTuple):
    """The outcome of a statement about a source."""

    result: dict[str, object]
    change: Change = Change()


class SourceStatements:
    """Carries out statements about sources within the working copy's unit."""

    def __init__(
        self, settings: Settings, rights: SourceRights, working: WorkingCopy, topics: TopicDesk, registry: Registry
    ) -> None:
        self._settings = settings
        self._rights = rights
        self._working = working
        self._topics = topics
        self._registry = registry
        self._made = MadeTopics()
        self._grants = SourceGrants(rights, working, SourceReaders(working, lambda: registry.computations))

    def carry_out(self, statement: SourceChange, catalog: Catalog, origin: Origin) -> SourceOutcome:
        """Declare, drop or grant a source, in the catalog too.

        Args:
            statement: The parsed command.
            catalog: The sources as the sender sees them.
            origin: The command.

        Raises:
            InputError: Why it cannot be done; nothing was changed.
            NotYet: Kafka has not answered; nothing was changed.
        """
        match statement:
            case CreateStream() | CreateTable():
                with self._topics.of(origin.owner, origin.position) as topics:
                    return self._create(statement, catalog, topics, origin)
            case CreateView():
                found = catalog.find_source(statement.name) if statement.if_not_exists else None
                if isinstance(found, View) and is_declared(found, statement):
                    return self._kept(found, origin)
                view = create_view(self._settings, self._working, catalog, statement, origin)
                return self._created(view, describe_view(view), origin)
            case DropStream() | DropTable() | DropView():
                return self._drop(statement, catalog, origin)
            case Grant() | Revoke():
                return self._grant(statement, catalog, origin)

    def _create(
        self, statement: CreateStream | CreateTable, catalog: Catalog, topics: TopicQuestions, origin: Origin
    ) -> SourceOutcome:
        settings, working = self._settings, self._working
        found = catalog.find_source(statement.name) if statement.if_not_exists else None
        if isinstance(found, Stream | Table) and is_declared(found, statement) and _fits(statement, topics):
            return self._kept(found, origin)
        if isinstance(statement, CreateStream):
            stream = create_stream(settings, working, catalog, topics, self._made, statement, origin)
            return self._created(stream, describe_stream(stream), origin)
        table, warning = create_table(settings, working, catalog, topics, self._made, statement, origin)
        return self._created(table, describe_table(table, warning), origin)

    def _created(self, source: Source, described: dict[str, object], origin: Origin) -> SourceOutcome:
        told = described | self._rights.described(source)
        return SourceOutcome(told, Change(catalog=(source_record(source),)))

    def _kept(self, source: Source, origin: Origin) -> SourceOutcome:
        """Return the outcome of IF NOT EXISTS where the source is there."""
        return SourceOutcome(describe_source(source) | self._rights.described(source))

    def _drop(self, statement: DropStream | DropTable | DropView, catalog: Catalog, origin: Origin) -> SourceOutcome:
        try:
            return self._dropped(statement, catalog, origin)
        except InputError as error:
            if not statement.if_exists or error.code != "unknown-stream":
                raise
            kind = {DropStream: "stream", DropTable: "table", DropView: "view"}[type(statement)]
            return SourceOutcome({kind: statement.name, "dropped": False})

    def _dropped(self, statement: DropStream | DropTable | DropView, catalog: Catalog, origin: Origin) -> SourceOutcome:
        rights, working, sender = self._rights, self._working, origin.owner
        source: Source
        match statement:
            case DropStream():
                source = stream = drop_stream(rights, working, catalog, statement, sender)
                ended = working.unit.end_pauses(stream.stream_id)
                pauses = tuple(pause_record(stream.stream_id, group_id, None) for group_id in ended)
                return SourceOutcome(
                    {"stream": source.name, "dropped": True},
                    Change(catalog=(source_record(source, gone=True), *pauses)),
                )
            case DropTable():
                source = drop_table(rights, working, catalog, self._registry.computations, statement, sender)
            case DropView():
                source = drop_view(rights, working, catalog, statement, sender)
        change = Change(catalog=(source_record(source, gone=True),))
        return SourceOutcome({kind_of(source): source.name, "dropped": True}, change)

    def _grant(self, statement: Grant | Revoke, catalog: Catalog, origin: Origin) -> SourceOutcome:
        source = self._grants.change(statement, catalog, origin.owner)
        result: dict[str, object] = {statement.kind: source.name} | self._rights.described(source)
        result["readers"] = readers_of(source)
        change = Change(catalog=(source_record(source),))
        if isinstance(statement, Grant):
            return SourceOutcome(result, change)
        found = self._grants.losers(statement, source)
        result |= {"cqs": len(found.keys), "more": found.more, "dropped": 0}
        if statement.cascade:
            self._registry.load(found.keys, ())
            dropped = [self._registry.drop(key, key.name, origin.accepted_ms) for key in found.keys]
            change = joined([change, *dropped])
            result["dropped"] = len(dropped)
        return SourceOutcome(result, change)

    def describe(self, statement: SourceDescription, catalog: Catalog, origin: Origin) -> dict[str, object]:
        """Return the result of a DESCRIBE.

        Args:
            statement: The parsed command.
            catalog: The sources as the sender sees them.
            origin: The command.

        Raises:
            InputError: unknown-stream.
            NotYet: Kafka has not answered.
            OperationalError: A server does not answer.
        """
        described: dict[str, object]
        source: Source
        match statement:
            case DescribeStream(name):
                source = stream = catalog.stream(name)
                described = describe_stream(stream)
                if stream.lenient:
                    described["misfits"] = self._working.evaluator.misfits(stream.stream_id)
            case DescribeTable(name):
                source = table = catalog.table(name)
                with self._topics.of(origin.owner, origin.position) as topics:
                    described = describe_table(table, exactness(self._settings, topics, table))
                    states = TableStates(topics, self._registry.admission.replicas)
                    state = states.of([table], origin.accepted_ms)[table.name]
                described |= {"cqs": self._registry.computations.cqs(table.table_id)} | state
            case DescribeView(name):
                source = view = catalog.view(name)
                described = describe_view(view) | {"cqs": self._working.unit.sources.view_cqs(view.name)}
        described |= self._rights.described(source)
        if self._rights.owns(origin.owner, source):
            described["readers"] = readers_of(source)
        return described


def describe_source(source: Source) -> dict[str, object]:
    """Return a stream, table or view as SHOW lists it, without its owner."""
    match source:
        case Stream():
            return describe_stream(source)
        case Table():
            return describe_table(source)
        case View():
            return describe_view(source)


def _fits(statement: CreateStream | CreateTable, topics: TopicQuestions) -> bool:
    """Tell whether the topic that is there has the partitions that a statement gives."""
    if statement.partitions is None:
        return True
    form = topics.forms([statement.topic]).get(statement.topic)
    return form is not None and form.partitions == statement.partitions
