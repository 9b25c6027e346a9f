"""Planning: parses a SELECT, resolves names, types operands, and refuses unsupported clauses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlglot import exp

from grouping.binding.bind import Binder
from grouping.binding.bound import Bound, Term, nodes, without_positions
from grouping.binding.budget import MOST_VIEW_WORDS, Budget
from grouping.binding.operands import boolean
from grouping.binding.scope import Scope
from grouping.compiler.aggregate_binder import AggregateBinder, bind_keys, has_aggregates
from grouping.compiler.aggregate_texts import LiftedKey
from grouping.compiler.edge_key import bind_key, changes_scope, with_edge, with_row_before
from grouping.compiler.frames.frame_binder import FrameBinder
from grouping.compiler.frames.framed_query import check_frames, has_frames, with_frames
from grouping.compiler.frames.interval_query import with_framed_interval, with_interval
from grouping.compiler.frames.until import read_until, with_until
from grouping.compiler.from_clause import InlinedSelect, Relation, read_from
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.expression import Column
from grouping.model.query import Edge
from grouping.model.refusals import too_large, unsupported
from grouping.model.sql_type import BOOLEAN
from grouping.model.table import Table, View
from grouping.plan.aggregate import AggregateKey, AggregateValue
from grouping.plan.computation import Computation
from grouping.plan.row_before import EDGE
from grouping.statements.clauses import EmitClause, cut_emit
from grouping.statements.select_text import read_select
from grouping.statements.statement_size import words

__all__ = ["BoundItem", "BoundQuery", "plan", "plan_view", "source_names"]


class BoundItem(NamedTuple):
    """An output column."""

    name: str
    value: Bound


class BoundAggregation(NamedTuple):
    """The keys and aggregates of a SELECT: the columns that its SELECT list and HAVING read."""

    keys: tuple[AggregateKey, ...]
    aggregates: tuple[AggregateValue, ...]
    """The aggregates of HAVING, in canonical order; then the other aggregates of the SELECT list."""
    kept: int
    """The number of aggregates in HAVING."""
    having: Bound | None
    bound_keys: tuple[Bound, ...]
    """The bound trees of the keys, whose constants are not lifted yet."""
    lifted: Mapping[LiftedKey, AggregateValue]
    """The aggregates of HAVING that have constants, by their `LiftedKey`."""


class BoundQuery(NamedTuple):
    """A SELECT with resolved names."""

    stream: Stream
    where: Bound | None
    items: tuple[BoundItem, ...]
    computation: Computation | None = None
    """The nodes between the stream and the group; None for a query that reads only a stream."""
    reads: frozenset[str] = frozenset()
    """The views that the query reads, directly or through other views, by the names with which they were created."""
    aggregation: BoundAggregation | None = None
    """Keys and aggregates; None if each matching row is a result."""
    named: frozenset[str] = frozenset()
    """The folded names of the sources in the query's own text."""
    edge: Edge = ""
    """Which edges are results; "" if each match is a result."""
    until: Bound | None = None
    """The condition of UNTIL; None without UNTIL, and if the computation decides UNTIL."""
    snapshot: bool = False
    """Whether results begin with a snapshot of the table (WITH SNAPSHOT)."""


