"""The path by templates accepts the same commands as the compiler, with the same results."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import msgspec
import pytest

from gateway.testing import Stream
from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.model.catalog import Catalog
from grouping.model.errors import InputError
from grouping.statements.cq_text import CqText
from tests.alerts import STREAMS, clauses
from tests.quotes import ASSETS, catalog

_CALLS = Path(__file__).parents[2] / "cases" / "functions" / "expected.jsonl"
_SHARE = 5
"""The share of the corpus that is tried: one call in this many."""


def _differences(columns: str, predicates: list[str]) -> list[str]:
    """Return the predicates of which the two ways make different things; each is prepared twice."""
    sources = Catalog([Stream(f"s ({columns})").declared])
    preparer, differ = Preparer(sources), []
    for predicate in predicates:
        select = f"SELECT * FROM s WHERE {predicate}"
        try:
            whole = compile_select(select, sources)
        except InputError:
            continue
        for _ in range(2):
            try:
                _, found = preparer.create(CqText.cut(f"CREATE CQ a AS {select}"))
            except InputError as error:
                differ.append(f"{predicate}: {error}")
                break
            if found != whole:
                differ.append(f"{predicate}: {found.row}, not {whole.row}")
    return differ


@pytest.mark.parametrize("field", STREAMS)
def test_clauses_of_alerts(field: str) -> None:
    """All of them, one after the other."""
    assert [] == _differences(STREAMS[field]["columns"], [text for name, text in clauses() if name == field])


def test_calls_of_functions() -> None:
    """Arguments that are read in ways of their own: patterns, groups, zones, units, formats."""
    calls = [json.loads(line)[0] for line in _CALLS.read_text("utf-8").splitlines()[::_SHARE]]
    assert [] == _differences("i INT", [f"({call}) IS NOT NULL" for call in calls])


@pytest.mark.parametrize("like", ["LIKE", "ILIKE"])
def test_an_escape_counts_in_each_pattern(like: str) -> None:
    """Texts of one template: in the first nothing is escaped."""
    patterns = ["abc%", "a!%c%", "A!!%", "abc%", "!_%"]
    assert [] == _differences("t STRING", [f"t {like} '{pattern}' ESCAPE '!'" for pattern in patterns])


def test_changes_of_a_table_by_its_template() -> None:
    """Texts over a table's changes are read by their template, until another table has the name."""
    sources, texts = catalog(ASSETS), [f"SELECT symbol FROM assets WHERE volume > {n} EMIT CHANGES" for n in range(3)]
    preparer = Preparer(sources)
    for again in (False, True):
        for select in texts:
            _, found = preparer.create(CqText.cut(f"CREATE CQ a AS {select}"))
            assert compile_select(select, sources) == found
            assert found.plan.stream_id == ("c_t_2" if again else "c_t_1")
        sources.add(msgspec.structs.replace(ASSETS, table_id="t_2"))


@pytest.mark.parametrize(
    "edge", ["EMIT ON ENTER BY d UNTIL room = '{}'", "EMIT ON EXIT BY d FOR '5 minutes' UNTIL n < {}"]
)
def test_conditions_of_until_are_of_the_text(edge: str) -> None:
    """Constants that are part of the computation are those of each text, and others are lifted."""
    sources = Catalog([Stream("s (d STRING, room STRING, n INT, PARTITION KEY (d))").declared])
    preparer = Preparer(sources)
    for key, room, end in itertools.product("pq", "uv", (3, 4)):
        select = f"SELECT d FROM s WHERE d = '{key}' AND room = '{room}' {edge.format(end)}"
        for _ in range(2):
            _, found = preparer.create(CqText.cut(f"CREATE CQ a AS {select}"))
            assert compile_select(select, sources) == found


@pytest.mark.parametrize(
    "select",
    [
        "SELECT d FROM (SELECT d, n, _offset FROM s WHERE d = '{0}' AND room = '{1}') AS v QUALIFY {2} > {3} {4}",
        "SELECT d, n FROM s WHERE d IN ('{0}', 'a') AND room = '{1}' AND n > {3} QUALIFY {2} > {3} {4}",
        "SELECT d FROM (SELECT d, n FROM s WHERE d = '{0}' AND room = '{1}') AS v WHERE n > {3} {4}",
    ],
)
def test_conditions_below_edges_are_of_the_text(select: str) -> None:
    """Constants of FROM, and of WHERE below frames, are those of each text, and others are lifted."""
    sources = Catalog([Stream("s (d STRING, room STRING, n INT, PARTITION KEY (d))").declared])
    preparer, window = Preparer(sources), "count(*) OVER (PARTITION BY d ORDER BY _offset ROWS 2 PRECEDING)"
    for key, room, over in itertools.product("pq", "uv", (3, 4)):
        text = select.format(key, room, window, over, "EMIT ON ENTER BY d")
        for _ in range(2):
            _, found = preparer.create(CqText.cut(f"CREATE CQ a AS {text}"))
            assert compile_select(text, sources) == found
