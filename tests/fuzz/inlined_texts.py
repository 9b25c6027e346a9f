"""Random templates of CREATE CQ with a literal in several places of the plan.

Subqueries, views, conditions of ON, aliases in GROUP BY and HAVING, and aggregates inline expressions. Each function
takes a `random.Random`, so that a seed names a template and its texts for ever. Literals are written ``{kind}``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from grouping.model.catalog import Catalog, StreamColumn
from grouping.model.table import Table, View
from tests.quotes import QUOTES

__all__ = ["filled", "inlined_catalog", "inlined_template"]

_POOLS: Mapping[str, Sequence[str]] = {
    "n": ("0", "1", "2", "3", "7", "2.5", "-1", "100", "3000000000", "1e3", "12345678901234567890"),
    "k": ("0", "1", "2", "3", "5"),
    "s": ("'a'", "'b'", "'INTC'", "''", "'it''s'", "'a%'", "'5'", "'2026-01-02'"),
    "d": ("'2026-01-01'", "'2026-01-02'", "'2026-02-03'", "'1999-12-31'"),
    "t": ("'2026-01-01T10:00:00Z'", "'2026-01-02'", "'2026-01-02 11:30:00'"),
}
_PLACE = re.compile(r"\{(\w)\}")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")

_NUMBERS = (
    "{n}", "{n}", "N", "N", "N", "N + {n}", "N * {n}", "{n} - N", "coalesce(N, {n})", "CASE WHEN B THEN {n} ELSE N END",
    "CASE N WHEN {n} THEN N ELSE {n} END", "nullif(N, {n})", "greatest(N, {n})", "abs(N)", "length(S)", "round(N, {k})",
    "datediff(T, DATE {d})", "if(B, N, {n})", "CAST(S AS INT)", "instr(S, {s})", "year(T)", "N % {n}", "pmod(N, {k})",
    "size(filter(array(N, {n}), x -> x > {n}))", "reduce(array(1, 2), {k}, (a, x) -> a + x)", "count_if_none", "-N",
    "element_at(array(N, {n}), 1)", "try_divide(N, {n})", "CAST({s} AS INT)", "bit_and_none", "N | {k}",
    "shiftleft({k}, 1)",
)  # fmt: skip
_STRINGS = (
    "{s}", "{s}", "S", "S", "S", "S || {s}", "upper(S)", "coalesce(S, {s})", "replace(S, {s}, {s})",
    "CAST(N AS STRING)",
    "lpad(S, {k}, {s})", "split(S, {s})[0]", "substring(S, {k}, {k})", "concat_ws({s}, S, {s})",
    "regexp_extract(S, 'a(.)', 1)",
    "CASE WHEN B THEN {s} ELSE S END", "translate(S, {s}, {s})", "repeat(S, {k})", "nvl2(S, {s}, {s})", "trim(S)",
    "date_format(T, 'yyyy')", "array_join(array(S, {s}), {s})", "to_json(named_struct('a', {n}))",
    "decode(S, {s}, {s}, S)",
)  # fmt: skip
_TIMES = (
    "DATE {d}", "TIMESTAMP {t}", "T", "T", "T", "T + INTERVAL {k} DAYS", "date_trunc('DAY', T)",
    "coalesce(T, DATE {d})",
    "CAST({d} AS DATE)", "date_add(T, {k})", "T - INTERVAL {k} HOURS", "add_months(T, {k})", "to_date({d})",
)  # fmt: skip
_BOOLEANS = (
    "N ? N", "N ? {n}", "N ? {n}", "S ? {s}", "S ? S", "T ? T", "T ? {d}", "N BETWEEN {n} AND N",
    "N BETWEEN {n} AND {n}",
    "{n} BETWEEN N AND N", "N IN ({n}, {n})", "{n} IN (N, {n}, N)", "N NOT IN ({n}, N)", "S IN ({s}, {s}, {s})",
    "S LIKE {s}", "S RLIKE {s}", "S LIKE {s} ESCAPE '!'", "T BETWEEN T AND T", "DATE {d} BETWEEN T AND T",
    "B AND B", "B OR B", "NOT (B)", "(B OR B)", "N IS NULL", "S IS NOT NULL", "exists(array(N, {n}), x -> x > {n})",
    "N IS DISTINCT FROM {n}", "startswith(S, {s})", "array_contains(array(S, {s}), {s})", "T IN (DATE {d}, T)",
    "T - T > INTERVAL {k} DAYS", "N = {s}", "{n} = {n}", "CASE WHEN B THEN B ELSE B END", "S IN (S, {s})",
)  # fmt: skip
_AGGREGATES = (
    "count(*)", "sum(N)", "avg(N)", "max(N)", "min(S)", "count(DISTINCT N)", "sum(N) FILTER (WHERE B)", "count(S)",
    "count(*) FILTER (WHERE B)", "max_by(S, N)", "first(S)", "sum(N * {n})", "stddev(N)", "bool_or(B)",
)  # fmt: skip
_SYMBOL = re.compile(r"\b([NSTB])\b(?![.(])")
_NUMERIC_AGGREGATES = tuple(each for each in _AGGREGATES if not each.startswith(("min(S", "max_by", "first", "bool")))


class _Names(NamedTuple):
    """Columns in scope, by kind."""

    numbers: tuple[str, ...]
    strings: tuple[str, ...]
    times: tuple[str, ...]
    booleans: tuple[str, ...]


_STREAM = _Names(("price", "volume", "i", "amount"), ("symbol", "name"), ("d", "at"), ("flag",))
_TABLES = {
    "profiles": _Names(("staff",), ("symbol", "industry"), ("since",), ()),
    "owners": _Names(("shares",), ("symbol", "owner"), (), ()),
}


@cache
def inlined_catalog() -> Catalog:
    """Return a stream, two tables, and views with literals of their own."""

    def table(number: int, name: str, columns: str, key: tuple[str, ...]) -> Table:
        declared = tuple(StreamColumn(*column.split()) for column in columns.split(", "))
        return Table(f"t_{number}", name, declared, key, name, "json", "")

    return Catalog(
        [QUOTES],
        [
            table(1, "profiles", "symbol STRING, industry STRING, staff INT, since DATE", ("symbol",)),
            table(2, "owners", "owner STRING, symbol STRING, shares BIGINT", ("owner", "symbol")),
        ],
        [
            View("v", "SELECT *, price * 2.0 AS worth, 'a' AS tag FROM quotes WHERE volume > 5", ("quotes",), ""),
            View("w", "SELECT *, staff + 1 AS more FROM profiles WHERE staff > 10", ("profiles",), ""),
        ],
    )


def filled(template: str, rng: random.Random, like: str | None = None) -> str:
    """Return a template with literals; given a text, most literals are taken from it."""
    pools = [_POOLS[kind] for kind in _PLACE.findall(template)]
    literals = [rng.choice(pool) for pool in pools]
    if like is not None:
        pattern = "(.*?)".join(map(re.escape, _PLACE.split(template)[::2]))
        found = re.fullmatch(pattern, like, re.DOTALL)
        assert found is not None, "a text of the template"
        literals = [new if rng.random() < 0.4 else old for new, old in zip(literals, found.groups(), strict=True)]
    rest = iter(literals)
    return _PLACE.sub(lambda _: next(rest), template)


def inlined_template(rng: random.Random) -> str:
    """Return the text of a CREATE CQ ``c`` without its literals."""
    source, names = _source(rng, 2)
    where = f" WHERE {_value(rng, 'B', names)}" if rng.random() < 0.8 else ""
    if rng.random() < 0.4:
        return f"CREATE CQ c AS {_grouped(rng, source, names, where)} EVERY '1 minute'"
    items = ["*"] if rng.random() < 0.2 else _items(rng, names, "o")
    return f"CREATE CQ c AS SELECT {', '.join(items)} FROM {source}{where}"


def _value(rng: random.Random, kind: str, names: _Names, depth: int = 2) -> str:
    forms = {"N": _NUMBERS, "S": _STRINGS, "T": _TIMES, "B": _BOOLEANS}[kind]
    columns = names[("N", "S", "T", "B").index(kind)]
    if depth <= 0 or (kind != "B" and rng.random() < 0.35):
        if columns:
            return rng.choice(columns)
        return {"N": "{n}", "S": "{s}", "T": "DATE {d}", "B": "{k} = {k}"}[kind]
    form = rng.choice(forms)
    if form == kind or form.endswith("_none"):
        return rng.choice(columns) if columns else _value(rng, kind, names, 0)
    form = form.replace("?", rng.choice(_COMPARISONS))
    return _SYMBOL.sub(lambda found: _within(_value(rng, found[1], names, depth - 1)), form)


def _within(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+|\{\w\}", text) else f"({text})"


def _items(rng: random.Random, names: _Names, prefix: str) -> list[str]:
    kinds = [rng.choice("NNSSTB") for _ in range(rng.randint(1, 3))]
    return [f"{_value(rng, kind, names)} AS {prefix}{number}" for number, kind in enumerate(kinds)]


def _grouped(rng: random.Random, source: str, names: _Names, where: str) -> str:
    keys = [_value(rng, rng.choice("NST"), names, 1) for _ in range(rng.randint(0, 2))]
    items = [f"{key} AS k{number}" for number, key in enumerate(keys)]
    groups = [rng.choice((key, f"k{number}", str(number + 1))) for number, key in enumerate(keys)]
    groups = [group if not re.fullmatch(r"\{\w\}|DATE.*", group) else f"k{n}" for n, group in enumerate(groups)]
    counted = _Names(tuple(f"a{number}" for number in range(2)), (), (), ())
    for name in counted.numbers:
        called = _SYMBOL.sub(lambda found: _value(rng, found[1], names, 1), rng.choice(_NUMERIC_AGGREGATES))
        items.append(f"{called}{rng.choice(('', ' * {n}', ' + {n}'))} AS {name}")
    again = _SYMBOL.sub(lambda found: _value(rng, found[1], names, 1), rng.choice(_AGGREGATES))
    having = rng.choice(
        (
            "",
            f" HAVING {_value(rng, 'B', counted, 1)}",
            f" HAVING a0 > {{n}} AND {again} IS NOT NULL",
            " HAVING a1 > a0 + {n}",
        )
    )
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {', '.join(items)} FROM {source}{where}{by}{having}"


def _source(rng: random.Random, depth: int) -> tuple[str, _Names]:
    kind = rng.random()
    if depth and kind < 0.45:
        inner, names = _source(rng, depth - 1)
        where = f" WHERE {_value(rng, 'B', names)}" if rng.random() < 0.5 else ""
        letter = "xyz"[depth]
        made = {each: f"{letter}{each.lower()}" for each in "NSTB"}
        items = [f"{_value(rng, each, names)} AS {made[each]}" for each in "NSTB"]
        shown = _Names(*((made[each],) for each in "NSTB"))
        if "symbol" in names.strings:
            items.append("symbol")
            shown = shown._replace(strings=(*shown.strings, "symbol"))
        return f"(SELECT {', '.join(items)} FROM {inner}{where}) {letter}", shown
    if kind < 0.55:
        return "v", _STREAM._replace(numbers=(*_STREAM.numbers, "worth"), strings=(*_STREAM.strings, "tag"))
    if kind < 0.85 or not depth:
        return "quotes", _STREAM
    return _joined(rng, depth)


def _joined(rng: random.Random, depth: int) -> tuple[str, _Names]:
    left, names = _source(rng, depth - 1)
    if "symbol" not in names.strings or left.startswith("(") is False and " JOIN " in left:
        left, names = "quotes", _STREAM
    name = rng.choice(tuple(_TABLES))
    table = _TABLES[name]
    right, more = name, ()
    if rng.random() < 0.4:
        condition = f" WHERE {_value(rng, 'B', table, 1)}" if rng.random() < 0.7 else ""
        right, more = f"(SELECT *, {_value(rng, 'N', table, 1)} AS extra FROM {name}{condition})", ("extra",)
    elif name == "profiles" and rng.random() < 0.3:
        right, more = "w", ("more",)
    own = _Names(*(tuple(f"p.{column}" for column in columns) for columns in table))
    own = own._replace(numbers=(*own.numbers, *(f"p.{column}" for column in more)))
    qualified = names._replace(strings=tuple("l.symbol" if each == "symbol" else each for each in names.strings))
    both = _Names(*(a + b for a, b in zip(qualified, own, strict=True)))
    on = "l.symbol = p.symbol"
    if rng.random() < 0.7:
        on += f" AND {_within(_value(rng, 'B', both, 1))}"
    if rng.random() < 0.2:
        on += f" AND {_within(_value(rng, 'S', qualified, 1))} = p.{table.strings[1]}"
    left = f"{left.removesuffix(left[-2:])} l" if left.startswith("(") else f"{left} l"
    return f"{left} {rng.choice(('JOIN', 'LEFT JOIN'))} {right} p ON {on}", both