_ORDER = "Results come in the order of the events of a partition."
_TOP = "EVERY '10 minutes' DO PUBLISH DIGEST TOP 10 BY price publishes the 10 largest matches of each 10 minutes."
_LATEST = "EVERY '10 minutes' DO PUBLISH DIGEST LATEST BY symbol publishes the last match of each symbol."
_ENDLESS = "A standing query has no last result."
_WINDOWS = (
    "QUALIFY and WINDOW belong to window functions, which the SELECT list or QUALIFY has.",
    "GROUP BY symbol EVERY '5 minutes' computes aggregates of the events of each 5 minutes.",
)
_LEAVE_OUT = "Leave it out."
_PARTS = {
    "with_": ("WITH", "A query has one SELECT.", "Write FROM (SELECT …) q, or CREATE VIEW q AS SELECT …."),
    "distinct": ("DISTINCT", "Each matching event is a result.", f"{_LATEST} count(DISTINCT symbol) counts values."),
    "laterals": (
        "LATERAL VIEW",
        "Each event is one row.",
        "exists(tags, t -> t = 'a') tests the elements of an ARRAY.",
    ),
    "qualify": ("QUALIFY", *_WINDOWS),
    "windows": ("WINDOW", *_WINDOWS),
    "order": ("ORDER BY", _ORDER, _TOP),
    "sort": ("SORT BY", _ORDER, _TOP),
    "cluster": ("CLUSTER BY", _ORDER, _LEAVE_OUT),
    "distribute": ("DISTRIBUTE BY", _ORDER, _LEAVE_OUT),
    "limit": ("LIMIT", _ENDLESS, _TOP),
    "offset": ("OFFSET", _ENDLESS, _LEAVE_OUT),
    "into": ("INTO", "DO PUBLISH says where results go.", _LEAVE_OUT),
}
"""sqlglot's name for a refused part of a SELECT → the name in SQL, the reason, and the form to write."""

_KEPT = frozenset(("expressions", "from_", "where", "joins", "group", "having"))
_FRAMED = frozenset(("qualify", "windows"))
"""Parts of a SELECT that need window functions."""
_DEEPEST = 32
"""The largest number of views and subqueries that may be nested within one another."""


def plan(select: str, catalog: Catalog, budget: Budget) -> BoundQuery:
    """Return the plan of a SELECT over the existing streams, tables and views.

    Raises:
        InputError: The SELECT is wrong; docs/commands.md lists the codes.
    """
    text, emit = cut_emit(select)
    planner = _Planner(catalog, budget, emit)
    tree = read_select(text)
    named = frozenset(source_names(tree))
    inlined = planner.select(tree, outermost=True)
    assert isinstance(inlined.base, Stream), "the outermost SELECT reads a table as the stream of its changes"
    where = inlined.where
    condition = where[0] if len(where) == 1 else Term("and", where, BOOLEAN) if where else None
    items = tuple(BoundItem(name, value) for name, value in inlined.columns)
    computation = inlined.scope.computation if inlined.scope else None
    reads, edge = frozenset(planner.reads), emit.edge if emit else ""
    aggregation = planner.aggregation
    until = None if computation is not None and computation.switch else planner.until
    snapshot = emit is not None and emit.snapshot
    return BoundQuery(inlined.base, condition, items, computation, reads, aggregation, named, edge, until, snapshot)


def plan_view(select: str, catalog: Catalog, budget: Budget | None = None) -> frozenset[str]:
    """Return the names of all streams, tables and views that a view's SELECT reads, directly or through views.

    Raises:
        InputError: The SELECT is wrong.
    """
    planner = _Planner(catalog, budget or Budget())
    inlined = planner.select(read_select(select))
    computation = inlined.scope.computation if inlined.scope else None
    joined = set(computation.table_ids) if computation else set()
    tables = {table.name for table in catalog.whole.tables() if table.table_id in joined}
    return frozenset((inlined.base.name, *tables, *planner.reads))


def source_names(tree: exp.Select) -> set[str]:
    """Return the folded names of the sources that a SELECT's own text names, in subqueries too."""
    return {".".join(part.name for part in table.parts).casefold() for table in tree.find_all(exp.Table)}


