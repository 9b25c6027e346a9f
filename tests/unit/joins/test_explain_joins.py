"""EXPLAIN of queries over joins."""

from __future__ import annotations

import re
from typing import Any

import pytest

from grouping.access.explain import explain
from grouping.access.explain_tree import SourceUse, Use
from grouping.compiler.compiler import compile_select
from tests.unit.joins.join_queries import CATALOG, OWNERS, PROFILES, QUOTES


def test_explain_is_a_tree() -> None:
    """From the group over the computation to the sources: where each constant is decided, and who else uses it."""
    select = """SELECT q.symbol FROM quotes q JOIN profiles p ON q.symbol = p.symbol AND p.staff > 5
        LEFT JOIN owners o ON o.symbol = p.symbol AND o.n > q.n
        WHERE p.industry = 'a' AND price < 3 AND q.symbol LIKE '%b'"""
    query = compile_select(select, CATALOG)
    computation = query.plan.computation
    assert computation is not None
    tables = {PROFILES.table_id: SourceUse("profiles", 9, 40), OWNERS.table_id: SourceUse("owners", 8)}
    explained = explain(query, QUOTES, use=Use(group=2, computation=5, computation_groups=3, stream=7, tables=tables))
    root = explained["plan"]["tree"]
    assert ("group", 2, ["index", "residual", "index", "residual"]) == (
        root["node"], root["cqs"], [each["decided_by"] for each in root["constants"]],
    )  # fmt: skip
    lines = explained["text"].splitlines()
    assert lines[lines.index(f"group {query.plan.group_id} (2 CQs): composite") + 1 :] == [
        "  :c0 by the index: profiles.industry = :c0",
        "  :c1 by the residual: price < :c1",
        "  :c2 by the index: profiles.staff > :c2",
        "  :c3 by the residual: symbol LIKE :c3",
        f"  computation {computation.computation_id} (5 CQs in 3 groups): several rows per event",
        "    stream quotes (7 CQs)",
        "    inner join with table profiles (9 CQs, 40 rows) on symbol = profiles.symbol",
        "    left join with table owners (8 CQs) on profiles.symbol = owners.symbol AND n < owners.n",
    ]


_OWNED = "SELECT q.symbol FROM quotes q {} owners o ON o.symbol = q.symbol AND {} WHERE price < 3"


@pytest.mark.parametrize(
    ("select", "lifted", "kept"),
    [
        (_OWNED.format("JOIN", "o.n > 5"), ["owners.n > :c"], []),
        (_OWNED.format("JOIN", "o.owner = concat(q.symbol, '-x')"), ["concat(symbol, :c) = owners.owner"], []),
        (_OWNED.format("LEFT JOIN", "o.n > 5"), ["owners.n > :c in ON of owners"], []),
        (
            _OWNED.format("LEFT JOIN", "o.n = q.n + 1 AND o.owner > 'a'"),
            ["owners.owner > :c AND (n + :c) = owners.n in ON of owners"],
            [],
        ),
        (
            "SELECT q.symbol FROM quotes q JOIN profiles p ON p.symbol = concat(q.symbol, '-x') AND p.staff > 5"
            " WHERE price < 3",
            ["profiles.staff > :c"],
            [("concat(symbol, '-x') = profiles.symbol", "look-up")],
        ),
    ],
)
def test_where_each_constant_of_on_went(select: str, lifted: list[str], kept: list[tuple[str, str]]) -> None:
    """The constant is lifted, and decided in the group, unless the join needs it to look rows up."""
    query = compile_select(select, CATALOG)
    lines = explain(query, QUOTES, use=Use())
    root: dict[str, Any] = lines["plan"]["tree"]
    table = root["inputs"][0]["inputs"][1]
    assert {re.sub(r":c\d", ":c", each["in"]) for each in root["constants"]} == {"price < :c", *lifted}
    assert [(each["in"], each["decided_by"]) for each in table["constants"]] == kept
    assert lines["text"].splitlines()[-len(kept) - 1 :][1:] == [
        f"      a constant by the {place}: {text}" for text, place in kept
    ]
