"""Digests of groups, tick by tick, as the contract of ticks, START, EXPIRE, OVER LAST and EVEN IF EMPTY has them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import msgspec
import pytest

from gateway.testing import InputError, Record, Stream, digests
from gateway.testing.query import checked

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_STREAM = Stream("t (k STRING, v INT)")
_VALUES = {1: {"k": "a", "v": 1}, 2: {"k": "b", "v": 5}, 7: {"k": "a", "v": 2}, 31: {"k": "c", "v": 9}}
_ROWS = [Record(row, time=_AT + timedelta(seconds=second)) for second, row in _VALUES.items()]
_ALL = "SELECT count(*) AS n, max(v) AS m FROM t"
_SUMS = "SELECT k, sum(v) AS s FROM t GROUP BY k"


def _shown(query: str) -> list[tuple[float, float, int, list[tuple[Any, ...]]]]:
    """Return the digests: begin and tick in seconds since acceptance, count, and the values of the rows."""
    found = digests(query, _STREAM, _ROWS, accepted_at=_AT)
    seconds = [
        [(datetime.fromisoformat(each[name]) - _AT).total_seconds() for name in ("from", "to")] for each in found
    ]
    return [
        (begin, tick, each["count"], [tuple(row.values()) for row in each["rows"]])
        for (begin, tick), each in zip(seconds, found, strict=True)
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"{_ALL} EVERY '5 seconds'", [(0, 5, 2, [(2, 5)]), (5, 10, 1, [(1, 2)]), (30, 35, 1, [(1, 9)])]),
        (
            f"{_ALL} EVERY '10 seconds' DO PUBLISH EVEN IF EMPTY",
            [(0, 10, 3, [(3, 5)]), (10, 20, 0, [(0, None)]), (20, 30, 0, [(0, None)]), (30, 40, 1, [(1, 9)])],
        ),
        (
            f"{_ALL} HAVING count(*) > 1 EVERY '20 seconds' DO PUBLISH EVEN IF EMPTY",
            [(0, 20, 3, [(3, 5)]), (20, 40, 1, [])],
        ),
        (f"{_SUMS} HAVING sum(v) > 5 EVERY '20 seconds'", [(20, 40, 1, [("c", 9)])]),
        (f"{_SUMS} EVERY '1 minute' DO PUBLISH DIGEST TOP 2 BY s", [(0, 60, 4, [("c", 9), ("b", 5)])]),
        (
            f"{_SUMS} EVERY '5 seconds' OVER LAST '15 seconds'",
            [
                (-10, 5, 2, [("a", 1), ("b", 5)]),
                (-5, 10, 3, [("a", 3), ("b", 5)]),
                (0, 15, 3, [("a", 3), ("b", 5)]),
                (5, 20, 1, [("a", 2)]),
                (20, 35, 1, [("c", 9)]),
            ],
        ),
        (f"{_SUMS} EVERY '1 minute' EXPIRE '2026-01-01T00:00:07.000Z'", [(0, 7, 2, [("a", 1), ("b", 5)])]),
        (f"{_SUMS} EVERY '1 minute' EXPIRE '2026-01-01T00:00:07.001Z'", [(0, 7.001, 3, [("a", 3), ("b", 5)])]),
        (f"{_SUMS} EVERY '5 seconds' EXPIRE '2026-01-01T00:00:05Z'", [(0, 5, 2, [("a", 1), ("b", 5)])]),
        (
            f"{_SUMS} START '2026-01-01T00:00:01.500Z' EVERY '10 seconds'",
            [(1.5, 11.5, 2, [("a", 2), ("b", 5)]), (21.5, 31.5, 1, [("c", 9)])],
        ),
        (
            f"{_SUMS} START '2026-01-01T00:00:01.500Z' EVERY CRON '* * * * *'",
            [(1.5, 60, 3, [("a", 2), ("b", 5), ("c", 9)])],
        ),
    ],
)
def test_digests_of_groups(query: str, expected: list[Any]) -> None:
    """Each digest begins at the tick before, counts its own matches, and has the groups that HAVING leaves."""
    assert _shown(query) == expected


def test_lists_that_begin_alike_are_two_conditions() -> None:
    """Aggregates whose lists of IN differ only after the first element are counted separately."""
    [digest] = digests(
        "SELECT count(*) FILTER (WHERE k IN ('a', 'b')) AS ab, count(*) FILTER (WHERE k IN ('a', 'c')) AS ac,"
        " count(*) FILTER (WHERE k IN ('a', NULL)) AS a FROM t HAVING sum(CASE WHEN v IN (5, 9) THEN v ELSE 0 END) = 14"
        " AND sum(CASE WHEN v IN (5, 1) THEN v ELSE 0 END) = 6 EVERY '1 minute'",
        _STREAM,
        _ROWS,
        accepted_at=_AT,
    )
    assert digest["rows"] == [{"ab": 3, "ac": 3, "a": 2}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("max(v * 1.5) > 8", "max(v * 1.25) > 8"),
        ("avg(v * 100) > 1", "avg(v * 0.01) > 0.03"),
        ("min(v + 1) >= 3", "min(v + 0.125) >= 2.625"),
        ("max(CASE WHEN v > 4 THEN 1 ELSE 0 END) = 1", "max(CASE WHEN v > 4 THEN 'x' ELSE 'y' END) = 'x'"),
        ("if(k > 'a', 5, 6) > 5", "if(k > 'a', 5, 6.5) > 6"),
    ],
)
def test_queries_of_a_group_have_their_own_types(first: str, second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants decide the type of an aggregate or key; the group has the plan of either query."""
    keys = [having.rpartition(" > ")[0] if having.startswith("if") else "k" for having in (first, second)]
    texts = [
        f"SELECT {key} AS key, count(*) AS n FROM t GROUP BY {key} HAVING {having} EVERY '1 minute'"
        for key, having in zip(keys, (first, second), strict=True)
    ]
    queries = [checked(text, _STREAM, _AT, []) for text in texts]
    assert queries[0].query.plan.group_id == queries[1].query.plan.group_id
    for text, query, other in zip(texts, queries, reversed(queries), strict=True):
        alone = _shown(text)
        shared = replace(query, query=msgspec.structs.replace(query.query, plan=other.query.plan))
        with monkeypatch.context() as patch:
            patch.setattr(import_module("gateway.testing.digests"), "checked", lambda *_, made=shared: made)
            assert alone == _shown(text)
        assert any(rows for *_, rows in alone), "some rows pass"


