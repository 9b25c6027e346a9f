"""The compiler: from a SELECT's text to its group, its row of constants and its SELECT list. No I/O.

`STAGES` lists the stages: the name, the function, and the text of the tree after the stage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from grouping.binding.budget import Budget
from grouping.binding.constants import lift, settle
from grouping.compiler.aggregate_names import named_without_constants
from grouping.compiler.draft import Draft
from grouping.compiler.frames.until import check_bounds, stay_of
from grouping.compiler.hidden_literals import having_types, hidden_literals, hidden_types
from grouping.compiler.normalize import normalize, normalize_value
from grouping.compiler.order import order
from grouping.compiler.plan import plan
from grouping.compiler.stage_text import lifted_text, normalized_text, ordered_text, planned_text, rendered_text
from grouping.functions.text_size import check_growth, grows
from grouping.model.catalog import Catalog
from grouping.model.expression import Column, Expression, Slot, Value, walk
from grouping.model.group import group_id
from grouping.model.ids import SelectId
from grouping.model.refusals import too_deep
from grouping.plan.aggregate import Aggregate, render_aggregate
from grouping.plan.frame_value import frame_values
from grouping.plan.group import OF_COMPUTATIONS, AggregateFilter, CompiledQuery, GroupPlan, SelectItem, SelectList
from grouping.plan.passing import PASSING
from grouping.plan.scan import Scan
from grouping.plan.signature import render
from grouping.plan.stay import Stay, StayBound
from grouping.plan.switch import SWITCH_STAY

__all__ = ["STAGES", "CompilerStage", "compile_draft", "compile_select", "finish", "stage_texts"]


class CompilerStage(NamedTuple):
    """A step of the compiler."""

    name: str
    run: Callable[[Draft], Draft]
    shown: Callable[[Draft], str]
    """Returns the tree after the stage, as text."""


def _planned(draft: Draft) -> Draft:
    query = plan(draft.text, draft.catalog, draft.budget)
    return draft._replace(
        stream=query.stream,
        where=query.where,
        items=query.items,
        computation=query.computation,
        edge=query.edge,
        until=() if query.until is None else (query.until,),
        snapshot=query.snapshot,
        reads=query.reads,
        named=query.named,
        aggregation=query.aggregation,
    )


def _normalized(draft: Draft) -> Draft:
    return draft._replace(
        conjuncts=normalize(draft.where),
        until=tuple(conjunct for condition in draft.until for conjunct in normalize(condition)),
        having=normalize(draft.aggregation.having) if draft.aggregation else (),
        items=tuple(item._replace(value=normalize_value(item.value)) for item in draft.items),
    )


def _ordered(draft: Draft) -> Draft:
    conjuncts, ties = order(draft.conjuncts)
    having, more_ties = order(draft.having)
    until, _ = order(draft.until)
    return draft._replace(conjuncts=conjuncts, having=having, until=until, ties=ties or more_ties)


def _lifted(draft: Draft) -> Draft:
    own_keys = draft.aggregation.bound_keys if draft.aggregation else ()
    lifted, row, constants = lift((*draft.conjuncts, *own_keys, *draft.having, *draft.until))
    where, keyed = len(draft.conjuncts), len(draft.conjuncts) + len(own_keys)
    expressions, keys, kept = lifted[:where], lifted[where:keyed], lifted[keyed : keyed + len(draft.having)]
    stay = None
    if draft.until:
        stay = stay_of(expressions, lifted[keyed:])
        check_bounds(stay, row)
    switch = draft.computation and draft.computation.switch
    if switch:
        expressions, stay = (*expressions, SWITCH_STAY.begin.conjunct), SWITCH_STAY
    select = tuple(SelectItem(item.name, settle(item.value)) for item in draft.items)
    if draft.aggregation is not None:
        aggregation, kept, select = named_without_constants(draft.aggregation, keys, kept, select, constants)
        draft = draft._replace(aggregation=aggregation, keys=keys)
    computed = (*lifted, *(item.expression for item in select))
    if (computation := draft.computation) is not None:
        if computation.before is not None and computation.frames is not None and computation.frames.where and not stay:
            expressions = (*expressions, PASSING)
        above = (computation.before, computation.frames, computation.timed)
        computed = (*computed, *(each for node in above if node is not None for each in node.expressions))
        computed = (*computed, *(each for value in frame_values(computed) for each in value.expressions))
    if grows(computed):
        check_growth(computed, row)
    return draft._replace(expressions=expressions, kept=kept, stay=stay, row=row, constants=constants, select=select)


def _rendered(draft: Draft) -> Draft:
    return draft._replace(signature=_signature(draft, draft.expressions, draft.keys, draft.kept))


def _signature(
    draft: Draft, where: Iterable[Expression], keys: Iterable[Expression], kept: Sequence[Expression]
) -> str:
    text = render(Scan(draft.stream), draft.computation, where, draft.stay)
    return text if draft.aggregation is None else text + render_aggregate(keys, kept)


def _shown_signature(draft: Draft) -> str:
    """Return the signature for display, with hidden literals; the group's id is a hash of the full signature."""
    parts = (draft.expressions, draft.keys, draft.kept)
    read = [*parts, *(value.expressions for part in parts for value in frame_values(part))]
    if not draft.kept and not any(isinstance(node, Value) for part in read for each in part for node in walk(each)):
        return draft.signature
    where, keys, kept = (tuple(map(hidden_literals, part)) for part in parts)
    if (stay := draft.stay) is not None:
        draft = draft._replace(stay=Stay(_without_literals(stay.begin), _without_literals(stay.end)))
    return _signature(draft, where, keys, kept)


