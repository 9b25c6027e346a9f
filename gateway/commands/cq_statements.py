"""Statements about CQs and queries: CREATE, DROP, ALTER, PAUSE, RESUME, DESCRIBE and EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from gateway.commands.answers import CqResult, SharedQuery, cq_result
from gateway.commands.explain_event import explain_event
from gateway.commands.prepared import Answer, PreparedCommand, Result
from gateway.commands.quarantines import Quarantines
from gateway.commands.uses import use_of
from gateway.evaluation.process import Evaluations
from gateway.model.loaded import Loaded
from gateway.model.records import Cq, Destination, instant
from gateway.model.unit import CqKey
from gateway.registry.registry import Registry
from gateway.sources.declarations import Origin
from gateway.state.match_counts import MatchCounts
from gateway.state.work import Change
from gateway.state.working_copy import WorkingCopy
from grouping.access.explain import explain, explain_stages
from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream
from grouping.model.query import AlterCq, CreateCq, Describe, Drop, ExplainCq, ExplainSelect, Pause
from grouping.plan.group import CompiledQuery
from grouping.settings.settings import Settings

__all__ = ["CqStatements"]

_KNOWN_QUERIES = 10_000


class CqStatements:
    """Carries out statements about CQs within the working copy's unit; each method raises InputError for a refusal."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        registry: Registry,
        counts: MatchCounts,
        quarantines: Quarantines,
        seen_by: Callable[[str], Catalog],
    ) -> None:
        self._settings = settings
        self._working = working
        self._registry = registry
        self._counts = counts
        self._quarantines = quarantines
        self._seen_by = seen_by
        self._evaluations = Evaluations()
        self._known_queries: dict[tuple[str, str], SharedQuery] = {}

    def reload(self) -> None:
        """Forget the queries in memory, after the working copy was read again."""
        self._known_queries = {}

    def create(self, loaded: Loaded, command: PreparedCommand[CreateCq], origin: Origin) -> Answer:
        """Create or replace a CQ, and describe it."""
        create = command.create
        assert create is not None, "a CREATE was compiled"
        wanted, now_ms = create.request.destination_id, origin.accepted_ms
        with self._registry.table_changes.opened(create.query.plan.stream_id) as records:
            change = self._registry.create(
                loaded, command.key, create.text, command.statement, create.query, wanted, now_ms
            )
        if records:
            change = msgspec.structs.replace(change, catalog=(*records, *change.catalog))
        return self._changed(loaded, command.key, change, now_ms)

    def drop(self, loaded: Loaded, command: PreparedCommand[Drop], origin: Origin) -> Answer:
        """Drop a CQ."""
        name = command.statement.name
        if command.statement.if_exists and loaded.cq(command.key) is None:
            return Answer({"cq": name, "dropped": False})
        change = self._registry.drop(loaded, command.key, name, origin.accepted_ms)
        assert change.cq is not None, "the change is a CQ's"
        return Answer({"cq": change.cq.name}, change, change.cq.latest_ms)

    def pause(self, loaded: Loaded, command: PreparedCommand[Pause], origin: Origin) -> Answer:
        """Pause or resume a CQ, and describe it."""
        name, paused = command.statement.name, command.statement.paused
        change = self._registry.pause(loaded, command.key, name, paused, origin.accepted_ms)
        return self._changed(loaded, command.key, change, origin.accepted_ms)

    def alter(self, loaded: Loaded, command: PreparedCommand[AlterCq], origin: Origin) -> Answer:
        """Change a CQ's trigger or times, and describe the CQ."""
        change = self._registry.alter(loaded, command.key, command.statement, command.asked_ms, origin.accepted_ms)
        return self._changed(loaded, command.key, change, origin.accepted_ms)

    def _changed(self, loaded: Loaded, key: CqKey, change: Change, now_ms: int) -> Answer:
        cq = change.cq
        assert cq is not None, "the change is a CQ's"
        return Answer(self._cq(loaded, key, cq, now_ms), change, cq.latest_ms)

    def _cq(self, loaded: Loaded, key: CqKey, cq: Cq, now_ms: int) -> CqResult:
        destination, member = loaded.destination_of(cq), self._registry.stays.token(key, cq)
        return cq_result(self._settings, cq, member, destination, self._shared_query(destination), now_ms)

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

    def describe(self, loaded: Loaded, command: PreparedCommand[Describe], origin: Origin) -> Answer:
        """Describe one of the sender's CQs."""
        cq = self._registry.find(loaded, command.key, command.statement.name)
        membership = loaded.membership_of(cq)
        destination = membership.destination
        matches: int | None
        if destination.mode == "virtual":
            # The gateway does not know these matches: each reader filters the events of the group itself.
            matches, last_ms = None, None
        else:
            matches, last_ms = self._counts.of(destination.stream_id, membership.number)
        described: Result = msgspec.to_builtins(self._cq(loaded, command.key, cq, origin.accepted_ms))
        stream_id, group_id, select_id = destination.stream_id, destination.group_id, destination.select_id
        return Answer(
            described
            | {
                "text": str(cq.text),
                "status": "paused" if cq.paused else "active",
                "quarantined": self._quarantines.of_cq(stream_id, group_id, select_id),
                "group_paused": self._quarantines.pause(stream_id, group_id),
                "created_at": instant(cq.created_ms),
                "matches": matches,
                "last_match_at": None if last_ms is None else instant(last_ms),
            }
        )

    def explain(self, loaded: Loaded, command: PreparedCommand[ExplainCq], origin: Origin) -> Answer:
        """Return the plan of one of the sender's CQs."""
        cq = self._registry.find(loaded, command.key, command.statement.name)
        destination = loaded.destination_of(cq)
        stream, plan, select = self._shared_query(destination)
        return Answer(self._explained(CompiledQuery(plan, destination.row, select), stream, origin.accepted_ms))

    def explain_event(self, loaded: Loaded, command: PreparedCommand[ExplainCq], origin: Origin) -> Answer:
        """Tell whether an event matches one of the sender's CQs, and whether the event would be delivered."""
        cq, now_ms = self._registry.find(loaded, command.key, command.statement.name), origin.accepted_ms
        destination = loaded.destination_of(cq)
        stream, plan, select = self._shared_query(destination)
        edge = destination.edges.edge if destination.edges else ""
        query = CompiledQuery(plan, destination.row, select, edge=edge)
        not_evaluated = self._quarantines.why_not_evaluated(stream.stream_id, plan.group_id, destination.select_id)
        tables = self._working.inventory.tables
        evaluate = partial(self._evaluations.outcome, asker=origin.owner, name=origin.position)
        explained = explain_event(
            command.statement, cq, destination, query, stream, tables, not_evaluated, now_ms, evaluate
        )
        return Answer({"plan": self._explained(query, stream, now_ms)["plan"], **explained})

    def explain_select(self, command: PreparedCommand[ExplainSelect], origin: Origin) -> Answer:
        """Return the plan that a query would have as a CQ."""
        query = compile_select(command.statement.select, self._seen_by(origin.owner))
        stream = self._registry.table_changes.stream_of(query.plan.stream_id)
        return Answer(self._explained(query, stream, origin.accepted_ms))

    def explain_stages(self, command: PreparedCommand[ExplainSelect], origin: Origin) -> Answer:
        """Return the tree of a query after each stage of the compiler."""
        return Answer(explain_stages(command.statement.select, self._seen_by(origin.owner)))

    def _explained(self, query: CompiledQuery, stream: Stream, now_ms: int) -> Result:
        known = self._registry.admission.statistics(stream.stream_id, now_ms)
        return explain(query, stream, known, use_of(query.plan, self._working, self._registry, now_ms))
