"""Properties of every query: the invariants of grouping/README.md, on generated queries."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.compiler import prepared
from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.model.errors import InputError
from grouping.model.expression import walk
from grouping.statements.cq_text import CqText
from tests.quotes import QUOTES, catalog

CATALOG = catalog()
LITERALS = {
    "symbol": ("'INTC'", "''", "'it''s'", "'-5'", "'a -- b'", "NULL"),
    "price": ("5", "5.0", "5e0", "-5", "- 0.5", "1e-7", "0", "NULL"),
    "volume": ("5", "5.5", "-5", "9007199254740993", "9223372036854775808", "5e0", f"{10**37}", "1e40"),
    "amount": ("5", "5.50", "-0.01"),
    "i": ("1", "-1", "3000000000"),
    "d": ("'2026-11-21'", "DATE '2026-01-01'"),
    "at": ("'2026-11-21T10:00:00Z'", "'2026-11-21'", "TIMESTAMP '2026-11-21 10:00:00'"),
    "flag": ("TRUE", "FALSE"),
    "text": ("'5'", "'-90'", "' 7 '"),
    "count": ("5", "-3", "0"),
}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
SHAPES = (
    "symbol LIKE {symbol}",
    "symbol NOT LIKE {symbol} ESCAPE '!'",
    "length(symbol) > {volume}",
    "price * {price} > {price}",
    "i + {i} < volume",
    "upper(symbol) = {symbol}",
    "coalesce(price, {price}) > {price}",
    "CASE WHEN flag THEN {price} ELSE price END < {price}",
    "symbol IS NOT NULL",
    "volume > price",
    "price BETWEEN {price} AND {price}",
    "{i} < {i}",
    "symbol || {symbol} = name",
    "symbol RLIKE {symbol}",
    "upper(symbol) IN ({symbol}, {symbol})",
    "i + {i} NOT IN ({volume}, {volume}, {volume})",
    "i + {i} NOT IN ({volume})",
    "{volume} IN (i, {i}, {volume})",
    "{volume} BETWEEN {i} AND volume",
    "amount * {volume} - {amount} > {volume}",
    "amount / volume < {volume}",
    "round(price, {i}) = {price}",
    "rpad(symbol, {i}, {symbol}) = {symbol}",
    "CAST({symbol} AS INT) = i",
    "nullif({i}, i) IS NULL",
    "date_trunc({symbol}, at) > {at}",
    "volume > {text}",
    "price + 1 <= {text}",
    "at - INTERVAL {text} MINUTES > {at}",
    "d + INTERVAL {count} MONTHS = {d}",
    "at - d > INTERVAL {count} DAYS",
    "timestampadd(HOUR, {count}, at) = {at}",
)


def predicate(choose: random.Random, depth: int) -> str:
    """Return a predicate's template, its constants as ``{column}``."""
    kind = choose.random()
    if depth and kind < 0.45:
        parts = [predicate(choose, depth - 1) for _ in range(choose.randint(2, 3))]
        return "(" + choose.choice((" AND ", " OR ")).join(parts) + ")"
    if depth and kind < 0.55:
        return f"NOT ({predicate(choose, depth - 1)})"
    column = choose.choice(tuple(LITERALS))
    if kind < 0.65:
        return f"{column} IN ({', '.join(['{' + column + '}'] * choose.randint(2, 4))})"
    if kind < 0.75:
        return choose.choice(SHAPES)
    return f"{column} {choose.choice(OPERATORS)} {{{column}}}"


def filled(template: str, choose: random.Random) -> str:
    """Return a template with constants."""
    for column, literals in LITERALS.items():
        while f"{{{column}}}" in template:
            template = template.replace(f"{{{column}}}", choose.choice(literals), 1)
    return template


def signature(where: str) -> tuple[str, list[str]] | str:
    """Return a predicate's signature and constants, or the code of its refusal."""
    try:
        query = compile_select(f"SELECT symbol FROM quotes WHERE {where}", CATALOG)
    except InputError as error:
        return error.code
    return query.plan.signature, [repr(value) for value in query.row.values]


def shuffled(where: str, choose: random.Random) -> str:
    """Return a conjunction or disjunction in parentheses with its operands in another order."""
    for word in (" AND ", " OR "):
        inner = where[1:-1]
        if where.startswith("(") and word in inner and "(" not in inner and "BETWEEN" not in inner:
            if len({" AND ", " OR "} & {w for w in (" AND ", " OR ") if w in inner}) == 1:
                parts = inner.split(word)
                choose.shuffle(parts)
                return "(" + word.join(parts) + ")"
    return where


