"""The tree after each stage of the compiler as text, for EXPLAIN STAGES and for the test cases of each stage.

AND, OR and each of their operands have a line of their own. A constant is written as in SQL with its type before it
(``DATE '2026-11-21'``), except for texts, TRUE and FALSE, which need no type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from grouping.binding.bound import Bound, Constant, Term
from grouping.compiler.draft import Draft
from grouping.model.expression import Call, Column, Expression, Slot, Value
from grouping.model.group import ConstantRow, ConstantValue
from grouping.model.sql_type import BOOLEAN, STRING, SqlType
from grouping.plan.aggregate import render_aggregate
from grouping.plan.expression_text import render_name, render_part, shape
from grouping.plan.frames import Frames
from grouping.plan.lasting import LastingMatches
from grouping.plan.passing import PASSING
from grouping.plan.scan import Scan
from grouping.plan.signature import render_before, render_source
from grouping.plan.silence import SilentKeys
from grouping.plan.switch import SWITCH_STAY

__all__ = [
    "constant_text",
    "lifted_text",
    "normalized_text",
    "ordered_text",
    "planned_text",
    "rendered_text",
    "value_text",
]

_INDENT = "  "
_MOST_CHARACTERS = 50_000
"""The largest number of characters of a tree, since the trees of all stages must fit into one reply."""
_MOST_MEMBERS = _MOST_CHARACTERS // len("1, ") + 1
"""The largest number of values after IN that are written, since more values would exceed `_MOST_CHARACTERS`."""


def planned_text(draft: Draft) -> str:
    """Return the tree after `plan`: names are resolved, and constants are typed by the other operands."""
    where = [] if draft.where is None else ["WHERE", *_indented(_tree(draft.where))]
    source = render_source(Scan(draft.stream), draft.computation)
    shown = f"{draft.edge} with snapshot" if draft.snapshot else draft.edge
    edges = [f"{render_before(draft.computation).strip()} ({shown})"] if draft.edge else []
    switch = draft.computation.switch if draft.computation else None
    edges += _until(draft.until if switch is None else switch.leaves)
    nodes = (draft.computation.frames, draft.computation.timed) if draft.computation else ()
    framed = [line for node in nodes for line in _planned_frames(node)]
    if switch is not None and (enters := [render_part(each) for each in switch.enters if each != PASSING]):
        framed += ["WHERE below the edges", *_indented(enters)]
    return _text([f"FROM {source}", *framed, *where, *edges, *_planned_aggregation(draft), *_items(draft.items)])


def _planned_frames(node: Frames | SilentKeys | LastingMatches | None) -> list[str]:
    """Return the conditions of WHERE below frames, silences or stays, and the key of frames."""
    if node is None:
        return []
    below = "frames" if isinstance(node, Frames) else "silences" if isinstance(node, SilentKeys) else "stays"
    conditions = [render_part(each) for each in node.where if each != PASSING]
    where = [f"WHERE below the {below}", *_indented(conditions)] if conditions else []
    return [*where, node.key.strip()] if isinstance(node, Frames) else where


def normalized_text(draft: Draft) -> str:
    """Return the tree after `normalize`: conjuncts in normal form."""
    computed = _computed((item.name, item.value) for item in draft.items)
    return _text([*_conjuncts(draft.conjuncts), *_until(draft.until), *_having(draft, draft.having), *computed])


def ordered_text(draft: Draft) -> str:
    """Return the conjuncts after `order`, and whether constants decided their order."""
    conditions = [*_conjuncts(draft.conjuncts), *_until(draft.until), *_having(draft, draft.having)]
    return _text([*conditions, *(["their constants decided the order"] if draft.ties else [])])


def lifted_text(draft: Draft) -> str:
    """Return the tree after `lift`: conjuncts over slots, the row of constants, and the SELECT list."""
    computed = _computed((item.name, item.expression) for item in draft.select)
    until = () if draft.stay is None or draft.stay == SWITCH_STAY else _until([draft.stay.end.conjunct])
    where = _conjuncts(each for each in draft.expressions if each not in (SWITCH_STAY.begin.conjunct, PASSING))
    return _text([*where, *until, *_having(draft, draft.kept), *_row(draft.row), *computed])


def rendered_text(draft: Draft) -> str:
    """Return the text after `render`: the signature, and the row of constants."""
    return _text([draft.signature, *_row(draft.row)])


def constant_text(sql_type: SqlType, value: ConstantValue) -> str:
    """Return a constant with its type.

    Example:
        >>> constant_text(STRING, "it's"), constant_text(SqlType.of("BIGINT"), None)
        ("'it''s'", 'BIGINT NULL')
    """
    if isinstance(value, str | bool) and sql_type in (STRING, BOOLEAN):
        return value_text(value)
    return f"{sql_type} {value_text(value)}"


def value_text(value: ConstantValue) -> str:
    """Return a value as SQL writes it.

    Example:
        >>> value_text("it's"), value_text((1, None)), value_text(True)
        ("'it''s'", '(1, NULL)', 'TRUE')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case tuple():
            return f"({', '.join(map(value_text, value))})"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case date():
            return f"'{value.isoformat().replace('+00:00', 'Z')}'"
    return str(value)


