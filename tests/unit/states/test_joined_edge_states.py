"""Edges over joins that meet several rows, by several workers: BY has the table's key, so each row has a row before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.errors import InputError
from tests.unit.joins.join_queries import EVENTS, OWNER_ROWS, OWNERS, QUOTES, compiled, view_of
from tests.unit.matching.matching import Store, entry
from tests.unit.states.partition_workers import PARTITION, PartitionTopic, PartitionWorker, turns
from tests.unit.states.test_log_states import Result, results_of

Row = dict[str, Any]
_FROM = (
    "SELECT q.n FROM quotes q {} JOIN owners o ON q.symbol = o.symbol WHERE {} EMIT ON ENTER OR EXIT BY _key, o.owner"
)
_CONDITIONS = {
    "o.n > 0": lambda event, row: _above(row["n"], 0),
    "q.price > 0.6": lambda event, row: _above(event["price"], 0.6),
    "o.owner IS NULL": lambda event, row: row["owner"] is None,
    "q.n >= o.n": lambda event, row: None not in (event["n"], row["n"]) and event["n"] >= row["n"],
}


def _above(value: float | None, least: float) -> bool:
    return value is not None and value > least


def _joined(event: Row, owners: dict[tuple[str, str], Row], outer: bool) -> list[Row]:
    """Return the owners of an event's symbol in the order of their keys."""
    rows = [{"owner": key[0], **row} for key, row in sorted(owners.items()) if key[1] == event["symbol"]]
    return rows or ([{"owner": None, "n": None}] if outer else [])


@settings(max_examples=80, deadline=None)
@given(
    events=st.lists(EVENTS.filter(bool).map(lambda events: events[0]), min_size=1, max_size=16),
    tables=st.lists(OWNER_ROWS, min_size=10, max_size=10),
    turns=turns(10, 5, 3),
    condition=st.sampled_from(sorted(_CONDITIONS)),
    outer=st.booleans(),
)
def test_each_joined_row_is_an_event_of_its_key(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[Row],
    tables: list[dict[tuple[str, str], Row]],
    turns: list[tuple[int, int, int, str]],
    condition: str,
    outer: bool,
) -> None:
    """The edges are those of a fold over joined rows, in any worker, after replays, and while the table changes."""
    query = compiled(_FROM.format("LEFT" if outer else "", condition))
    topic, folder, clock = PartitionTopic(QUOTES, events, 1), tmp_path_factory.mktemp("states"), [0.0]
    workers = [PartitionWorker(topic, folder, clock) for _ in range(2)]
    store, found, expected = Store(), set[Result](), set[Result]()
    store.known_plans[query.plan.group_id] = query.plan
    types = tuple(map(str, query.row.types))
    about = {"group": query.plan.group_id, "edge": "both", "since": (0,) * (PARTITION + 1)}
    version = store.commit((), [entry(0, types, query.row.values, **about)])  # type: ignore[arg-type]
    inside: dict[str | None, bool] = {}
    at = 0
    for (count, turn, pieces, fate), owners in zip(turns, tables, strict=True):
        end = min(at + count, len(events))
        rows = [{"owner": owner, "symbol": symbol, **row} for (owner, symbol), row in owners.items()]
        views = {"t_2": view_of(OWNERS, rows)}
        if fate == "killed":
            workers[turn] = PartitionWorker(topic, folder, clock)
        if fate == "minute":
            clock[0] += 61
        if fate in ("stopped", "again"):
            workers[turn].run(store, version, at, end, pieces, complete=fate == "again", views=views)
        if fate == "elsewhere":
            workers[1 - turn].run(store, version, at, end, pieces, complete=False, views=views)
        made = results_of(workers[turn].run(store, version, at, end, pieces, complete=True, views=views))
        assert len(set(made)) == len(made)
        found.update(made)
        for place in range(at, end):
            for number, row in enumerate(_joined(events[place], owners, outer)):
                matches = bool(_CONDITIONS[condition](events[place], row))
                if matches != inside.get(row["owner"], False):
                    kind = "enter" if matches else "exit"
                    expected.add(("d_0", f"quotes/{PARTITION}/{place}/{number}", kind))
                inside[row["owner"]] = matches
        at = end
    assert {(name, kind) for _, name, kind in expected} == {(name, kind) for _, name, kind in found}


@pytest.mark.parametrize(
    ("join", "by", "hint"),
    [
        ("JOIN owners o ON q.symbol = o.symbol", "_key", "or name owners.owner in BY."),
        ("JOIN owners o ON q.symbol = o.symbol", "_key, q.symbol", "or name owners.owner in BY."),
        ("LEFT JOIN owners o ON q.symbol = o.symbol AND o.n > 1", "_key, o.owner", "by its whole PRIMARY KEY."),
    ],
)
def test_rows_of_one_key_are_refused(join: str, by: str, hint: str) -> None:
    """An event would have two rows of one key, or a row that is there for some constants alone."""
    with pytest.raises(InputError, match="several rows") as refused:
        compiled(f"SELECT q.n FROM quotes q {join} WHERE q.n > 1 EMIT ON ENTER BY {by}")
    assert str(refused.value.hint).endswith(hint)