seeds = st.integers(0, 2**32).map(random.Random)


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_other_constants_same_signature(choose: random.Random) -> None:
    """A template has the same signature for all constants (I1), except IN lists that shrink to a single value."""
    template = predicate(choose, 2)
    first, second = (signature(filled(template, choose)) for _ in range(2))
    if " IN (" not in template and " OR " not in template and "NOT (" not in template:
        if not isinstance(first, str) and not isinstance(second, str):
            assert first[0] == second[0]


def test_null_is_a_constant_like_others() -> None:
    """A CAST of NULL has the shape of a CAST of a string."""
    null, text = (signature(f"CAST({constant} AS INT) = i") for constant in ("NULL", "'5'"))
    assert not isinstance(null, str) and not isinstance(text, str)
    assert null[0] == text[0] and null[1] == ["None"]


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_order_does_not_matter(choose: random.Random) -> None:
    """The order of operands of AND and OR changes neither signature nor constants (I2).

    If several operands are refused, the first refusal is reported.
    """
    parts = [filled(predicate(choose, 1), choose) for _ in range(4)]
    for word in (" AND ", " OR "):
        once = signature(word.join(parts))
        choose.shuffle(parts)
        again = signature(word.join(parts))
        assert once == again or (isinstance(once, str) and isinstance(again, str))


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_spelling_does_not_matter(choose: random.Random) -> None:
    """`5 < a`, `NOT (a <= 5)`, other case, parentheses and aliases are the same query (I2)."""
    column = choose.choice(tuple(LITERALS))
    op = choose.choice(OPERATORS)
    literal = choose.choice(LITERALS[column])
    plain = signature(f"{column} {op} {literal}")
    spellings = (
        f"{literal} {TURNED[op]} {column}",
        f"NOT ({column} {OPPOSITE[op]} {literal})",
        f"NOT NOT (({column.upper()})) {op} (({literal}))",
        f'quotes."{column}" {op} {literal} -- a comment',
        f"{column}\n{op}/* */{literal}",
    )
    for spelling in spellings:
        assert plain == signature(spelling), spelling


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_no_constant_is_lost(choose: random.Random) -> None:
    """A conjunction of comparisons has one slot for each of its constants, equal ones too (I3)."""
    parts = []
    for _ in range(choose.randint(1, 6)):
        column = choose.choice(("symbol", "price", "volume", "amount", "i"))
        parts.append(f"{column} {choose.choice(OPERATORS)} {choose.choice(LITERALS[column])}")
    query = compile_select(f"SELECT symbol FROM quotes WHERE {' AND '.join(parts)}", CATALOG)
    assert len(parts) == len(query.row.values) == query.plan.signature.count(":c")


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_fast_path_is_the_whole_path(choose: random.Random) -> None:
    """A prepared shape compiles a text to the same result as the whole path."""
    preparer = Preparer(CATALOG)
    template = predicate(choose, 2)
    tail = choose.choice(("", " EVERY '10 minutes'", " EXPIRE AFTER '3 days';"))
    item = choose.choice(("symbol", "price * {price} AS p", "*"))
    for number in range(5):
        text = f"CREATE CQ c{number} AS SELECT {item} FROM quotes WHERE {template}{tail}"
        text = filled(text, choose)
        assert outcome(Preparer(CATALOG), text) == outcome(preparer, text), text


_OVER_GROUPS = (
    "SELECT symbol, count(*) AS n FROM quotes WHERE price > {price} GROUP BY symbol"
    " HAVING count(*) FILTER (WHERE volume > {volume} AND symbol IN ({symbol}, {symbol})) > {count}",
    "SELECT sum(volume + {i}) AS s FROM quotes GROUP BY i % {i}, flag HAVING sum(volume + {i}) > {volume}",
    "SELECT max(price) AS m FROM quotes HAVING m > {price} OR min(price + {price}) FILTER (WHERE amount < {amount})"
    " BETWEEN {price} AND max(price * {price})",
    "SELECT symbol FROM quotes GROUP BY symbol"
    " HAVING max(i) FILTER (WHERE d = {d}) > {i} AND max(i) FILTER (WHERE d = {d}) < {i}",
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(_OVER_GROUPS), seeds)
def test_groups_differ_in_no_constant(template: str, choose: random.Random) -> None:
    """Aggregate queries that differ only in constants, wherever these stand, share a group, on the fast path too."""
    preparer, signatures = Preparer(CATALOG), set()
    for number in range(4):
        text = filled(f"CREATE CQ c{number} AS {template} EVERY '1 minute'", choose)
        assert outcome(Preparer(CATALOG), text) == outcome(preparer, text), text
        try:
            _, query = Preparer(CATALOG).create(CqText.cut(text))
        except InputError:
            continue
        assert len(query.row.values) == query.plan.signature.count(":c"), text
        signatures.add(query.plan.group_id)
    assert len(signatures) <= 1 or " IN (" in template  # a list of two equal values is `=`


