"""Renames the columns of keys and aggregates.

The name of such a column is the text of its expression; the new name has slots in place of the constants.

HAVING and the signature use these names, so queries that differ only in constants share a plan. The constants stay in
the keys and aggregates of the SELECT list, because queries with different constants need different partial aggregates
and stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from grouping.binding.bound import Constant
from grouping.compiler.aggregate_texts import in_parentheses
from grouping.compiler.plan import BoundAggregation
from grouping.model.expression import Call, Column, Computed, Expression, Slot, Value, stored_reference, walk
from grouping.plan.aggregate import AggregateValue
from grouping.plan.expression_text import AGGREGATE, render_part
from grouping.plan.group import SelectItem

__all__ = ["named_without_constants"]


def named_without_constants(
    aggregation: BoundAggregation,
    keys: Sequence[Expression],
    having: Sequence[Expression],
    select: Sequence[SelectItem],
    constants: Sequence[Constant],
) -> tuple[BoundAggregation, tuple[Expression, ...], tuple[SelectItem, ...]]:
    """Return the aggregation, HAVING and the SELECT list with renamed columns.

    Args:
        aggregation: GROUP BY and the aggregate functions of the query.
        keys: The keys of GROUP BY, with slots in place of constants.
        having: The conjuncts of HAVING, with slots in place of constants.
        select: The SELECT list.
        constants: The lifted constants, by slot.
    """
    names = {
        key.stored: stored_reference(Computed(in_parentheses(lifted)))
        for key, lifted in zip(aggregation.keys, keys, strict=True)
        if any(isinstance(node, Slot) for node in walk(lifted))
    }
    found: dict[str, AggregateValue] = {}
    kept = tuple(_named(conjunct, names, aggregation, constants, found) for conjunct in having)
    own_keys = tuple(msgspec.structs.replace(key, stored=names.get(key.stored, key.stored)) for key in aggregation.keys)
    aggregates = (
        *aggregation.aggregates[: aggregation.kept],
        *found.values(),
        *aggregation.aggregates[aggregation.kept :],
    )
    items = tuple(SelectItem(item.name, _named(item.expression, names)) for item in select)
    count = aggregation.kept + len(found)
    return aggregation._replace(keys=own_keys, aggregates=aggregates, kept=count), kept, items


def _named(
    expression: Expression,
    names: Mapping[str, str],
    aggregation: BoundAggregation | None = None,
    constants: Sequence[Constant] = (),
    found: dict[str, AggregateValue] | None = None,
) -> Expression:
    match expression:
        case Column(stored, kind) if stored in names:
            return Column(names[stored], str(kind))
        case Call(op, args, kind) if op == AGGREGATE and aggregation is not None and found is not None:
            text, *slots = args
            assert isinstance(text, Value), "the first argument is the aggregate's text"
            own = [constants[slot.index] for slot in slots if isinstance(slot, Slot)]
            aggregate = aggregation.lifted[str(text.value), tuple((each.type, each.value) for each in own)]
            name = stored_reference(Computed(render_part(expression)))
            found[name] = msgspec.structs.replace(aggregate, stored=name)
            return Column(name, str(kind))
        case Call(op, args, kind):
            return Call(op, tuple(_named(each, names, aggregation, constants, found) for each in args), str(kind))
    return expression
