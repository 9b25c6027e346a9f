"""The tree of EXPLAIN: the group, the computation and the sources of a query, and the number of CQs that share each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from grouping.access.access_path import AccessPath
from grouping.model.catalog import Stream
from grouping.model.expression import Expression, Slot, walk
from grouping.model.wording import counted
from grouping.plan.computation import Computation
from grouping.plan.expression_text import render_part
from grouping.plan.frames import Frames
from grouping.plan.group import GroupPlan
from grouping.plan.lasting import LastingMatches
from grouping.plan.passing import PASSING
from grouping.plan.row_before import RowBefore
from grouping.plan.silence import SilentKeys

__all__ = ["SourceUse", "Use", "plan_tree", "tree_lines"]

_LONGEST_PART = 200
"""The largest number of characters of a conjunct that are shown with each of its slots. With this limit, the size of
EXPLAIN grows linearly with the query.
"""
_SLOT_TEXT = re.compile(r":c([0-9]+)")


class SourceUse(NamedTuple):
    """A table that queries join."""

    name: str
    cqs: int
    rows: int | None = None
    """The number of rows; None if no worker holds the table."""


@dataclass(frozen=True, slots=True)
class Use:
    """The number of live CQs that use each part of a query. The explained query itself need not be a live CQ."""

    group: int = 0
    computation: int = 0
    computation_groups: int = 0
    stream: int = 0
    tables: Mapping[str, SourceUse] = field(default_factory=dict)
    """The tables of the query, by their ids."""


def plan_tree(plan: GroupPlan, stream: Stream, path: AccessPath, use: Use) -> dict[str, Any]:
    """Return the tree, with the group at its root and the sources at its leaves.

    Args:
        plan: The plan to explain.
        stream: The stream of the plan.
        path: The access path of the group.
        use: The numbers of CQs that use the parts of the plan.
    """
    source: dict[str, Any] = {**_source(plan, stream), "cqs": use.stream}
    return {
        "node": "group",
        "group": plan.group_id,
        "index": path.kind,
        "cqs": use.group,
        "constants": [
            {"slot": f"c{slot}", "in": text, "decided_by": place} for slot, text, place in sorted(_places(plan, path))
        ],
        "inputs": [_computation(plan.computation, source, use) if plan.computation else source],
    }


def _source(plan: GroupPlan, stream: Stream) -> dict[str, Any]:
    if not stream.changes_of:
        return {"node": "stream", "stream": stream.name}
    return {"node": "rows" if plan.computation is None else "changes", "table": stream.name}


def _places(plan: GroupPlan, path: AccessPath) -> Iterator[tuple[int, str, str]]:
    """Yield each slot, the text of its conjunct (of a long text, the part around the slot), and what decides it."""
    placed = [(conjunct, "index" if at in path.keys else "residual") for at, conjunct in enumerate(plan.conjuncts)]
    placed += [(conjunct, "having") for conjunct in (plan.kept.having if plan.kept else ())]
    placed += [(plan.stay.end.conjunct, "until")] if plan.stay else []
    for conjunct, place in placed:
        text = render_part(conjunct)
        for slot, at in _slots(conjunct, text).items():
            yield slot, _around(text, at), place


def _slots(conjunct: Expression, text: str) -> dict[int, int]:
    """Return the slots of a conjunct, each with the place of its first occurrence in the conjunct's text."""
    places: dict[int, int] = {}
    for found in _SLOT_TEXT.finditer(text):
        places.setdefault(int(found[1]), found.start())
    return {each.index: places.get(each.index, 0) for each in walk(conjunct) if isinstance(each, Slot)}


