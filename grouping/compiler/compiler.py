"""The compiler: from a SELECT's text to its group, its row of constants and its SELECT list. No I/O.

- plan: names looked up, operands typed, what is not supported refused
- normalize: one form for every spelling
- order: one order for every arrangement
- lift: constants cut out into slots
- render: what is left, as text, is the signature
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from grouping.compiler.bound import Bound, Constant, too_large
from grouping.compiler.constants import lift, settle
from grouping.compiler.normalize import normalize, normalize_value
from grouping.compiler.plan import BoundItem, plan
from grouping.compiler.select_text import MAX_DEPTH
from grouping.compiler.signature import order, render
from grouping.functions.text_size import check_growth, grows
from grouping.model.catalog import Catalog, Stream
from grouping.model.expression import Expression
from grouping.model.group import CompiledQuery, ConstantRow, GroupPlan, SelectItem, SelectList, group_id

__all__ = ["STAGES", "Draft", "compile_draft", "compile_select", "finish"]


class Draft(NamedTuple):
    """A query on its way through the stages; each fills in more."""

    stream: Stream
    where: Bound | None
    items: tuple[BoundItem, ...]
    conjuncts: tuple[Bound, ...] = ()
    """Constants in place."""
    ties: bool = False
    """Whether constants decided the order of the conjuncts."""
    expressions: tuple[Expression, ...] = ()
    """The conjuncts over slots."""
    row: ConstantRow = ConstantRow((), ())
    constants: tuple[Constant, ...] = ()
    """What the row was made from, by slot."""
    signature: str = ""


def _normalized(draft: Draft) -> Draft:
    return draft._replace(
        conjuncts=normalize(draft.where),
        items=tuple(item._replace(value=normalize_value(item.value)) for item in draft.items),
    )


def _ordered(draft: Draft) -> Draft:
    conjuncts, ties = order(draft.conjuncts)
    return draft._replace(conjuncts=conjuncts, ties=ties)


def _lifted(draft: Draft) -> Draft:
    expressions, row, constants = lift(draft.conjuncts)
    return draft._replace(expressions=expressions, row=row, constants=constants)


def _rendered(draft: Draft) -> Draft:
    return draft._replace(signature=render(draft.stream.name, draft.expressions))


STAGES: tuple[Callable[[Draft], Draft], ...] = (_normalized, _ordered, _lifted, _rendered)
"""What happens to a planned query, in order."""


def compile_draft(select: str, catalog: Catalog) -> Draft:
    """Return the query that a SELECT is, after all stages.

    Raises:
        InputError: With the code of contract §3 that says what is wrong with it.
    """
    try:
        bound = plan(select, catalog)
        draft = Draft(bound.stream, bound.where, bound.items)
        for stage in STAGES:
            draft = stage(draft)
    except RecursionError:
        raise too_large(f"it is nested deeper than {MAX_DEPTH} levels") from None
    return draft


def finish(draft: Draft) -> CompiledQuery:
    """Return a query's group, row and SELECT list, their ids made.

    Raises:
        InputError: ``unsupported-query``, for a text that would be too long.
    """
    stream = draft.stream
    group = group_id(stream.stream_id, draft.signature)
    items = tuple(SelectItem(item.name, settle(item.value)) for item in draft.items)
    computed = (*draft.expressions, *(item.expression for item in items))
    if grows(computed):
        check_growth(computed, draft.row)
    select_id = "s" + hashlib.blake2b(msgspec.json.encode(items), digest_size=12).hexdigest()
    return CompiledQuery(
        GroupPlan(group, stream.stream_id, draft.signature, draft.expressions), draft.row, SelectList(select_id, items)
    )


def compile_select(select: str, catalog: Catalog) -> CompiledQuery:
    """Compile a SELECT over one stream of the catalog.

    Raises:
        InputError: With the code of contract §3 that says what is wrong with it.

    Example:
        >>> from grouping.model.catalog import Stream, StreamColumn
        >>> columns = (StreamColumn("symbol", "STRING"), StreamColumn("price", "DOUBLE"))
        >>> quotes = Stream("s_1", "quotes", columns, "quotes", "json", {"0": 0}, "2026-11-21T00:00:00Z")
        >>> query = compile_select("SELECT * FROM quotes WHERE 100 > price AND symbol = 'INTC'", Catalog([quotes]))
        >>> query.plan.signature, query.row.values
        ('SELECT … FROM quotes WHERE symbol = :c0 AND price < :c1', ('INTC', 100.0))
    """
    return finish(compile_draft(select, catalog))