class _Planner:
    """Plans a SELECT with the views and subqueries within it."""

    def __init__(self, catalog: Catalog, budget: Budget, emit: EmitClause | None = None) -> None:
        self._catalog = catalog
        self._budget = budget
        self._emit = emit
        self._depth = 0
        self.reads: set[str] = set()
        self.aggregation: BoundAggregation | None = None
        """The keys and aggregates of the outermost SELECT; None without aggregates."""
        self.until: Bound | None = None
        """The condition of the outermost SELECT's UNTIL."""

    def select(self, tree: exp.Select, *, outermost: bool = False) -> InlinedSelect:
        """Return the plan of a SELECT."""
        aggregation = has_aggregates(tree)
        if aggregation and not outermost:
            raise unsupported(
                "an aggregate in a view or subquery", "Only the outermost SELECT may aggregate.", "Aggregate in the CQ."
            )
        framed = has_frames(tree)
        for name, value in tree.args.items():
            if value and name not in _KEPT and not (framed and name in _FRAMED):
                shown = name.strip("_").upper()
                raise unsupported(*_PARTS.get(name, (shown, "Continuous queries do not have this clause.", _LEAVE_OUT)))
        found = read_from(tree, self._catalog, self._inline, self._budget)
        emit = self._emit if outermost else None
        table = found.base if isinstance(found, Relation) and isinstance(found.base, Table) else None
        if outermost and table is not None and isinstance(found, Relation):
            found = changes_scope(table, found, self._budget)
        names = found.scope_alone(self._budget) if isinstance(found, Relation) else found
        base, scope = (found.base, None) if isinstance(found, Relation) else (found.stream, found)
        assert base is not None, "a scope without a table has a stream"
        binder = Binder(names)
        where = tree.args.get("where")
        conditions = (*names.where, boolean(binder.bind(where.this), "WHERE")) if where else names.where
        if framed:
            of_table = table is not None
            scope = check_frames(scope, self._emit, outermost=outermost, aggregation=aggregation, of_table=of_table)
            return self._framed(tree, base, scope, conditions)
        if emit is not None and emit.until:
            if table is not None:
                raise unsupported("UNTIL over a table", "A removed row has no value that UNTIL could read.", _LEAVE_OUT)
            self.until = boolean(binder.bind(read_until(emit.until)), "UNTIL")
        if emit is not None and emit.interval_ms:
            scope, conditions = with_interval(scope, emit, conditions, self.until, aggregation=aggregation)
        elif emit is not None and scope is not None:
            scope = with_row_before(scope, emit, table, aggregation=aggregation)
            if table is None:
                conditions = conditions[len(names.where) :]
            if self.until is not None:
                scope, conditions = with_until(scope, conditions, self.until)
        binder = Binder(with_edge(names, emit))
        if aggregation:
            items, self.aggregation = _aggregation(tree, binder)
        else:
            items = _items(tree.expressions, binder)
        return InlinedSelect(base, scope, conditions, tuple((item.name, item.value) for item in items))

    def _framed(self, tree: exp.Select, base: Stream | Table, scope: Scope, where: tuple[Bound, ...]) -> InlinedSelect:
        """Return the plan of the outermost SELECT, which has window functions."""
        emit = self._emit
        if emit is not None and emit.without_by is not None:
            raise emit.without_by
        before = None if emit is None else bind_key(scope, emit.by)
        binder = FrameBinder(scope, tree, with_edge(scope, emit))
        items, qualify = _items(tree.expressions, binder), tree.args.get("qualify")
        aliases = {item.name.casefold(): item.value for item in items}
        condition = None if qualify is None else binder.condition(qualify.this, "QUALIFY", aliases)
        if emit is not None and emit.until:
            self.until = binder.condition(read_until(emit.until), "UNTIL", aliases)
        scope, decided = with_frames(scope, binder.by, binder.values, where, condition, before)
        if emit is not None and emit.interval_ms:
            declared = {column.name for column in base.columns}
            leaves = (leaf for item in items for leaf in nodes(item.value) if isinstance(leaf, Column))
            selected = frozenset(leaf.stored for leaf in leaves if leaf != EDGE or EDGE.stored in declared)
            scope, decided = with_framed_interval(scope, emit, decided, self.until, selected)
        elif self.until is not None:
            scope, decided = with_until(scope, decided, self.until)
        return InlinedSelect(base, scope, decided, tuple((item.name, item.value) for item in items))

    def _inline(self, nested: exp.Select | View) -> InlinedSelect:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise too_large(f"more than {_DEEPEST} views and subqueries stand within one another")
        try:
            if isinstance(nested, exp.Select):
                inlined = self.select(nested)
                self._budget.inline(len(inlined.columns))
                return inlined
            self.reads.add(nested.name)
            self._budget.read(words(nested.select, MOST_VIEW_WORDS))
            inlined = self._within_view(read_select(nested.select))
            self._budget.inline(len(inlined.columns))
            return _placeless(inlined)
        finally:
            self._depth -= 1

    def _within_view(self, tree: exp.Select) -> InlinedSelect:
        """Return the plan of a view's SELECT. The SELECT may read all sources: CREATE VIEW has checked the rights."""
        seen, self._catalog = self._catalog, self._catalog.whole
        try:
            return self.select(tree)
        finally:
            self._catalog = seen


