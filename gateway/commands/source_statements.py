"""Statements about streams, tables and views: what queries read."""

from __future__ import annotations

from gateway.commands.table_states import TableStates
from gateway.registry.registry import Registry
from gateway.registry.source_topics import MadeTopics
from gateway.registry.sources import Origin
from gateway.registry.streams import create_stream, describe_stream, drop_stream
from gateway.registry.tables import create_table, describe_table, drop_table, exactness
from gateway.registry.views import create_view, describe_view, drop_view
from gateway.state.catalog_records import pause_record, stream_record, table_record, view_record
from gateway.state.work import CatalogChange
from gateway.state.working_copy import WorkingCopy
from gateway.topics.topic_desk import TopicDesk, TopicQuestions
from grouping.model.catalog import Catalog
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
from grouping.settings.settings import Settings

__all__ = ["SourceChange", "SourceDescription", "SourceStatements"]

SourceChange = CreateStream | DropStream | CreateTable | DropTable | CreateView | DropView
"""A statement after which queries compile differently."""
SourceDescription = DescribeStream | DescribeTable | DescribeView


class SourceStatements:
    """Carries out statements about sources within the working copy's unit."""

    def __init__(self, settings: Settings, working: WorkingCopy, topics: TopicDesk, registry: Registry) -> None:
        self._settings = settings
        self._working = working
        self._topics = topics
        self._registry = registry
        self._made = MadeTopics()

    def carry_out(
        self, statement: SourceChange, catalog: Catalog, origin: Origin
    ) -> tuple[dict[str, object], tuple[CatalogChange, ...]]:
        """Declare or drop a source, in the catalog too; return the result and the records for `cq.catalog`.

        Raises:
            InputError: Why it cannot be done; nothing was changed.
            NotYet: Kafka has not answered; nothing was changed.
        """
        working = self._working
        match statement:
            case CreateStream() | CreateTable():
                with self._topics.of(origin.owner, origin.position) as topics:
                    return self._create(statement, catalog, topics, origin)
            case DropStream():
                stream = drop_stream(working, catalog, statement)
                ended = working.unit.end_pauses(stream.stream_id)
                pauses = (pause_record(stream.stream_id, group_id, None) for group_id in ended)
                return {"stream": stream.name}, (stream_record(stream, gone=True), *pauses)
            case DropTable():
                table = drop_table(working, catalog, self._registry.computations, statement)
                return {"table": table.name}, (table_record(table, gone=True),)
            case CreateView():
                view = create_view(self._settings, working, catalog, statement, origin)
                return describe_view(view), (view_record(view),)
            case DropView():
                view = drop_view(working, catalog, statement)
                return {"view": view.name}, (view_record(view, gone=True),)

    def _create(
        self, statement: CreateStream | CreateTable, catalog: Catalog, topics: TopicQuestions, origin: Origin
    ) -> tuple[dict[str, object], tuple[CatalogChange, ...]]:
        settings, working = self._settings, self._working
        if isinstance(statement, CreateStream):
            stream = create_stream(settings, working, catalog, topics, self._made, statement, origin)
            return describe_stream(stream), (stream_record(stream),)
        table, warning = create_table(settings, working, catalog, topics, self._made, statement, origin)
        return describe_table(table, warning), (table_record(table),)

    def describe(self, statement: SourceDescription, catalog: Catalog, origin: Origin) -> dict[str, object]:
        """Return the result of a DESCRIBE.

        Raises:
            InputError: unknown-stream.
            NotYet: Kafka has not answered.
            OperationalError: A server does not answer.
        """
        match statement:
            case DescribeStream(name):
                return describe_stream(catalog.stream(name))
            case DescribeTable(name):
                table = catalog.table(name)
                with self._topics.of(origin.owner, origin.position) as topics:
                    described = describe_table(table, exactness(self._settings, topics, table))
                    states = TableStates(topics, self._registry.admission.replicas)
                    state = states.of([table], origin.accepted_ms)[table.name]
                return described | {"cqs": self._registry.computations.cqs(table.table_id)} | state
            case DescribeView(name):
                view = catalog.view(name)
                return describe_view(view) | {"cqs": self._working.unit.sources.view_cqs(view.name)}
