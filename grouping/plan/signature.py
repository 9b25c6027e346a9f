"""The signature of a plan: its text without the constants of queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grouping.model.expression import LEFT_ON, Call, Column, Expression, Value
from grouping.plan.columns_read import read_columns
from grouping.plan.computation import Computation
from grouping.plan.expression_text import HIDDEN, render_part, without_values
from grouping.plan.passing import PASSES
from grouping.plan.scan import Scan
from grouping.plan.stay import Stay
from grouping.plan.switch import SWITCH

__all__ = ["render", "render_before", "render_frames", "render_source", "render_until"]


def render(
    scan: Scan, computation: Computation | None, conjuncts: Iterable[Expression], stay: Stay | None = None
) -> str:
    """Return the signature of a plan with these conjuncts, which must be in canonical order.

    Example:
        >>> from grouping.model.catalog import Stream
        >>> from grouping.model.expression import Column, Slot
        >>> quotes = Scan(Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "2026-11-21T00:00:00Z"))
        >>> render(quotes, None, [Call("<", (Column("price", "DOUBLE"), Slot(0)), "BOOLEAN")])
        'SELECT … FROM quotes WHERE price < :c0'
    """
    frames = computation.frames if computation else None
    switch = computation and computation.switch
    key = {column.stored for column in frames.by} if frames else set()
    parts: list[tuple[Expression, Sequence[str]]] = []
    qualify: list[tuple[Expression, Sequence[str]]] = []
    lifted = {}
    for conjunct in conjuncts:
        match conjunct:
            case Call(op, (Value(prefix), condition)) if op == LEFT_ON:
                lifted[str(prefix)] = condition
            case Call(_, (Column() as column, _)) if switch and column == SWITCH:
                (qualify if frames else parts).extend((each, HIDDEN) for each in switch.conditions)
            case Call(_, (Column() as column, _)) if column == PASSES:
                pass  # `node.conditions` has the conditions of this column
            case _ if frames and not read_columns(conjunct) <= key:
                qualify.append((conjunct, ()))
            case _:
                parts.append((conjunct, ()))
    node, timed = computation and (computation.frames or computation.timed), computation and computation.timed
    parts += [(each, HIDDEN) for each in node.conditions] if node else []
    if frames and timed:
        qualify += [(each, HIDDEN) for each in timed.conditions]
    text = f"SELECT … FROM {render_source(scan, computation, lifted)}"
    text += f" WHERE {_conjunction(parts)}" if parts else ""
    if frames is not None:
        text += frames.key + (f" QUALIFY {_conjunction(qualify)}" if qualify else "")
    return text + render_before(computation) + ("" if stay is None else f" UNTIL {render_until(stay, computation)}")


def render_until(stay: Stay, computation: Computation | None) -> str:
    """Return the condition of UNTIL as the text for a signature."""
    switch = computation and computation.switch
    return switch.until if switch else render_part(stay.end.conjunct)


def _clause(word: str, conditions: Sequence[Expression]) -> str:
    """Return a clause of conditions without their constants; empty without conditions."""
    return f" {word} {_conjunction([(each, HIDDEN) for each in conditions])}" if conditions else ""


def _conjunction(parts: Sequence[tuple[Expression, Sequence[str]]]) -> str:
    """Return conditions joined by AND, each with texts for its constants, as `render_part` takes them."""
    texts = [(render_part(*part), isinstance(part[0], Call) and part[0].op in ("and", "or")) for part in parts]
    return " AND ".join(f"({text})" if enclosed and len(parts) > 1 else text for text, enclosed in texts)


def render_before(computation: Computation | None) -> str:
    """Return the clause EMIT of a signature; empty without EMIT."""
    node = computation and (computation.before or computation.timed)
    return node.signature if node else ""


def render_frames(computation: Computation | None) -> str:
    """Return the part of a signature that a computation decides: its conditions of WHERE, and the key of its frames."""
    if computation is None:
        return ""
    node, frames = computation.switch or computation.timed, computation.frames
    own = _clause("WHERE" if frames is None else "QUALIFY", node.conditions) if node else ""
    return own if frames is None else _clause("WHERE", frames.conditions) + frames.key + own


def render_source(scan: Scan, computation: Computation | None, lifted: Mapping[str, Expression] | None = None) -> str:
    """Return the text after FROM: the stream, and the nodes above it.

    Args:
        scan: The stream.
        computation: The nodes above the stream; None if there are none.
        lifted: Prefix → the condition of ON with constants, which a group decides.
    """
    nodes = computation.nodes if computation else ()
    text = scan.signature + "".join(node.signature(lifted or {}) for node in nodes)
    if computation is None or not computation.of_from:
        return text
    conditions = [(without_values(each), HIDDEN) for each in computation.of_from]
    return f"(SELECT … FROM {text} WHERE {_conjunction(conditions)})"
