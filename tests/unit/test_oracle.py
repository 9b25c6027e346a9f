"""The oracle itself, against three-valued logic written out in Python."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given, settings

from tests import strategies
from tests.oracle import Oracle, Position
from tests.queries import Column, Conjunct, Event, Item, Query, Stream

OPERATORS = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def value_of(event: Event, position: Position, column: Column) -> object:
    match column.name:
        case "_key":
            return event.key
        case "_partition":
            return position.partition
        case "_offset":
            return position.offset
        case "_time":
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=event.time_ms)
    return event.values.get(column.name)


def compare(op: str, left: object, right: object) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, float):
        right = float(right)  # type: ignore[arg-type]
    elif isinstance(left, (int, Decimal)) and not isinstance(left, bool):
        left, right = Decimal(left), Decimal(right)  # type: ignore[arg-type]
    return OPERATORS[op](left, right)


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def truth(conjunct: Conjunct, event: Event, position: Position) -> bool | None:
    value = value_of(event, position, conjunct.column)
    match conjunct.op:
        case "true":
            return value  # type: ignore[return-value]
        case "is null":
            return value is None
        case "is not null":
            return value is not None
        case "between":
            return both(compare(">=", value, conjunct.values[0]), compare("<=", value, conjunct.values[1]))
        case "in":
            found = [compare("=", value, item) for item in conjunct.values]
            return True if True in found else None if None in found else False
        case op:
            return compare(op, value, conjunct.values[0])


@given(strategies.cases())
@settings(max_examples=25, deadline=None)
def test_oracle_equals_plain_three_valued_logic(rng: random.Random) -> None:
    """DuckDB, as the oracle asks it, selects exactly the events for which every conjunct is TRUE."""
    declared = strategies.stream(rng, "s")
    events = [(Position(n % 2, n // 2), strategies.event(rng, declared, number=n)) for n in range(40)]
    oracle = Oracle(declared, events)
    for _ in range(20):
        query = strategies.query(rng, declared)
        expected = {at for at, event in events if all(truth(term, event, at) is True for term in query.where)}
        assert expected == set(oracle.rows(query)), query


def test_oracle_orders_nan_as_spark_does() -> None:
    """NaN equals NaN and is above every number; in a result it is null (docs/results.md)."""
    price = Column("price", "DOUBLE")
    declared = Stream("s", (price,))
    oracle = Oracle(declared, [(Position(0, 0), Event({"price": math.nan})), (Position(0, 1), Event({"price": 4.0}))])
    query = Query(declared, (Conjunct(price, ">", (5,)),), (Item("price", "DOUBLE", column="price"),))
    assert {Position(0, 0): (("price", None),)} == oracle.rows(query)


def test_generated_queries_cover_every_operator_and_type() -> None:
    """A thousand generated queries reach each operator on each type, long lists and repeated constants included."""
    rng = random.Random(1)
    declared = strategies.stream(rng, "s")
    queries = [strategies.query(rng, declared) for _ in range(1000)]
    pairs = {(term.op, term.column.type) for query in queries for term in query.where}
    for kind in ("STRING", "INT", "BIGINT", "DOUBLE", "DECIMAL(18,4)", "DATE", "TIMESTAMP"):
        for op in (*strategies.COMPARISONS, "between", "in"):
            assert (op, kind) in pairs
    assert {("true", "BOOLEAN"), ("is null", "STRING")} <= pairs
    assert any(len(term.values) > 9_999 for query in queries for term in query.where)
    assert len({query.constants for query in queries}) < len(queries)