def _text(lines: Iterable[str]) -> str:
    """Return lines as one text, truncated to `_MOST_CHARACTERS`."""
    text = "\n".join(lines)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (_INDENT + line for line in lines)


def _items(items: Iterable[tuple[str, Bound | Expression]]) -> Iterator[str]:
    """Yield the lines of a SELECT list; nothing for an empty list."""
    for number, (name, value) in enumerate(items):
        if not number:
            yield "SELECT"
        sql_type = "" if isinstance(value, Slot) else value.type
        yield f"{_INDENT}{render_name(name)} {sql_type}: {_line(value)}"


def _computed(items: Iterable[tuple[str, Bound | Expression]]) -> Iterator[str]:
    """Yield the items of a SELECT list that stages after `plan` have changed: all but plain columns."""
    return _items((name, value) for name, value in items if not isinstance(value, Column))


def _conjuncts(conjuncts: Iterable[Bound | Expression]) -> Iterator[str]:
    """Yield conjuncts one below the other."""
    lines = [line for conjunct in conjuncts for line in _indented(_tree(conjunct))]
    yield "WHERE all of" if lines else "no WHERE"
    yield from lines


def _until(conjuncts: Iterable[Bound | Expression]) -> Iterator[str]:
    """Yield the conjuncts of UNTIL one below the other; nothing without UNTIL."""
    lines = [line for conjunct in conjuncts for line in _indented(_tree(conjunct))]
    if lines:
        yield "UNTIL all of"
        yield from lines


def _planned_aggregation(draft: Draft) -> Iterator[str]:
    """Yield the keys of GROUP BY and the condition of HAVING; nothing for a query without aggregates."""
    if draft.aggregation is None:
        return
    keys = (key.expression for key in draft.aggregation.keys)
    yield render_aggregate(keys, ()).strip() or "GROUP BY nothing"
    if draft.aggregation.having is not None:
        yield "HAVING"
        yield from _indented(_tree(draft.aggregation.having))


def _having(draft: Draft, conjuncts: Iterable[Bound | Expression]) -> Iterator[str]:
    if draft.aggregation is not None and draft.aggregation.having is not None:
        yield "HAVING all of"
        yield from (line for conjunct in conjuncts for line in _indented(_tree(conjunct)))


def _row(row: ConstantRow) -> Iterator[str]:
    for slot, (sql_type, value) in enumerate(zip(row.types, row.values, strict=True)):
        yield f":c{slot} is {constant_text(sql_type, _shown(value))}"


def _shown(value: ConstantValue) -> ConstantValue:
    return value[:_MOST_MEMBERS] if isinstance(value, tuple) else value


def _tree(node: Bound | Expression) -> Iterator[str]:
    """Yield the lines of a predicate, with AND, OR and NOT above their operands."""
    if isinstance(node, Term | Call) and (node.op in ("and", "or") or (node.op == "not" and _is_logic(node.args[0]))):
        yield node.op.upper()
        for argument in node.args:
            yield from _indented(_tree(argument))
    else:
        yield _line(node)


def _is_logic(node: Bound | Expression) -> bool:
    return isinstance(node, Term | Call) and node.op in ("and", "or", "not")


def _is_set(node: Bound | Expression) -> bool:
    """Tell whether the right side of IN is a single set."""
    return isinstance(node, Slot) or (isinstance(node, Constant) and isinstance(node.value, tuple))


def _line(node: Bound | Expression) -> str:
    """Return a part as SQL on one line."""
    match node:
        case Constant(value) | Value(value):
            return constant_text(node.type, _shown(value))
        case Term(op, args) | Call(op, args):
            if op == "in" and not _is_set(args[1]):
                return f"{_line(args[0])} IN ({', '.join(map(_line, args[1:_MOST_MEMBERS]))})"
            inner = [argument.op if isinstance(argument, Term | Call) else "" for argument in args]
            return shape(op, [_line(argument) for argument in args], inner, str(node.type))
        case Column() | Slot():
            return render_part(node)