def test_lambdas_compute_with_aggregates() -> None:
    """The variables of a lambda are no columns outside GROUP BY."""
    select = "SELECT k, transform(collect_list(v), x -> x + 1) AS s FROM t GROUP BY k"
    having = "HAVING exists(collect_list(v), x -> x > 1 AND k < 'c')"
    assert [(0, 60, 4, [("a", [2, 3]), ("b", [6])])] == _shown(f"{select} {having} EVERY '1 minute'")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("exists(collect_list(v * 1.5), x -> x > 3)", "exists(collect_list(v * 1.25), x -> x > 3)"),
        ("to_json(struct(max(if(v > 3, '1', '2')) AS a)) <> 'x'", "to_json(struct(max(if(v > 3, 1, 2)) AS a)) <> 'x'"),
    ],
)
def test_types_that_the_plan_has_are_of_its_queries(first: str, second: str) -> None:
    """Queries whose HAVING has variables, or calls with types of the binder, of different types are two groups."""
    text = "SELECT count(*) AS n FROM t HAVING {} EVERY '1 minute'"
    plans = [checked(text.format(having), _STREAM, _AT, []).query.plan for having in (first, second)]
    assert plans[0].group_id != plans[1].group_id
    assert [(0, 60, 4, [(4,)])] == _shown(text.format(first)) == _shown(text.format(second))


def test_an_operator_between_calls_is_no_call() -> None:
    """Two conditions that differ in parentheses are two groups."""
    keys = "length(k) + v, v * length(k), length(k), v"
    plans = [
        checked(f"SELECT count(*) AS n FROM t GROUP BY {keys} HAVING {having} = 9 EVERY '1 minute'", _STREAM, _AT, [])
        for having in ("(length(k) + v) * length(k)", "length(k) + (v * length(k))")
    ]
    assert plans[0].query.plan.group_id != plans[1].query.plan.group_id


_PARTS = Stream("t (k STRING, at STRUCT<a: INT>, many ARRAY<INT>, named MAP<STRING, INT>, v VARIANT)")
_OF_PARTS = [{"k": "a", "at": {}, "many": [], "named": {"x": 1}, "v": None}, {"many": [1], "v": {"x": 1}}, {}]


def test_values_with_parts_are_counted() -> None:
    """They are there or NULL, also beside other arguments."""
    counts = "count(at) AS a, count(many) AS b, count(named, k) AS c, count(v) FILTER (WHERE k IS NULL) AS d"
    assert digests(f"SELECT {counts} FROM t EVERY '1 minute'", _PARTS, _OF_PARTS)[0]["rows"] == [
        {"a": 1, "b": 2, "c": 1, "d": 1}
    ]


@pytest.mark.parametrize(
    ("aggregate", "code"),
    [
        ("count(DISTINCT at)", "unsupported-query"),
        ("first(many)", "unsupported-query"),
        ("max(at)", "unsupported-query"),
        ("min_by(v, k)", "unsupported-query"),
        ("max(named)", "type-mismatch"),
        ("max(v)", "type-mismatch"),
        ("sum(many)", "type-mismatch"),
    ],
)
def test_other_aggregates_of_values_with_parts(aggregate: str, code: str) -> None:
    """They are refused: as no part of a standing query where Spark has them, else by their type."""
    with pytest.raises(InputError) as refused:
        digests(f"SELECT {aggregate} AS x FROM t EVERY '1 minute'", _PARTS, _OF_PARTS)
    assert refused.value.code == code


@pytest.mark.parametrize("key", ["at", "many", "v"])
def test_keys_with_parts(key: str) -> None:
    """GROUP BY takes parts of such values."""
    with pytest.raises(InputError) as refused:
        digests(f"SELECT count(*) AS n FROM t GROUP BY {key} EVERY '1 minute'", _PARTS, _OF_PARTS)
    assert refused.value.code == "unsupported-query"


@pytest.mark.parametrize("arguments", ["0.5, 1.5", "0.5, 2.0", "0.5, 0", "0.5, 1e2", "0.5, '7'", "1.5", "-0.1", "v"])
def test_constants_of_a_percentile_are_in_their_ranges(arguments: str) -> None:
    """A percentage is from 0 to 1, and an accuracy a whole number, as in Spark."""
    with pytest.raises(InputError) as caught:
        digests(f"SELECT approx_percentile(v, {arguments}) AS p FROM t EVERY '5 seconds'", Stream("t (v DOUBLE)"), [])
    assert "type-mismatch" == caught.value.code