def _around(text: str, at: int) -> str:
    """Return a short text unchanged, and the part of a long text around a place, with ``…`` for the omitted ends."""
    if len(text) <= _LONGEST_PART:
        return text
    first = max(0, min(at - _LONGEST_PART // 2, len(text) - _LONGEST_PART))
    last = first + _LONGEST_PART
    return "…" * (first > 0) + text[first:last] + "…" * (last < len(text))


def _computation(computation: Computation, source: dict[str, Any], use: Use) -> dict[str, Any]:
    return {
        "node": "computation",
        "computation": computation.computation_id,
        "rows_per_event": "one" if computation.single else "several",
        **_nodes(computation),
        "groups": use.computation_groups,
        "cqs": use.computation,
        "inputs": [source, *_tables(computation, use)],
    }


def _nodes(computation: Computation) -> dict[str, Any]:
    """Return the keys of the nodes above all joins, and the conditions that these nodes decide."""
    found: dict[str, Any] = {}
    constants: dict[str, dict[str, str]] = {}
    for described in (
        _edges(computation.before) if computation.before else {},
        _silence(computation.silence) if computation.silence else {},
        _lasting(computation.lasting) if computation.lasting else {},
        _frames(computation.frames) if computation.frames else {},
    ):
        for each in described.get("constants", ()):
            constants.setdefault(each["in"], each)
        found |= described
    return {**found, "constants": list(constants.values())} if "constants" in found else found


def _edges(before: RowBefore) -> dict[str, Any]:
    """Return the key of edges, and the conditions of FROM, WHERE and UNTIL that the computation decides."""
    by, decided = list(map(render_part, before.by)), _decided(before.expressions[len(before.by) :], "edges")
    return {"row_before_by": by, **({"constants": decided} if decided else {})}


def _frames(frames: Frames) -> dict[str, Any]:
    """Return the key of frames, and the conditions of WHERE that select the frames' rows."""
    return {"frames_by": list(map(render_part, frames.by)), "constants": _decided(frames.where, "frames")}


def _silence(silence: SilentKeys) -> dict[str, Any]:
    """Return the key and the interval of silences, and the conditions of WHERE that select the rows."""
    constants, by = _decided(silence.where, "silences"), list(map(render_part, silence.by))
    return {"silent_by": by, "silent_milliseconds": silence.milliseconds, "constants": constants}


def _lasting(lasting: LastingMatches) -> dict[str, Any]:
    """Return the key and the interval of stays, and the conditions that the computation decides."""
    conditions = (*(lasting.where if lasting.switch is None else lasting.switch.expressions), *lasting.of_from)
    constants, by = _decided(conditions, "stays"), list(map(render_part, lasting.by))
    return {"lasting_by": by, "lasting_milliseconds": lasting.milliseconds, "constants": constants}


def _decided(conditions: Iterable[Expression], by: str) -> list[dict[str, str]]:
    """Return the constants of conditions that a computation decides; they have no slots."""
    return [{"in": render_part(condition), "decided_by": by} for condition in conditions if condition != PASSING]


def _tables(computation: Computation, use: Use) -> Iterator[dict[str, Any]]:
    for node in computation.nodes:
        table = use.tables.get(node.table_id, SourceUse(node.prefix, 0))
        yield {
            "node": "table",
            "table": table.name,
            "join": "left" if node.outer else "inner",
            "on": node.condition,
            "cqs": table.cqs,
            "rows": table.rows,
            "constants": [{"in": text, "decided_by": place} for text, place in node.literals()],
        }


def tree_lines(node: dict[str, Any], depth: int = 0) -> list[str]:
    """Return a tree as text; inputs are indented below their node."""
    lines = [_line(node)]
    for constant in node.get("constants", ()):
        name = f":{constant['slot']}" if "slot" in constant else "a constant"
        lines.append(f"  {name} by the {constant['decided_by']}: {constant['in']}")
    lines = ["  " * depth + line for line in lines]
    return lines + [line for each in node.get("inputs", ()) for line in tree_lines(each, depth + 1)]


def _line(node: dict[str, Any]) -> str:
    cqs = counted(node["cqs"], "CQ")
    match node["node"]:
        case "group":
            return f"group {node['group']} ({cqs}): {node['index']}"
        case "computation":
            groups = counted(node["groups"], "group")
            rows = "one row" if node["rows_per_event"] == "one" else "several rows"
            before = f", with the row before it by {', '.join(by)}" if (by := node.get("row_before_by")) else ""
            frames = f", with frames by {', '.join(by)}" if (by := node.get("frames_by")) else ""
            if by := node.get("silent_by"):
                interval = timedelta(milliseconds=node["silent_milliseconds"])
                rows = f"the latest row of each {', '.join(by)} that is silent for {interval}"
                return f"computation {node['computation']} ({cqs} in {groups}): {rows}{frames}"
            if by := node.get("lasting_by"):
                interval = timedelta(milliseconds=node["lasting_milliseconds"])
                rows = (
                    f"for each {', '.join(by)}, the rows with which it enters and stays in for {interval}, "
                    "and leaves after that"
                )
                return f"computation {node['computation']} ({cqs} in {groups}): {rows}{frames}"
            return f"computation {node['computation']} ({cqs} in {groups}): {rows} per event{before}{frames}"
        case "table":
            rows = "" if node["rows"] is None else f", {counted(node['rows'], 'row')}"
            return f"{node['join']} join with table {node['table']} ({cqs}{rows}) on {node['on']}"
        case "rows":
            return f"rows of table {node['table']} at each tick ({cqs} over the table)"
        case "changes":
            return f"changes of table {node['table']} ({cqs})"
        case _:
            return f"stream {node['stream']} ({cqs})"
