"""Generated streams, events and continuous queries, as plain values that both the gateway's SQL and the oracle are made of.

Every function takes a `random.Random`, so that a seed names a case for ever; `cases()` lets Hypothesis draw the seeds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

__all__ = ["RECORD_COLUMNS", "Column", "Conjunct", "Event", "Item", "Query", "Stream", "cases", "event", "query", "stream"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

STRINGS = (
    "INTC", "intc", "INTC ", "MSFT", "", "O'Neil", "ONeil", "a:b|c", "a", "b|c", "x' OR '1'='1", "*", "%", "_", "100%",
    "caf\u00e9", "cafe\u0301", 'He said "hi"', "line1\nline2", "tab\there", "\\", "\\n", "a\\'b", "NULL", "null", ":c0", "?",
    "\U0001f600", "日本語", "\u2028", "--x", "/* x */", ";",
)  # fmt: skip
EVENT_STRINGS = (*STRINGS, "\x00x", "\x7f")
"""NUL is data, but no program would write it into SQL."""
INTS = (0, 1, -1, 5, 10, 99, 100, 2**31 - 1, -(2**31))
BIGINTS = (*INTS, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))
DOUBLES = (0.0, -0.0, 1.0, -1.0, 5.0, 5.5, 0.1, 0.2, 0.1 + 0.2, 99.99, 100.0, 1e308, 5e-324, -1.5, float(2**53), 1e21, 1e-7)
DECIMALS = tuple(map(Decimal, ("0", "1", "-1", "5", "5.5", "0.0001", "-0.0001", "99.99", "100", "99999999999999.9999")))
DATES = tuple(map(date.fromisoformat, ("1970-01-01", "1969-12-31", "2024-02-29", "2026-11-21", "1900-01-01", "2099-12-31")))
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
EXACT = ("INT", "BIGINT", "DECIMAL(18,4)")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream, or one of the source record's own fields."""

    name: str
    type: str

    @property
    def plain(self) -> bool:
        """Whether the name may be written without quotes, in any case."""
        return self.name.isascii() and self.name.isidentifier() and self.name.casefold() not in {"order", "select"}


RECORD_COLUMNS = (Column("_key", "STRING"), Column("_time", "TIMESTAMP"), Column("_partition", "INT"), Column("_offset", "BIGINT"))


@dataclass(frozen=True, slots=True)
class Stream:
    """What CREATE STREAM declares."""

    name: str
    columns: tuple[Column, ...]

    def ddl(self, topic: str, *, partitions: int | None = None, options: str = "format = 'json'") -> str:
        """Return the CREATE STREAM statement."""
        columns = ", ".join(f"{quoted(column.name)} {column.type}" for column in self.columns)
        made = f", partitions = {partitions}" if partitions else ""
        return f"CREATE STREAM {quoted(self.name)} ({columns}) WITH (topic = '{topic}', {options}{made})"


@dataclass(frozen=True, slots=True)
class Event:
    """One source record before it is encoded; a column that is absent from `values` is absent from the record."""

    values: dict[str, object] = field(default_factory=dict)
    partition: int = 0
    key: str | None = None
    time_ms: int = 1_750_000_000_000


@dataclass(frozen=True, slots=True)
class Conjunct:
    """`column op values`: op is a comparison, ``between``, ``in``, ``is null``, ``is not null`` or ``true`` (a bare column)."""

    column: Column
    op: str
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One output column: a column (`sql` empty) or an expression, in the gateway's SQL and in the oracle's."""

    name: str
    type: str
    column: str = ""
    sql: str = ""
    oracle: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT over one stream."""

    stream: Stream
    where: tuple[Conjunct, ...]
    items: tuple[Item, ...]
    star: bool = False

    @property
    def shape(self) -> tuple[tuple[str, str], ...]:
        """The predicate up to constants: equal shapes are one group (contract §5)."""
        return tuple(sorted((column, op) for column, op, _ in self._canonical()))

    @property
    def constants(self) -> tuple[tuple[str, str, str], ...]:
        """The predicate with its constants, numbers by value: equal ones are equal constants (contract §5)."""
        return tuple(sorted(self._canonical()))

    def _canonical(self) -> list[tuple[str, str, str]]:
        found = []
        for conjunct in self.where:
            name, exact = conjunct.column.name, conjunct.column.type in (*EXACT, "DOUBLE")
            texts = [_canonical_text(value) if exact else repr(value) for value in conjunct.values]
            if conjunct.op == "between":
                found += [(name, ">=", texts[0]), (name, "<=", texts[1])]
            elif conjunct.op == "in":
                distinct = sorted(set(texts))
                found.append((name, "=" if len(distinct) == 1 else "in", " ".join(distinct)))
            elif conjunct.op == "true":
                found.append((name, "=", repr(True)))
            else:
                found.append((name, conjunct.op, " ".join(texts)))
        return found

    def sql(self, rng: random.Random) -> str:
        """Return the SELECT in one of its many spellings."""
        alias = rng.choice(("", "", "q"))
        items = "*" if self.star else ", ".join(_item_sql(item, alias, rng) for item in self.items)
        source = quoted(self.stream.name) + (rng.choice((" AS ", " ")) + alias if alias else "")
        text = f"{_word('SELECT', rng)} {items} {_word('FROM', rng)} {source}"
        if self.where:
            conjuncts = [_conjunct_sql(conjunct, alias, rng) for conjunct in self.where]
            rng.shuffle(conjuncts)
            text += f" {_word('WHERE', rng)} " + f" {_word('AND', rng)} ".join(conjuncts)
        return text


