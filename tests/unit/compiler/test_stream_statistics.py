"""Estimates from samples of a stream: close if the samples suffice, otherwise none."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec
import pytest

from grouping.access.access_path import choose_index
from grouping.access.stream_statistics import ColumnSample, GroupLoad, PartitionStatistics, StreamStatistics, rounded
from grouping.model.expression import Call, Column, Expression
from grouping.model.group import ConstantRow
from grouping.model.sql_type import BIGINT, DOUBLE, STRING, UNKNOWN
from tests.unit.matching.matching import compare


def sample(values: list[object]) -> ColumnSample:
    """The sample of a column that held these."""
    known = sorted(found for value in values if (found := rounded(value)) is not None)
    return ColumnSample(len(values) - len(known), known)


def partition(columns: dict[str, list[object]], at_ms: int = 0, **groups: GroupLoad) -> PartitionStatistics:
    """Return a partition's statistics after a round trip through their encoding."""
    statistics = PartitionStatistics(at_ms, 1, 1, {name: sample(values) for name, values in columns.items()}, groups)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(statistics), type=PartitionStatistics)


HALVES = {
    "s": [*(["A"] * 100), *(["B"] * 60), *([None] * 40)],
    "n": list(range(200)),
    "d": [Decimal(number) / 4 for number in range(200)],
    "t": [datetime(2026, 11, 21, 10, 0, number % 60, tzinfo=UTC) for number in range(200)],
    "y": [date(2026, 11, 1 + number % 20) for number in range(200)],
}


@pytest.mark.parametrize(
    ("conjunct", "constant", "part"),
    [
        (compare("s", "=", "STRING", 0), "A", 0.5),
        (compare("s", "=", "STRING", 0), None, 0.0),
        (compare("s", "<>", "STRING", 0), "A", 0.3),
        (compare("s", "in", "STRING", 0), ("A", "B", None), 0.8),
        (Call("is_null", (Column("s", "STRING"),), "BOOLEAN"), None, 0.2),
        (Call("not", (Call("is_null", (Column("s", "STRING"),), "BOOLEAN"),), "BOOLEAN"), None, 0.8),
        (compare("n", "<", "INT", 0), 50, 0.25),
        (compare("n", ">=", "INT", 0), 50, 0.75),
        (compare("n", ">", "INT", 0), 1e9, 0.0),
        (compare("d", "<=", "DECIMAL(9,2)", 0), Decimal("24.75"), 0.5),
        (compare("t", ">=", "TIMESTAMP", 0), datetime(2026, 11, 21, 10, 0, 20, tzinfo=UTC), 0.6),
        (compare("y", "=", "DATE", 0), date(2026, 11, 3), 0.05),
    ],
)
def test_a_comparison_matches_as_often_as_in_the_sample(conjunct: Expression, constant: object, part: float) -> None:
    """The part of events that meet a comparison with a constant is that of the sampled events."""
    known = StreamStatistics([partition(HALVES)])
    found = known.matches((conjunct,), ConstantRow((UNKNOWN,), (constant,)))  # type: ignore[arg-type]
    assert part == pytest.approx(found, abs=0.011)


def test_conjuncts_multiply_and_branches_add() -> None:
    """AND multiplies, OR adds; conjuncts without a sample are guessed at a tenth, and nothing alone is not guessed."""
    known = StreamStatistics([partition(HALVES)])
    row = ConstantRow((STRING, BIGINT), ("A", 50))
    equal, below = compare("s", "=", "STRING", 0), compare("n", "<", "INT", 1)
    like = Call("like", (Column("s", "STRING"), Column("s", "STRING")), "BOOLEAN")
    assert 0.125 == known.matches((equal, below), row)
    assert 0.75 == known.matches((Call("or", (equal, below), "BOOLEAN"),), row)
    assert 0.05 == pytest.approx(known.matches((equal, like), row))
    assert known.matches((like,), row) is None
    assert 1.0 == known.matches((), row)


def test_partitions_are_merged_and_old_ones_left_out() -> None:
    """Samples and loads of all partitions count together, unless a partition's are a minute older than others."""
    load = GroupLoad(choose_index([compare("n", "<", "INT", 0)]), 10, 100.0, 500.0, 50.0, 1000.0)
    low, high = {"n": [0] * 100}, {"n": [9] * 300}
    both = StreamStatistics([partition(low, 0, g_1=load), partition(high, 1000, g_1=load)])
    below = (compare("n", "<", "INT", 0),)
    assert 0.25 == both.matches(below, ConstantRow((BIGINT,), (5,)))
    merged = both.group("g_1")
    assert merged is not None and (10, 200.0) == (merged.rows, merged.events)
    assert (5.0, 0.5) == (merged.per_event(merged.candidates), merged.per_event(merged.matches))
    later = StreamStatistics([partition(low, 0, g_1=load), partition(high, 100_000)])
    assert 0.0 == later.matches(below, ConstantRow((BIGINT,), (5,))) and later.group("g_1") is None


def test_few_events_tell_nothing() -> None:
    """From a handful of events nothing is concluded, and nothing without any."""
    row, equal = ConstantRow((BIGINT,), (1,)), (compare("n", "=", "INT", 0),)
    assert StreamStatistics([partition({"n": [1] * 99})]).matches(equal, row) is None
    assert StreamStatistics().matches(equal, row) is None


def test_expectations_add_up_to_the_matches_of_a_group() -> None:
    """Summed over all rows, the expectation is near the count of brute force on fresh events."""
    random.seed(5)
    known = StreamStatistics([partition({"n": [random.gauss(50, 10) for _ in range(1000)]})])
    bounds = [(low := random.random() * 100, low + random.random()) for _ in range(2000)]
    plan = (compare("n", ">=", "DOUBLE", 0), compare("n", "<=", "DOUBLE", 1))
    expected = sum(known.matches(plan, ConstantRow((DOUBLE, DOUBLE), bound)) or 0.0 for bound in bounds)
    events = [random.gauss(50, 10) for _ in range(1000)]
    share = sum(low <= event <= high for low, high in bounds for event in events) / len(events)
    assert expected == pytest.approx(share, rel=0.1)