def _placeless(select: InlinedSelect) -> InlinedSelect:
    """Return a view's plan without positions of its literals, since the literals are not in the text of the query."""
    columns = tuple((name, without_positions(value)) for name, value in select.columns)
    return select._replace(where=tuple(map(without_positions, select.where)), columns=columns)


def _aggregation(tree: exp.Select, binder: Binder) -> tuple[tuple[BoundItem, ...], BoundAggregation]:
    """Return the SELECT list of an aggregate query, and its keys and aggregates."""
    keys = bind_keys(tree, binder)
    aggregation = AggregateBinder(binder.scope, [each.key for each in keys])
    items = _items(tree.expressions, aggregation)
    having, condition = tree.args.get("having"), None
    if having is not None:
        condition = aggregation.having(having.this, {item.name.casefold(): item.value for item in items})
    named = {node.stored for node in nodes(condition) if isinstance(node, Column)} if condition is not None else set()
    kept = [aggregation.aggregates[name] for name in sorted(named & aggregation.aggregates.keys())]
    shown = {node.stored for item in items for node in nodes(item.value) if isinstance(node, Column)}
    others = (aggregation.aggregates[name] for name in aggregation.aggregates if name in shown and name not in named)
    aggregates, bound_keys = (*kept, *others), tuple(each.bound for each in keys)
    own = tuple(each.key for each in keys)
    return items, BoundAggregation(own, aggregates, len(kept), condition, bound_keys, aggregation.lifted)


def _items(expressions: Iterable[exp.Expr], binder: Binder) -> tuple[BoundItem, ...]:
    items: dict[str, BoundItem] = {}
    for expression in expressions:
        for item in _item(expression, binder):
            if items.setdefault(item.name.casefold(), item) is not item:
                raise unsupported(
                    f'a second column "{item.name}"',
                    "The names in a SELECT list must differ.",
                    "Give one of them an alias.",
                )
    if not items:
        raise InputError(
            "the SELECT list is empty", code="syntax-error", detail="A SELECT needs a column.", hint="Write *."
        )
    return tuple(items.values())


def _item(expression: exp.Expr, binder: Binder) -> Iterable[BoundItem]:
    if isinstance(expression, exp.Star) or (
        isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
    ):
        star = expression if isinstance(expression, exp.Star) else expression.this
        if any(star.args.values()):
            raise unsupported("* with EXCEPT or REPLACE", "* stands for all columns.", "Name the columns.")
        if isinstance(expression, exp.Column):
            binder.check_qualifier(expression)
        qualifier = expression.table if isinstance(expression, exp.Column) else ""
        return (BoundItem(name, value) for name, value in binder.star(qualifier))
    if isinstance(expression, exp.Alias):
        value = without_positions(binder.finished(binder.bind(expression.this)))
        return [BoundItem(expression.alias, value)]  # no positions, since HAVING and GROUP BY may repeat the value
    column = expression.unnest()
    if not isinstance(column, exp.Column):
        binder.bind(expression)  # an error within the expression is raised before the error about the alias
        raise unsupported("an expression without an alias", "Each result column needs a name.", "Add AS and a name.")
    name, value = binder.column(column)
    return [BoundItem(name, binder.finished(value))]