def _without_literals(bound: StayBound) -> StayBound:
    """Return a bound with hidden literals in the window function that it compares."""
    column = hidden_literals(bound.column)
    assert isinstance(column, Column), "a column stays a column"
    return msgspec.structs.replace(bound, column=column)


STAGES = (
    # Names are looked up, operands get types, and unsupported syntax is refused.
    CompilerStage("plan", _planned, planned_text),
    # All spellings of a predicate get the same form.
    CompilerStage("normalize", _normalized, normalized_text),
    # Conjuncts and operands get a canonical order.
    CompilerStage("order", _ordered, ordered_text),
    # Constants are moved into slots, except constants of the SELECT list. Queries whose constants could make computed
    # texts too long are refused.
    CompilerStage("lift", _lifted, lifted_text),
    # The remaining text is the signature.
    CompilerStage("render", _rendered, rendered_text),
)
"""The stages of the compiler, in order."""


def compile_draft(select: str, catalog: Catalog, budget: Budget | None = None) -> Draft:
    """Return a SELECT after all stages.

    Args:
        select: The text of the SELECT.
        catalog: The visible sources.
        budget: The budget of nodes beyond the text; None for a new budget.

    Raises:
        InputError: The SELECT is wrong; docs/commands.md lists the codes.
    """
    draft = Draft(select, catalog, budget or Budget())
    try:
        for stage in STAGES:
            draft = stage.run(draft)
    except RecursionError:
        raise too_deep() from None
    return draft


def stage_texts(select: str, catalog: Catalog, budget: Budget | None = None) -> Iterator[tuple[str, str]]:
    """Yield the name of each stage and the tree after the stage as text.

    Raises:
        InputError: The SELECT is wrong. The texts of the stages before the refusal are yielded first.

    Example:
        >>> from grouping.model.catalog import Stream, StreamColumn
        >>> columns = (StreamColumn("symbol", "STRING"), StreamColumn("price", "DOUBLE"))
        >>> quotes = Stream("s_1", "quotes", columns, "quotes", "json", {"0": 0}, "2026-11-21T00:00:00Z")
        >>> texts = dict(stage_texts("SELECT * FROM quotes WHERE NOT (100 <= price)", Catalog([quotes])))
        >>> print(texts["order"])
        WHERE all of
          price < DOUBLE 100.0
    """
    draft = Draft(select, catalog, budget or Budget())
    for stage in STAGES:
        try:
            draft = stage.run(draft)
            text = stage.shown(draft)
        except RecursionError:
            raise too_deep() from None
        yield stage.name, text


def finish(draft: Draft) -> CompiledQuery:
    """Return a query's group, row and SELECT list, with their ids."""
    stream, computation = draft.stream, draft.computation
    group = group_id(computation.computation_id if computation else stream.stream_id, _distinct_text(draft))
    aggregation = _aggregation(draft)
    content = draft.select if aggregation is None else (draft.select, aggregation)
    select_id = SelectId("s" + hashlib.blake2b(msgspec.json.encode(content), digest_size=12).hexdigest())
    signature = _shown_signature(draft)
    group_plan = GroupPlan(group, stream.stream_id, signature, draft.expressions, computation, stay=draft.stay)
    if aggregation is not None:
        slots = sum(isinstance(node, Slot) for conjunct in draft.expressions for node in walk(conjunct))
        group_plan = msgspec.structs.replace(group_plan, kept=AggregateFilter(draft.kept, slots))
    select = SelectList(select_id, draft.select, aggregation)
    return CompiledQuery(group_plan, draft.row, select, tuple(sorted(draft.reads)), draft.edge, draft.snapshot)


def _distinct_text(draft: Draft) -> str:
    """Return the text that identifies a plan: the signature, with the types that it does not show."""
    values = sorted({value.column.stored for value in frame_values(draft.expressions)})
    own = (each for each in draft.expressions if each not in OF_COMPUTATIONS)
    return "\n".join(
        (draft.signature, *values, *hidden_types(own), *hidden_types(draft.kept), *having_types(draft.kept))
    )


def _aggregation(draft: Draft) -> Aggregate | None:
    return None if draft.aggregation is None else Aggregate(draft.aggregation.keys, draft.aggregation.aggregates)


def compile_select(select: str, catalog: Catalog, budget: Budget | None = None) -> CompiledQuery:
    """Compile a SELECT over a stream of the catalog, with its joined tables.

    Raises:
        InputError: The SELECT is wrong; docs/commands.md lists the codes.

    Example:
        >>> from grouping.model.catalog import Stream, StreamColumn
        >>> columns = (StreamColumn("symbol", "STRING"), StreamColumn("price", "DOUBLE"))
        >>> quotes = Stream("s_1", "quotes", columns, "quotes", "json", {"0": 0}, "2026-11-21T00:00:00Z")
        >>> query = compile_select("SELECT * FROM quotes WHERE 100 > price AND symbol = 'INTC'", Catalog([quotes]))
        >>> query.plan.signature, query.row.values
        ('SELECT … FROM quotes WHERE symbol = :c0 AND price < :c1', ('INTC', 100.0))
    """
    return finish(compile_draft(select, catalog, budget))
