"""Every way to look a group up finds the same matches, ORs by several indexes among them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.access.access_path import access_paths, choose_index
from grouping.model.expression import Call, Expression
from spark_jobs.engine.match.evaluate import match
from tests.unit.matching.matching import (
    Events,
    apart,
    compare,
    destination,
    entry,
    found,
    holds,
    looked_up_by,
    snapshot,
)

_OPS = st.sampled_from(["=", "=", "<", "<=", ">", ">=", "<>"])
_COLUMNS = {"a": "INT", "b": "BIGINT", "c": "DOUBLE"}
_LEAVES = st.tuples(st.sampled_from(sorted(_COLUMNS)), _OPS)
_BRANCHES = st.lists(_LEAVES, min_size=1, max_size=3)
_CONJUNCTS = st.lists(st.lists(_BRANCHES, min_size=1, max_size=3), min_size=1, max_size=3)
"""Conjuncts, each an OR of ANDs of comparisons; a single branch with one comparison is just the comparison."""
_NUMBERS = st.one_of(st.integers(-1, 3), st.none())


def _joined(op: str, parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Call(op, tuple(parts), "BOOLEAN")


def _typed(kind: str, value: int | None) -> float | int | None:
    return float(value) if kind == "DOUBLE" and value is not None else value


@settings(max_examples=120, deadline=None)
@given(_CONJUNCTS, st.data())
def test_every_path_equals_brute_force(shape: list, data: st.DataObject) -> None:
    """With any index, single or one per branch of an OR, an event meets exactly the rows whose predicate is TRUE."""
    leaves = [leaf for conjunct in shape for branch in conjunct for leaf in branch]
    slots = iter(range(len(leaves)))
    plan = [
        part
        for conjunct in shape
        for part in _split(
            _joined(
                "or",
                [_joined("and", [compare(c, op, _COLUMNS[c], next(slots)) for c, op in branch]) for branch in conjunct],
            )
        )
    ]
    types = tuple("DOUBLE" if column == "c" else "BIGINT" for column, _ in leaves)
    rows = data.draw(st.lists(st.tuples(*[_NUMBERS] * len(leaves)), min_size=1, max_size=8))
    rows = [tuple(_typed(kind, value) for kind, value in zip(types, row, strict=True)) for row in rows]
    values = {name: data.draw(st.lists(_NUMBERS, min_size=4, max_size=4)) for name in _COLUMNS}
    events = {name: (kind, [_typed(kind, value) for value in values[name]]) for name, kind in _COLUMNS.items()}
    expected = sorted(
        (event, destination(number))
        for event in range(4)
        for number, row in enumerate(rows)
        if _true(shape, {name: column[event] for name, (_, column) in events.items()}, iter(row))
    )
    base = snapshot(plan, [entry(number, types, row) for number, row in enumerate(rows)])
    virtual = snapshot(plan, [entry(number, types, row, mode="virtual") for number, row in enumerate(rows)])
    for path in access_paths(plan):
        assert expected == found(match(looked_up_by(base, path), Events(events))), path
        assert expected == found(match(apart(looked_up_by(base, path)), Events(events))), path
        assert sorted({event for event, _ in expected}) == sorted(
            match(looked_up_by(virtual, path), Events(events)).event
        )


def _split(conjunct: Expression) -> tuple[Expression, ...]:
    """Return the conjuncts of an AND: a plan has none at the top."""
    return conjunct.args if isinstance(conjunct, Call) and conjunct.op == "and" else (conjunct,)


def _true(shape: list, event: dict[str, object], constants: object) -> bool:
    """Tell whether the predicate is TRUE; every comparison takes the next constant, whatever came out before it."""
    outcome = True
    for conjunct in shape:
        branches = [[holds(op, event[column], next(constants)) for column, op in branch] for branch in conjunct]  # type: ignore[call-overload]
        outcome &= any(all(branch) for branch in branches)
    return outcome


def test_an_or_of_keys_is_a_union() -> None:
    """An OR of comparisons of several columns is looked up branch by branch, and then not checked again."""
    either = Call("or", (compare("a", "=", "INT", 0), compare("b", "=", "BIGINT", 1)), "BOOLEAN")
    path = choose_index([either])
    assert ("union", (), 0) == (path.kind, path.residual, path.union_of)
    assert ["hash", "hash"] == [branch.kind for branch in path.branches]


def test_the_cost_decides_among_paths() -> None:
    """With expected candidates the path that leaves fewest is chosen, whatever its shape."""
    plan = [compare("a", ">", "INT", 0), compare("b", ">", "BIGINT", 1)]
    assert 0 == choose_index(plan).lower
    assert 1 == choose_index(plan, lambda path: 5.0 if path.lower == 1 else 50.0).lower
