"""Small tables that compare different columns are looked up together, and find the same as each by itself."""

from __future__ import annotations

import time
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.plan.group import GroupPlan
from grouping.store.constant_table import Entry
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.engine.match.evaluate import match
from tests.unit.matching.matching import Events, Store, apart, compare, destination, entry, found

_KINDS = {"a": ("INT", "BIGINT"), "b": ("BIGINT", "BIGINT"), "s": ("STRING", "STRING"), "t": ("STRING", "STRING")}
_SETS = [columns for size in (2, 3, 4) for columns in combinations(_KINDS, size)]
_NUMBERS, _TEXTS = st.one_of(st.integers(0, 2), st.none()), st.one_of(st.sampled_from(["", "x", "é"]), st.none())


def _values(column: str) -> st.SearchStrategy[object]:
    return _TEXTS if _KINDS[column][0] == "STRING" else _NUMBERS


def _tables(store: Store) -> ConstantTables:
    for number, columns in enumerate(_SETS):
        keys = [compare(column, "=", _KINDS[column][0], slot) for slot, column in enumerate(columns)]
        bound = compare("a", "<", "INT", len(columns))
        conjuncts = (*keys, bound) if number % 2 else tuple(keys)
        store.known_plans[f"g_{number}"] = GroupPlan(f"g_{number}", "s", "", conjuncts)
    return ConstantTables("s")


@st.composite
def _entry(draw: st.DrawFn) -> tuple[int, tuple[object, ...]]:
    number = draw(st.integers(0, len(_SETS) - 1))
    constants = [draw(_values(column)) for column in _SETS[number]]
    return number, (*constants, draw(_NUMBERS)) if number % 2 else tuple(constants)


def _made(name: int, drawn: tuple[int, tuple[object, ...]]) -> Entry:
    number, values = drawn
    types = [_KINDS[column][1] for column in _SETS[number]] + ["BIGINT"] * (number % 2)
    return entry(name, tuple(types), values, group=f"g_{number}")


@settings(max_examples=100, deadline=None)
@given(st.lists(_entry(), min_size=9, max_size=40), st.data())
def test_together_as_by_themselves(drawn: list[tuple[int, tuple[object, ...]]], data: st.DataObject) -> None:
    """Whichever columns tables compare, and whatever comes and goes, the mixed index changes nothing."""
    store = Store()
    tables = _tables(store)
    everywhere = [
        (number, (*("x" if _KINDS[column][0] == "STRING" else 1 for column in columns), *(2,) * (number % 2)))
        for number, columns in enumerate(_SETS)
    ]
    entries = [_made(name, each) for name, each in enumerate([*everywhere, *drawn])]
    cut = data.draw(st.integers(0, len(entries)))
    gone = data.draw(st.lists(st.integers(0, max(cut - 1, 0)), unique=True, max_size=cut))
    tables.at(store.commit((), entries[:cut]), store)
    tables.at(store.commit([destination(name) for name in gone], entries[cut:]), store)
    snapshot = tables.at(store.commit(), store)
    columns = {
        name: (kind, data.draw(st.lists(_values(name), min_size=5, max_size=5))) for name, (kind, _) in _KINDS.items()
    }
    together = found(match(snapshot, Events(columns)))
    assert together == found(match(apart(snapshot), Events(columns)))


def test_many_key_sets_are_few_look_ups() -> None:
    """2,000 tables of three of 50 columns cost a small batch less than 0.2 s; a look-up for each would take 0.5 s."""
    store, names = Store(), [f"c{number}" for number in range(50)]
    entries = []
    for number, columns in zip(range(2000), combinations(names, 3), strict=False):
        keys = tuple(compare(column, "=", "INT", slot) for slot, column in enumerate(columns))
        store.known_plans[f"g_{number}"] = GroupPlan(f"g_{number}", "s", "", keys)
        entries.append(entry(number, ("BIGINT",) * 3, (number % 7, number % 5, number % 3), group=f"g_{number}"))
    snapshot = ConstantTables("s").at(store.commit((), entries), store)
    assert len(snapshot.shared_indexes) == 1
    events = {name: ("INT", [number % 7 for number in range(50)]) for name in names}

    def seconds() -> float:
        began = time.process_time()
        match(snapshot, Events(events))
        return time.process_time() - began

    assert min(seconds() for _ in range(5)) < 0.2
