"""Parses and compiles statements, and carries out each with the method in its row of `STATEMENTS`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from gateway.access.source_rights import SourceRights
from gateway.commands.cq_statements import CqStatements
from gateway.commands.digest_columns import with_digest_columns
from gateway.commands.listing import Listing
from gateway.commands.operator_statements import OperatorStatements, check_operator
from gateway.commands.prepared import Answer, Create, PreparedCommand, Result
from gateway.commands.quarantines import Quarantines
from gateway.commands.source_statements import SourceStatements
from gateway.commands.statement_table import STATEMENTS, Desks, title_of
from gateway.commands.table_states import TableStates
from gateway.kafka import Record, Topics
from gateway.model.loaded import Loaded
from gateway.model.unit import CqKey
from gateway.registry.aggregate_queries import check_aggregation, check_untimed
from gateway.registry.registry import Registry
from gateway.registry.table_changes import check_row_ticks, check_unstarted
from gateway.sources.declarations import Origin
from gateway.state.match_counts import MatchCounts
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import TopicEnds
from grouping.compiler.prepared import Preparer
from grouping.compiler.reader_sql import check_virtual
from grouping.compiler.statement_places import in_statement
from grouping.model.catalog import Catalog
from grouping.model.errors import InputError
from grouping.model.query import CreateCq, CreateView, ExplainSelect, Statement
from grouping.model.trigger import ChangeBased
from grouping.settings.settings import Settings
from grouping.statements.command import parse
from grouping.statements.cq_text import CqText
from grouping.statements.statement_size import check_bytes, check_words

__all__ = ["Statements"]

_CREATE_CQ = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?CQ\s", re.IGNORECASE)
"""The beginning of a CREATE CQ. The statement is frequent, so it is recognised without parsing."""


class Statements:
    """Carries out statements within the working copy's unit."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: Topics,
        positions: TopicEnds,
        upkeep: TableUpkeep,
        counts: MatchCounts,
        figures: Callable[[str], Result],
    ) -> None:
        self._settings = settings
        self._working = working
        self._counts = counts
        self._positions = positions
        self._rights = rights = SourceRights(settings)
        self.registry = registry = Registry(settings, working, positions)
        self.table_states = TableStates(topics, registry.admission.replicas)
        """The states of the tables."""
        self.quarantines = quarantines = Quarantines(settings, working, registry.quarantine_quota)
        self._desks = Desks(
            CqStatements(settings, working, registry, counts, quarantines, self._seen_by),
            SourceStatements(settings, rights, working, positions.topic_desk, registry, self._seen_by, figures),
            Listing(working, rights, self._seen_by, upkeep, registry, quarantines, figures),
            OperatorStatements(settings, working, registry, counts),
        )
        self.reload()

    def reload(self) -> None:
        """Take over the sources of the working copy, after the working copy was read again."""
        self._counts.open()
        self.registry.reload()
        self._positions.topic_desk.forget()
        self._desks.cqs.reload()
        inventory = self._working.inventory
        self.catalog = Catalog(inventory.streams.values(), inventory.tables.values(), inventory.views.values())
        self._preparer = Preparer(self.catalog)

    def _seen_by(self, subscriber: str) -> Catalog:
        """Return the sources that a subscriber may read."""
        return self._rights.seen_by(subscriber, self.catalog)

    def prepare(self, subscriber: str, text: str, asked_ms: int) -> PreparedCommand[Statement]:
        """Parse and compile a command.

        Args:
            subscriber: The sender.
            text: The text of the command.
            asked_ms: When the command was first tried, epoch milliseconds.

        Raises:
            InputError: The text has an error.
        """
        check_bytes(text, self._settings.commands.text_bytes)
        check_words(text, self._settings.limits.statement_words)
        cut = CqText.cut(text)
        if not (cut.is_cut or _CREATE_CQ.match(text)) and not isinstance(statement := parse(text), CreateCq):
            title = title_of(statement)
            name = getattr(statement, "name", "") if STATEMENTS[title].is_about_cq else ""
            return PreparedCommand(statement, title, CqKey.of(subscriber, name), text, asked_ms=asked_ms)
        create, query = self._preparer.create(cut, self._seen_by(subscriber))
        check_row_ticks(query.plan.stream_id, query.edge, create.trigger)
        clause, aggregated = create.publish.digest, query.select.aggregation is not None
        check_aggregation(create.trigger, clause, self._settings.limits, aggregated=aggregated)
        create = with_digest_columns(create, query, self._settings.limits.top_rows)
        check_untimed(query.edge, timed=not isinstance(create.trigger, ChangeBased))
        check_unstarted(query, create)
        if create.publish.mode == "virtual":
            check_virtual(query)
        key = CqKey.of(subscriber, create.name)
        request = self.registry.placing.request(create, query, key.subscriber, asked_ms)
        return PreparedCommand(create, "CREATE CQ", key, create=Create(cut, query, request), asked_ms=asked_ms)

    def load(self, commands: Iterable[PreparedCommand[Statement]]) -> Loaded:
        """Read the CQs and destinations for commands, all at once; the commands must see the same sources."""
        keys, requests = [], []
        for prepared in commands:
            if prepared.key.name:
                keys.append(prepared.key)
            if prepared.create is not None:
                requests.append(prepared.create.request)
        return self.registry.load(keys, requests)

    def carry_out(self, prepared: PreparedCommand[Statement], loaded: Loaded, record: Record, now_ms: int) -> Answer:
        """Carry out a statement, and return its answer.

        Args:
            prepared: The statement.
            loaded: The result of `load` for several commands, with this command among them.
            record: The command's record. The record's partition and offset give the id of a new source.
            now_ms: The time of acceptance, epoch milliseconds.

        Raises:
            InputError: The statement is refused; nothing was changed.
            NotYet: The statement must be tried again, with the same record.
        """
        row, statement = STATEMENTS[prepared.title], prepared.statement
        if row.operators_only:
            check_operator(self._settings, prepared.key.subscriber, row.own_form)
        origin = Origin(prepared.key.subscriber, record.position, now_ms)
        try:
            answer = row.handler(self._desks, loaded)(prepared, origin)
        except InputError as error:
            if isinstance(statement, ExplainSelect | CreateView):
                raise in_statement(error, prepared.text, statement.select) from None
            raise
        if row.changes_sources and answer.change.catalog:
            self._preparer = Preparer(self.catalog)
            self._desks.cqs.reload()
        return answer
