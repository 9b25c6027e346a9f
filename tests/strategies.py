"""Generated streams, events and continuous queries.

Every function takes a `random.Random`, so a seed always gives the same case; `cases()` lets Hypothesis draw the seeds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from tests.queries import BASE_MS, EXACT, RECORD_COLUMNS, Column, Conjunct, Event, Item, Query, Stream

__all__ = ["COMPARISONS", "cases", "conjunct", "event", "query", "stream"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

STRINGS = (
    "INTC", "intc", "INTC ", "MSFT", "", "O'Neil", "ONeil", "a:b|c", "a", "b|c", "x' OR '1'='1", "*", "%", "_", "100%",
    "caf\u00e9", "cafe\u0301", 'He said "hi"', "line1\nline2", "tab\there", "\\", "\\n", "a\\'b", "NULL", "null", ":c0",
    "?",    "\U0001f600", "日本語", "\u2028", "--x", "/* x */", ";",
)  # fmt: skip
EVENT_STRINGS = (*STRINGS, "\x00x", "\x7f")
"""NUL is data, but no program would write it into SQL."""
INTS = (0, 1, -1, 5, 10, 99, 100, 2**31 - 1, -(2**31))
BIGINTS = (*INTS, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))
DOUBLES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    5.0,
    5.5,
    0.1,
    0.2,
    0.1 + 0.2,
    99.99,
    100.0,
    1e308,
    5e-324,
    -1.5,
    float(2**53),
    1e21,
    1e-7,
)
DECIMALS = tuple(map(Decimal, ("0", "1", "-1", "5", "5.5", "0.0001", "-0.0001", "99.99", "100", "99999999999999.9999")))
DATES = tuple(date(*parts) for parts in ((1970, 1, 1), (1969, 12, 31), (2024, 2, 29), (2026, 11, 21), (1900, 1, 1)))
TIMESTAMPS = (
    EPOCH,
    EPOCH - timedelta(microseconds=1),
    datetime(2026, 11, 21, 10, 0, tzinfo=UTC),
    datetime(2026, 11, 21, 10, 0, 0, 1, tzinfo=UTC),
    datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
)
POOLS: dict[str, Sequence[object]] = {
    "STRING": EVENT_STRINGS,
    "BOOLEAN": (True, False),
    "INT": INTS,
    "BIGINT": BIGINTS,
    "DOUBLE": DOUBLES,
    "DECIMAL(18,4)": DECIMALS,
    "DATE": DATES,
    "TIMESTAMP": TIMESTAMPS,
}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def stream(rng: random.Random, name: str, *, avro: bool = False) -> Stream:
    """Return a stream with a column of every type, some twice, in any order and spelling."""
    columns = [
        Column("id", "BIGINT"), Column("Symbol", "STRING"), Column("price", "DOUBLE"), Column("qty", "INT"),
        Column("volume", "BIGINT"), Column("flag", "BOOLEAN"), Column("amount", "DECIMAL(18,4)"),
        Column("day", "DATE"), Column("at", "TIMESTAMP"),
    ]  # fmt: skip
    if not avro:
        columns += [Column("Größe x", "DOUBLE"), Column("order", "STRING")]
    rng.shuffle(columns)
    return Stream(name, tuple(columns))


def event(rng: random.Random, declared: Stream, *, number: int, partitions: int = 1) -> Event:
    """Return an event: about one column in six is missing, one in six NULL, the rest drawn from the boundary values."""
    values: dict[str, object] = {}
    for column in declared.columns:
        roll = rng.random()
        if column.name == "id":
            values["id"] = number
        elif roll > 1 / 3:
            values[column.name] = rng.choice(POOLS[column.type])
        elif roll > 1 / 6:
            values[column.name] = None
    key = rng.choice((None, "", "k1", "caf\u00e9"))
    return Event(values, rng.randrange(partitions), key, BASE_MS + number * rng.choice((0, 1, 1000)))


def conjunct(rng: random.Random, columns: Sequence[Column]) -> Conjunct:
    """Return one term of a WHERE: any operator that fits a column drawn at random."""
    column = rng.choice(columns)
    if rng.random() < 0.1:
        return Conjunct(column, rng.choice(("is null", "is not null")))
    if column.type == "BOOLEAN" and rng.random() < 0.6:
        return Conjunct(column, "true")
    op = rng.choice((*COMPARISONS, "=", "=", "in", "between"))
    if column.type == "BOOLEAN" and op not in ("=", "<>"):
        op = "="
    if op == "between":
        bounds = sorted((constant(rng, column) for _ in range(2)), key=_order)
        return Conjunct(column, op, tuple(bounds) if rng.random() < 0.9 else tuple(reversed(bounds)))
    if op == "in":
        return Conjunct(column, op, _in_list(rng, column))
    return Conjunct(column, op, (constant(rng, column) if rng.random() > 0.03 else None,))


def constant(rng: random.Random, column: Column) -> object:
    """Return a constant for a column, mostly a value present in events."""
    if column.name == "_partition":
        return rng.randrange(3)
    if column.name == "_offset":
        return rng.randrange(200)
    if column.name == "_time":
        return EPOCH + timedelta(milliseconds=BASE_MS + rng.randrange(300) * 1000)
    if column.type in EXACT and rng.random() < 0.15:
        return rng.choice((Decimal("5.5"), Decimal("-0.5"), 2**63, -(2**63) - 1, 2**31))
    return rng.choice(STRINGS if column.type == "STRING" else POOLS[column.type])


def query(rng: random.Random, declared: Stream) -> Query:
    """Return a query: none to four conjuncts over columns and the record's own fields, any SELECT list."""
    columns = (*declared.columns, *declared.columns, *RECORD_COLUMNS)
    where = tuple(conjunct(rng, columns) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 4))))
    star = rng.random() < 0.2
    return Query(declared, where, _star_items(declared) if star else _select(rng, declared), star)