def quoted(name: str) -> str:
    """Return an identifier in quotes, as contract §4 spells it."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object, kind: str, rng: random.Random) -> str:
    """Return a constant in one of the spellings that mean it beside a column of that type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return rng.choice(("TRUE", "true") if value else ("FALSE", "false"))
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return "'" + _timestamp_text(value, rng) + "'"
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    if isinstance(value, float):
        return rng.choice((str(int(value)), repr(value))) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, int) and kind in ("DOUBLE", *EXACT) and abs(value) < 2**31:
        return rng.choice((str(value), str(value), f"{value}.0"))
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


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
    return Event(values, rng.randrange(partitions), key, 1_750_000_000_000 + number * rng.choice((0, 1, 1000)))


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
    """Return a constant beside that column, mostly one that events hold."""
    if column.name == "_partition":
        return rng.randrange(3)
    if column.name == "_offset":
        return rng.randrange(200)
    if column.name == "_time":
        return EPOCH + timedelta(milliseconds=1_750_000_000_000 + rng.randrange(300) * 1000)
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
    items = [Item(column.name, column.type, column=column.name) for column in rng.sample(declared.columns, rng.randrange(1, 5))]
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


def _item_sql(item: Item, alias: str, rng: random.Random) -> str:
    if not item.column:
        return f"{item.sql} AS {item.name}"
    reference = _reference(item.column, alias, rng)
    return reference if item.name == item.column else f"{reference} AS {quoted(item.name)}"


def _reference(name: str, alias: str, rng: random.Random) -> str:
    spelled = quoted(name)
    if Column(name, "").plain:
        spelled = rng.choice((name, name, name.upper(), name.lower(), quoted(name), f"`{name}`"))
    return f"{alias}.{spelled}" if alias and rng.random() < 0.7 else spelled


def _conjunct_sql(term: Conjunct, alias: str, rng: random.Random) -> str:
    column = _reference(term.column.name, alias, rng)
    constants = [literal(value, term.column.type, rng) for value in term.values]
    if term.op == "true":
        text = rng.choice((column, f"{column} = TRUE", f"true = {column}"))
    elif term.op in ("is null", "is not null"):
        text = f"{column} {_word(term.op.upper(), rng)}"
    elif term.op == "in":
        rng.shuffle(constants)
        text = f"{column} {_word('IN', rng)} ({', '.join(constants)})"
    elif term.op == "between" and rng.random() < 0.6:
        text = f"{column} {_word('BETWEEN', rng)} {constants[0]} {_word('AND', rng)} {constants[1]}"
    elif term.op == "between":
        text = f"{column} >= {constants[0]} AND {constants[1]} >= {column}"
    else:
        op = "!=" if term.op == "<>" and rng.random() < 0.5 else term.op
        mirrored = "!=" if op == "!=" else MIRRORED[term.op]
        text = f"{column} {op} {constants[0]}" if rng.random() < 0.7 else f"{constants[0]} {mirrored} {column}"
    return f"({text})" if rng.random() < 0.2 else text


def _word(word: str, rng: random.Random) -> str:
    return rng.choice((word, word, word.lower(), word.title()))


def _timestamp_text(instant: datetime, rng: random.Random) -> str:
    return rng.choice((instant.isoformat(), instant.isoformat().replace("+00:00", "Z")))


def _canonical_text(value: object) -> str:
    return "NULL" if value is None else str(Decimal(repr(value) if isinstance(value, float) else str(value)).normalize() + 0)


def _order(value: object) -> object:
    return Decimal(repr(value)) if isinstance(value, float) else value
