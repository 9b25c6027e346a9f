"""Statements: each is parsed and compiled, then handed to the part of the gateway that carries it out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

import msgspec

from gateway.access.source_rights import SourceRights
from gateway.commands.answers import CqResult, NextTick, SharedQuery, cq_result
from gateway.commands.digest_columns import with_digest_columns
from gateway.commands.explain_event import explain_event
from gateway.commands.listing import show
from gateway.commands.operator_statements import OperatorStatements
from gateway.commands.quarantines import Quarantines
from gateway.commands.source_statements import SourceChange, SourceDescription, SourceStatements
from gateway.commands.table_states import TableStates
from gateway.commands.uses import use_of
from gateway.evaluation.process import Evaluations
from gateway.kafka import Record, Topics
from gateway.model.records import Cq, Destination, TriggerSpec, instant
from gateway.model.unit import CqKey
from gateway.registry.aggregate_queries import check_aggregation
from gateway.registry.grid import next_tick_of
from gateway.registry.placement import DestinationRequest
from gateway.registry.registry import Registry
from gateway.sources.declarations import Origin
from gateway.state.match_counts import MatchCounts
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.work import Change
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import Positions
from grouping.access.explain import explain, explain_stages
from grouping.access.function_guide import describe_function
from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.compiler.reader_sql import check_virtual
from grouping.compiler.statement_places import in_statement
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.operator_statements import DropCqs, PauseGroup, SetQuota, ShowCqsOf, ShowQuota
from grouping.model.query import (
    AlterCq,
    CreateCq,
    CreateView,
    DescribeCq,
    DescribeFunction,
    DropCq,
    ExplainCq,
    ExplainEvent,
    ExplainSelect,
    ExplainStages,
    PauseCq,
    ResumeCq,
    Show,
    Statement,
)
from grouping.plan.group import CompiledQuery
from grouping.settings.settings import Settings
from grouping.statements.command import parse
from grouping.statements.cq_text import CqText
from grouping.statements.statement_size import check_bytes, check_words

__all__ = ["PreparedCommand", "Statements"]

Result = dict[str, object]
_KNOWN_QUERIES = 10_000

_CREATE_CQ = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?CQ\s", re.IGNORECASE)
"""The command that comes in thousands: it need not be parsed to be known."""

_ABOUT_CQ = DropCq | PauseCq | ResumeCq | AlterCq | DescribeCq | ExplainCq | ExplainEvent
"""Statements about a CQ that there is."""


class PreparedCommand(msgspec.Struct, frozen=True):
    """A command after parsing and compiling, before anything was looked up for it."""

    statement: Statement
    key: CqKey
    """The CQ that it is about; of a statement about none, without a name."""
    text: str = ""
    """The text of a statement whose SELECT is not compiled yet: errors name places in the text."""
    create: Create | None = None
    """The further fields of a CREATE CQ."""
    asked_ms: int = 0
    """When it was tried first, epoch milliseconds: EVERY counts from here, however long the command was held."""

    @property
    def changes_sources(self) -> bool:
        """Whether later commands compile differently once this one is carried out."""
        return self.create is None and isinstance(self.statement, SourceChange)


class Create(msgspec.Struct, frozen=True):
    """A CREATE CQ, compiled."""

    text: CqText
    query: CompiledQuery
    request: DestinationRequest


_NONE = Change()


class Answer(msgspec.Struct, frozen=True):
    """The outcome of a statement."""

    result: Result | CqResult
    at_ms: int
    """When it was carried out, epoch milliseconds: later than the present where it had to follow something."""
    change: Change = _NONE
    """The change that it makes, to be written with its unit of work."""


class Statements:
    """Carries out statements within the working copy's unit."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: Topics,
        positions: Positions,
        upkeep: TableUpkeep,
        counts: MatchCounts,
    ) -> None:
        self._settings = settings
        self._working = working
        self._upkeep = upkeep
        self.counts = counts
        self.registry = Registry(settings, working, positions)
        self.table_states = TableStates(topics, self.registry.admission.replicas)
        """How the tables are."""
        self._positions = positions
        self._rights = SourceRights(settings)
        self._sources = SourceStatements(settings, self._rights, working, positions.topic_desk, self.registry)
        self._operators = OperatorStatements(settings, working, self.registry, counts)
        self.quarantines = Quarantines(settings, working, self.registry.quarantine_quota)
        self._evaluations = Evaluations()
        self.reload()

    def reload(self) -> None:
        """Take the streams from the working copy anew."""
        self.counts.open()
        self.registry.reload()
        self._positions.topic_desk.forget()
        self._known_queries: dict[tuple[str, str], SharedQuery] = {}
        inventory = self._working.inventory
        self.catalog = Catalog(inventory.streams.values(), inventory.tables.values(), inventory.views.values())
        self._preparer = Preparer(self.catalog)

    def prepare(self, subscriber: str, text: str, asked_ms: int) -> PreparedCommand:
        """Parse and compile a subscriber's text, which was tried first at that instant (epoch milliseconds).

        Raises:
            InputError: The text's error.
        """
        check_bytes(text, self._settings.commands.text_bytes)
        check_words(text, self._settings.limits.statement_words)
        cut = CqText.cut(text)
        if not (cut.is_cut or _CREATE_CQ.match(text)) and not isinstance(statement := parse(text), CreateCq):
            name = statement.name if isinstance(statement, _ABOUT_CQ) else ""
            return PreparedCommand(statement, CqKey.of(subscriber, name), text, asked_ms=asked_ms)
        create, query = self._preparer.create(cut, self._seen_by(subscriber))
        clause, aggregated = create.publish.digest, query.select.aggregation is not None
        check_aggregation(create.trigger, clause, self._settings.limits, aggregated=aggregated)
        create = with_digest_columns(create, query, self._settings.limits.top_rows)
        if create.publish.mode == "virtual":
            check_virtual(query)
        key = CqKey.of(subscriber, create.name)
        request = self.registry.placing.request(create, query, key.subscriber, asked_ms)
        return PreparedCommand(create, key, create=Create(cut, query, request), asked_ms=asked_ms)

    def load(self, run: Iterable[PreparedCommand]) -> None:
        """Look up the state that commands compiled against the same streams need, all at once."""
        keys, requests = [], []
        for prepared in run:
            if prepared.key.name:
                keys.append(prepared.key)
            if prepared.create is not None:
                requests.append(prepared.create.request)
        self.registry.load(keys, requests)

    def carry_out(self, prepared: PreparedCommand, record: Record, now_ms: int) -> Answer:
        """Carry out a statement, and return its answer.

        Args:
            prepared: The loaded statement.
            record: The command's own, whose place names the new CQ or source.
            now_ms: The time of acceptance.

        Raises:
            InputError: Why it cannot be done; nothing was changed.
            NotYet: It is to be tried anew, with the same record.
        """
        try:
            return self._carried_out(prepared, record, now_ms)
        except InputError as error:
            statement = prepared.statement
            if isinstance(statement, ExplainSelect | ExplainStages | CreateView):
                raise in_statement(error, prepared.text, statement.select) from None
            raise

    def _carried_out(self, prepared: PreparedCommand, record: Record, now_ms: int) -> Answer:
        statement, key, registry = prepared.statement, prepared.key, self.registry
        origin = Origin(key.subscriber, record.position, now_ms)
        if isinstance(statement, SourceChange):
            return self._change_source(statement, origin)
        if isinstance(statement, SourceDescription):
            return Answer(self._sources.describe(statement, self._seen_by(key.subscriber), origin), now_ms)
        match statement:
            case CreateCq():
                create = prepared.create
                assert create is not None, "a CREATE was compiled"
                wanted = create.request.destination_id
                change = registry.create(key, create.text, statement, create.query, wanted, now_ms)
            case DropCq(name, if_exists):
                if if_exists and self._working.unit.cq(key) is None:
                    return Answer({"cq": name, "dropped": False}, now_ms)
                change = registry.drop(key, name, now_ms)
            case PauseCq(name):
                change = registry.pause(key, name, True, now_ms)
            case ResumeCq(name):
                change = registry.pause(key, name, False, now_ms)
            case AlterCq():
                change = registry.alter(key, statement, prepared.asked_ms, now_ms)
            case ShowCqsOf() | DropCqs() | SetQuota() | ShowQuota() | PauseGroup():
                shown, changed = self._operators.carry_out(statement, key.subscriber, now_ms, self._next_tick(now_ms))
                return Answer(shown, now_ms, changed)
            case ExplainEvent(name):
                explained = self._explain_event(statement, registry.find(key, name), key, record, now_ms)
                return Answer(explained, now_ms)
            case _:
                return Answer(self._shown(prepared, now_ms), now_ms)
        cq = change.cq
        assert cq is not None, "the change is a CQ's"
        result: Result | CqResult = {"cq": cq.name}
        if not isinstance(statement, DropCq):
            result = self._cq(key, cq, now_ms)
        return Answer(result, max(now_ms, cq.latest_ms), change)

    def _change_source(self, statement: SourceChange, origin: Origin) -> Answer:
        outcome = self._sources.carry_out(statement, self._seen_by(origin.owner), origin)
        if outcome.change.catalog:
            self._preparer = Preparer(self.catalog)
        return Answer(outcome.result, origin.accepted_ms, outcome.change)

    def _seen_by(self, subscriber: str) -> Catalog:
        """Return the sources that a subscriber may read."""
        return self._rights.seen_by(subscriber, self.catalog)

    def _shown(self, prepared: PreparedCommand, now_ms: int) -> Result:
        """Return the result of a statement that changes nothing."""
        statement, key, registry = prepared.statement, prepared.key, self.registry
        match statement:
            case DescribeFunction(name):
                return describe_function(name)
            case DescribeCq(name):
                return self._describe(key, registry.find(key, name), now_ms)
            case Show():
                return show(
                    statement,
                    key.subscriber,
                    self._working,
                    self._rights,
                    self._seen_by(key.subscriber),
                    self._upkeep,
                    self._next_tick(now_ms),
                    partial(registry.admission.index, now_ms=now_ms),
                    self.quarantines,
                    registry.computations,
                )
            case ExplainSelect(select):
                query = compile_select(select, self._seen_by(key.subscriber))
                stream = self._working.inventory.streams[query.plan.stream_id]
                return self._explained(query, stream, now_ms)
            case ExplainStages(select):
                return explain_stages(select, self._seen_by(key.subscriber))
            case ExplainCq(name):
                return self._explain(registry.find(key, name), now_ms)
            case _:
                raise AssertionError("the caller has carried out what changes anything")

    @staticmethod
    def _next_tick(now_ms: int) -> NextTick:
        def tick(trigger: TriggerSpec, cq: Cq) -> int | None:
            return next_tick_of(cq, trigger, now_ms)

        return tick

    def _cq(self, key: CqKey, cq: Cq, now_ms: int) -> CqResult:
        destination, member = self.registry.destination_of(cq), self.registry.stays.token(key, cq)
        shared = self._shared_query(destination)
        return cq_result(self._settings, cq, member, destination, shared, self._next_tick(now_ms))

    def _shared_query(self, destination: Destination) -> SharedQuery:
        stream_id, group_id, select_id = destination.stream_id, destination.group_id, destination.select_id
        shared = self._known_queries.get((group_id, select_id))
        if shared is None:
            if len(self._known_queries) >= _KNOWN_QUERIES:
                self._known_queries.clear()
            shared = SharedQuery(
                self._working.inventory.streams[stream_id],
                self._working.plan(stream_id, group_id),
                self._working.select(stream_id, select_id),
            )
            self._known_queries[group_id, select_id] = shared
        return shared

    def _describe(self, key: CqKey, cq: Cq, now_ms: int) -> Result:
        membership = self._working.unit.membership(cq.destination_id)
        assert membership is not None, "a CQ has a destination"
        destination = membership.destination
        matches: int | None
        if membership.destination.mode == "virtual":
            matches, last_ms = None, None  # who sees a record of the group's is each reader's to tell
        else:
            matches, last_ms = self.counts.of(membership.destination.stream_id, membership.number)
        described: Result = msgspec.to_builtins(self._cq(key, cq, now_ms))
        return described | {
            "text": str(cq.text),
            "status": "paused" if cq.paused else "active",
            "quarantined": self.quarantines.of_cq(destination.stream_id, destination.group_id, destination.select_id),
            "group_paused": self.quarantines.pause(destination.stream_id, destination.group_id),
            "created_at": instant(cq.created_ms),
            "matches": matches,
            "last_match_at": None if last_ms is None else instant(last_ms),
        }

    def _explain(self, cq: Cq, now_ms: int) -> Result:
        destination = self.registry.destination_of(cq)
        stream, plan, select = self._shared_query(destination)
        return self._explained(CompiledQuery(plan, destination.row, select), stream, now_ms)

    def _explain_event(self, statement: ExplainEvent, cq: Cq, key: CqKey, record: Record, now_ms: int) -> Result:
        destination = self.registry.destination_of(cq)
        stream, plan, select = self._shared_query(destination)
        query = CompiledQuery(plan, destination.row, select)
        not_evaluated = self.quarantines.why_not_evaluated(stream.stream_id, plan.group_id, destination.select_id)
        tables = self._working.inventory.tables
        evaluate = partial(self._evaluations.outcome, asker=key.subscriber, name=record.position)
        explained = explain_event(statement, cq, destination, query, stream, tables, not_evaluated, now_ms, evaluate)
        return {"plan": self._explained(query, stream, now_ms)["plan"], **explained}

    def _explained(self, query: CompiledQuery, stream: Stream, now_ms: int) -> Result:
        known = self.registry.admission.statistics(stream.stream_id, now_ms)
        return explain(query, stream, known, use_of(query.plan, self._working, self.registry, now_ms))