def cases() -> st.SearchStrategy[random.Random]:
    """Return seeded generators for the functions of this module, to be drawn by Hypothesis."""
    return st.integers(0, 2**32).map(random.Random)


def _in_list(rng: random.Random, column: Column) -> tuple[object, ...]:
    size = rng.choice((1, 2, 3, 5)) if rng.random() > 0.02 else 10_000
    if size < 10_000 or column.type not in ("STRING", "BIGINT", "INT", "DOUBLE"):
        values = [constant(rng, column) for _ in range(min(size, 5))]
        values += [values[0]] * rng.randrange(2) + [None] * (rng.random() < 0.05)
        return tuple(values)
    made: dict[str, object] = {"STRING": "s{}".format, "BIGINT": int, "INT": int, "DOUBLE": float}
    maker = made[column.type]
    return (*(maker(number * 3) for number in range(size)), constant(rng, column))  # type: ignore[operator]


def _select(rng: random.Random, declared: Stream) -> tuple[Item, ...]:
    items = [
        Item(column.name, column.type, column=column.name)
        for column in rng.sample(declared.columns, rng.randrange(1, 5))
    ]
    if rng.random() < 0.3:
        column = rng.choice((*declared.columns, *RECORD_COLUMNS))
        items.append(Item(rng.choice(("Alias", "zz", "a b", "é")), column.type, column=column.name))
    if rng.random() < 0.3:
        items.append(rng.choice(EXPRESSIONS))
    rng.shuffle(items)
    return tuple(items)


EXPRESSIONS = (
    Item("doubled", "DOUBLE", sql="price * 2", oracle="price * 2"),
    Item("next", "BIGINT", sql="volume + 1", oracle="TRY(volume + 1)"),
    Item("negative", "BIGINT", sql="-volume", oracle="TRY(-volume)"),
    Item("marked", "STRING", sql="Symbol || '''!'", oracle="Symbol || '''!'"),
    Item("chars", "INT", sql="length(symbol)", oracle="length(Symbol)::INTEGER"),
    Item("given", "STRING", sql="coalesce(symbol, 'none')", oracle="coalesce(Symbol, 'none')"),
    Item("kind", "STRING", sql="'const'", oracle="'const'"),
    Item("sign", "STRING", sql="CASE WHEN qty > 0 THEN 'up' WHEN qty < 0 THEN 'down' END",
         oracle="CASE WHEN qty > 0 THEN 'up' WHEN qty < 0 THEN 'down' END"),
    Item("ratio", "DOUBLE", sql="price / 0", oracle="NULL::DOUBLE"),
)  # fmt: skip


def _star_items(declared: Stream) -> tuple[Item, ...]:
    return tuple(Item(column.name, column.type, column=column.name) for column in declared.columns)


def _order(value: object) -> object:
    return Decimal(repr(value)) if isinstance(value, float) else value
