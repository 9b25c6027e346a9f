"""Statements about streams, tables and views: the sources of queries, and the right to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gateway.access.source_rights import Source, SourceRights
from gateway.commands.prepared import Answer, PreparedCommand, Result
from gateway.commands.table_states import TableStates
from gateway.kafka import KafkaUnavailable, TopicRefusal
from gateway.registry.operator_states import SPLIT_KEYS_WARNING, split_keys, time_figures
from gateway.registry.registry import Registry
from gateway.registry.table_changes import end_changes
from gateway.sources.alterations import alter_stream
from gateway.sources.declarations import Declaration, Origin, is_declared
from gateway.sources.grants import SourceGrants, readers_of
from gateway.sources.readers import SourceReaders
from gateway.sources.stream_statement import stream_statement
from gateway.sources.streams import create_stream, describe_stream, drop_stream
from gateway.sources.tables import create_table, describe_table, drop_table, exactness
from gateway.sources.topics_read import MadeTopics
from gateway.sources.views import create_view, describe_view, drop_view
from gateway.state.catalog_records import pause_record, source_record
from gateway.state.work import CatalogChange, Change, joined
from gateway.state.working_copy import WorkingCopy
from gateway.topics.topic_desk import TopicDesk, TopicQuestions
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.query import AlterStream, ChangeAccess, CreateStream, CreateTable, CreateView, Describe, Drop
from grouping.model.table import Table, View
from grouping.settings.settings import Settings

__all__ = ["SourceStatements", "describe_source"]


@contextmanager
def _failures_of(topic: str) -> Iterator[None]:
    """Raise InputError if Kafka refuses or does not answer questions about a user's topic.

    Another error would make the gateway begin anew, with the same command. If all of Kafka is away, the reply cannot be
    written either, so the command is carried out again later.
    """
    try:
        yield
    except TopicRefusal as error:
        raise InputError(
            error.message, code=error.code, detail=error.detail, hint="Choose a topic that the gateway may read."
        ) from error
    except KafkaUnavailable as error:
        raise InputError(
            f'topic "{topic}" does not answer', code="unavailable", detail=error.line, hint="Send the command again."
        ) from error


class SourceStatements:
    """Carries out statements about sources within the working copy's unit."""

    def __init__(
        self,
        settings: Settings,
        rights: SourceRights,
        working: WorkingCopy,
        topics: TopicDesk,
        registry: Registry,
        seen_by: Callable[[str], Catalog],
        figures: Callable[[str], Result],
    ) -> None:
        """Begin; `seen_by` returns the sources that a subscriber may read, and `figures` a stream's progress."""
        self._figures = figures
        self._settings = settings
        self._rights = rights
        self._working = working
        self._topics = topics
        self._registry = registry
        self._seen_by = seen_by
        self._made = MadeTopics()
        self._grants = SourceGrants(rights, working, SourceReaders(working, lambda: registry.computations))

    def create(self, command: PreparedCommand[CreateStream | CreateTable], origin: Origin) -> Answer:
        """Declare a stream or a table.

        Raises:
            InputError: The source cannot be declared; nothing was changed.
            NotYet: Kafka has not answered; nothing was changed.
        """
        statement, catalog = command.statement, self._seen_by(origin.owner)
        declaration = Declaration(self._settings, self._working, catalog, origin)
        from_topic = isinstance(statement, CreateStream) and bool(statement.from_topic)
        asked = self._topics.of(origin.owner, origin.position, held=from_topic)
        with _failures_of(statement.topic), asked as topics:
            found = catalog.find_source(statement.name) if statement.if_not_exists else None
            if isinstance(found, Stream | Table) and is_declared(found, statement) and _fits(statement, topics):
                return self._kept(found)
            if isinstance(statement, CreateStream):
                stream, warnings = create_stream(declaration, topics, self._made, statement)
                described = describe_stream(stream)
                if from_topic:
                    start = {} if statement.start == "latest" else {"start": statement.start}
                    described |= {"statement": stream_statement(stream, **start)}
                    described |= {"warnings": list(warnings)} if warnings else {}
                return self._created(stream, described)
            table, warning = create_table(declaration, topics, self._made, statement)
            return self._created(table, describe_table(table, warning))

    def create_view(self, command: PreparedCommand[CreateView], origin: Origin) -> Answer:
        """Declare a view.

        Raises:
            InputError: The view cannot be declared; nothing was changed.
        """
        statement, catalog = command.statement, self._seen_by(origin.owner)
        found = catalog.find_source(statement.name) if statement.if_not_exists else None
        if isinstance(found, View) and is_declared(found, statement):
            return self._kept(found)
        view = create_view(Declaration(self._settings, self._working, catalog, origin), statement)
        return self._created(view, describe_view(view))

    def _created(self, source: Source, described: Result) -> Answer:
        return Answer(described | self._rights.described(source), Change(catalog=(source_record(source),)))

    def _kept(self, source: Source) -> Answer:
        """Return the answer to a CREATE … IF NOT EXISTS of an existing source."""
        return Answer(describe_source(source) | self._rights.described(source))

    def alter_stream(self, command: PreparedCommand[AlterStream], origin: Origin) -> Answer:
        """Change the declaration of a stream.

        Raises:
            InputError: unknown-stream, not-allowed, stream-mismatch, stream-in-use.
        """
        stream, changed = alter_stream(
            self._rights, self._working, self._seen_by(origin.owner), command.statement, origin.owner
        )
        described = describe_stream(stream) | self._rights.described(stream)
        return Answer(described, Change(catalog=(source_record(stream),)) if changed else Change())

    def drop(self, command: PreparedCommand[Drop], origin: Origin) -> Answer:
        """Drop a stream, table or view.

        Raises:
            InputError: unknown-stream, not-allowed, stream-in-use.
        """
        statement = command.statement
        try:
            source, pauses = self._dropped(statement, self._seen_by(origin.owner), origin.owner)
        except InputError as error:
            if not statement.if_exists or error.code != "unknown-stream":
                raise
            return Answer({statement.kind: statement.name, "dropped": False})
        change = Change(catalog=(source_record(source, gone=True), *pauses))
        return Answer({statement.kind: source.name, "dropped": True}, change)

    def _dropped(self, statement: Drop, catalog: Catalog, sender: str) -> tuple[Source, list[CatalogChange]]:
        """Drop a source; return the source, and the catalog records that remove its pauses or its stream of changes."""
        rights, working, name = self._rights, self._working, statement.name
        match statement.kind:
            case "stream":
                stream = drop_stream(rights, working, catalog, name, sender)
                ended = working.unit.end_pauses(stream.stream_id)
                return stream, [pause_record(stream.stream_id, group_id, None) for group_id in ended]
            case "table":
                table = drop_table(rights, working, catalog, self._registry.computations, name, sender)
                return table, end_changes(working, table)
            case "view":
                return drop_view(rights, working, catalog, name, sender), []
            case "cq":
                raise AssertionError("a CQ is no source")

    def change_access(self, command: PreparedCommand[ChangeAccess], origin: Origin) -> Answer:
        """Grant or revoke the right to read a source; CASCADE drops the CQs of subscribers who have lost the right.

        Raises:
            InputError: unknown-stream, not-allowed, quota-exceeded.
        """
        statement = command.statement
        source = self._grants.change(statement, self._seen_by(origin.owner), origin.owner)
        result: Result = {statement.kind: source.name} | self._rights.described(source)
        result["readers"] = readers_of(source)
        change = Change(catalog=(source_record(source),))
        if statement.granted:
            return Answer(result, change)
        found = self._grants.losers(statement, source)
        result |= {"cqs": len(found.keys), "more": found.more, "dropped": 0}
        if statement.cascade:
            cqs = self._registry.load(found.keys)
            dropped = [self._registry.drop(cqs, key, key.name, origin.accepted_ms) for key in found.keys]
            change = joined([change, *dropped])
            result["dropped"] = len(dropped)
        return Answer(result, change)

    def describe(self, command: PreparedCommand[Describe], origin: Origin) -> Answer:
        """Describe a stream, table or view.

        Raises:
            InputError: unknown-stream.
            NotYet: Kafka has not answered.
            OperationalError: A server does not answer.
        """
        source, described = self._described(command.statement, self._seen_by(origin.owner), origin)
        described |= self._rights.described(source)
        if self._rights.owns(origin.owner, source):
            described["readers"] = readers_of(source)
        return Answer(described)

    def _described(self, statement: Describe, catalog: Catalog, origin: Origin) -> tuple[Source, Result]:
        match statement.kind:
            case "stream":
                stream = catalog.stream(statement.name)
                declared = describe_stream(stream) | {"statement": stream_statement(stream)}
                return stream, declared | self._stream_figures(stream, origin.accepted_ms)
            case "table":
                table = catalog.table(statement.name)
                with self._topics.of(origin.owner, origin.position) as topics:
                    described = describe_table(table, exactness(self._settings, topics, table))
                    states = TableStates(topics, self._registry.admission.replicas)
                    state = states.of([table], origin.accepted_ms)[table.name]
                return table, described | {"cqs": self._registry.computations.cqs(table.table_id)} | state
            case "view":
                view = catalog.view(statement.name)
                return view, describe_view(view) | {"cqs": self._working.unit.sources.view_cqs(view.name)}
            case "cq" | "function":
                raise AssertionError("neither is a source")

    def _stream_figures(self, stream: Stream, now_ms: int) -> Result:
        """Return the figures of a stream: progress, watermarks, misfits, keys in several partitions, and warnings."""
        notes, ids = self._working.evaluator, [stream.stream_id]
        misfits: Result = {"misfits": notes.misfits(ids)[stream.stream_id]} if stream.lenient else {}
        count = split_keys(notes, [stream]).get(stream.stream_id)
        split: Result = {} if count is None else {"split_keys": count}
        times, live = time_figures(notes, [stream], self._figures, now_ms), self._registry.computations.live()
        time = times[stream.stream_id]
        if all(each.stream_id != stream.stream_id or each.computation.timed is None for each in live):
            time = time._replace(watermarks={})  # no query updates them any more
        possible = [
            notes.first_records(ids)[stream.stream_id].warning,
            SPLIT_KEYS_WARNING if count else None,
            time.warning(now_ms),
        ]
        found = [warning for warning in possible if warning is not None]
        warnings: Result = {"warnings": found} if found else {}
        return self._figures(stream.name) | time.described() | misfits | split | warnings


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
    """Tell whether an existing topic has the number of partitions that a statement asks for."""
    if statement.partitions is None:
        return True
    form = topics.forms([statement.topic]).get(statement.topic)
    return form is not None and form.partitions == statement.partitions