@pytest.mark.parametrize(
    ("template", "first", "second"),
    [
        ("amount / volume < {}", "1.5", "12345678901234567890"),
        ("i + 1 < {}", "5", "1" + "0" * 40),
        ("i + 1 IN ({})", "5", "1.5"),
        ("volume = {}", "5", "1e309"),
        ("volume = {}", "5", "1" * 39),
        ("repeat(repeat(symbol, {}), 1000) = 'a'", "2", "1000"),
        ("replace(symbol, 'a', {}) = 'b'", "'x'", f"'{'x' * 20_000}'"),
    ],
)
def test_wide_constants_on_the_fast_path(template: str, first: str, second: str) -> None:
    """A constant too wide, or of a wrong kind, for its place is treated as on the whole path."""
    preparer = Preparer(CATALOG)
    texts = [f"CREATE CQ c AS SELECT i FROM quotes WHERE {template.format(constant)}" for constant in (first, second)]
    preparer.create(CqText.cut(texts[0]))
    assert outcome(Preparer(CATALOG), texts[1]) == outcome(preparer, texts[1])


def test_a_constant_of_two_places_on_the_fast_path() -> None:
    """A literal before IN is compared with columns and with literals of the list: both decide its type."""
    preparer = Preparer(CATALOG)
    texts = [
        f"CREATE CQ c AS SELECT i FROM quotes WHERE {first} IN (i, 1, {last})"
        for first, last in (("5", "5e0"), ("9223372036854775808", "1e40"))
    ]
    for text in (texts[0], *texts):
        assert outcome(Preparer(CATALOG), text) == outcome(preparer, text)


def outcome(preparer: Preparer, text: str) -> object:
    try:
        return repr(preparer.create(CqText.cut(text)))
    except InputError as error:
        return error.code, error.message, error.detail, error.hint


def test_known_shapes_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second text of a shape is not parsed again."""
    preparer = Preparer(catalog())
    preparer.create(CqText.cut("CREATE CQ a AS SELECT symbol FROM quotes WHERE symbol = 'a' AND price < 5"))
    monkeypatch.setattr(prepared, "parse", None)  # would raise if it were called
    text = "CREATE CQ b AS SELECT symbol FROM quotes WHERE symbol = 'it''s' AND price < 7.5"
    _, query = preparer.create(CqText.cut(text))
    assert ("it's", 7.5) == query.row.values


def test_dropped_stream_takes_its_shapes_along() -> None:
    """A text over a stream that was created anew is compiled for the new stream."""
    streams = catalog()
    preparer = Preparer(streams)
    text = "CREATE CQ a AS SELECT symbol FROM quotes WHERE symbol = 'a'"
    before = preparer.create(CqText.cut(text))[1]
    streams.remove(QUOTES)
    assert ("unknown-stream",) == outcome(preparer, text)[:1]  # type: ignore[index]
    recreated = type(QUOTES)("s_9", "quotes", QUOTES.columns, "quotes", "json", {"0": 0}, "2026-11-22T00:00:00Z")
    streams.add(recreated)
    after = preparer.create(CqText.cut(text))[1]
    assert ("s_1", "s_9") == (before.plan.stream_id, after.plan.stream_id)


PIECES = (
    "SELECT FROM quotes WHERE symbol price volume flag d at nope 'x' 5 -5 1.5 1e999 NULL TRUE ( ) , . * = <> < > <=> "
    "AND OR NOT IN BETWEEN LIKE ESCAPE RLIKE IS DISTINCT CASE WHEN THEN ELSE END CAST( AS INT DATE TIMESTAMP upper( "
    "coalesce( count( foo( trim( FROM + - / % div || [ ] { } ; -- /* \" ` ' @ : ? :: INTERVAL EXISTS OVER UNION JOIN"
).split()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25), st.sampled_from(("", "SELECT symbol FROM quotes WHERE ")))
def test_nonsense_is_refused(pieces: list[str], head: str) -> None:
    """Whatever the text, the compiler answers or raises an InputError."""
    try:
        compile_select(head + " ".join(pieces), CATALOG)
    except InputError as error:
        assert error.code


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_predicates_may_be_selected(choose: random.Random) -> None:
    """A predicate compiles as a column of the SELECT list too, with constants of columns' types only."""
    where = filled(predicate(choose, 2), choose)
    try:
        query = compile_select(f"SELECT {where} AS p FROM quotes", CATALOG)
    except InputError as error:
        assert error.code == signature(where) or error.code == "unsupported-query"
        return
    for node in walk(query.select.items[0].expression):
        assert getattr(node, "type", None) not in ("NUMERIC", "")
