"""FROM, JOIN, views and subqueries: queries that share a group, and refused queries."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.expression import Column
from grouping.model.ids import StreamId
from grouping.model.table import Table, View
from grouping.plan.computation import Computation
from grouping.plan.lookup_join import JoinKey, LookupJoin


def _columns(text: str) -> tuple[StreamColumn, ...]:
    return tuple(StreamColumn(*each.split()) for each in text.split(", "))


_QUOTES = Stream(
    "s_1", "quotes", _columns("symbol STRING, price DOUBLE, volume BIGINT"), "quotes", "json", {"0": 0}, ""
)
_TRADES = Stream("s_2", "eu.trades-1", _columns("symbol STRING"), "trades", "json", {"0": 0}, "")
_PROFILES = _columns("symbol STRING, industry STRING, staff INT")
_OWNERS = _columns("owner STRING, symbol STRING, shares INT")
_CATALOG = Catalog(
    [_QUOTES, _TRADES],
    [
        Table("t_1", "profiles", _PROFILES, ("symbol",), "profiles", "json", ""),
        Table("t_2", "owners", _OWNERS, ("owner", "symbol"), "owners", "json", ""),
    ],
    [
        View("hot", "SELECT symbol AS s, price * 2 AS twice FROM quotes WHERE price > 5", ("quotes",), ""),
        View("hotter", "SELECT * FROM hot WHERE twice > 100", ("hot",), ""),
        View(
            "listed", "SELECT q.*, p.industry FROM quotes q JOIN profiles p USING (symbol)", ("quotes", "profiles"), ""
        ),
        View("software", "SELECT * FROM profiles WHERE industry = 'Software'", ("profiles",), ""),
    ],
)


def _group(select: str) -> str:
    return compile_select(select, _CATALOG).plan.group_id


_EQUAL = [
    (
        "SELECT s FROM hot WHERE twice > 10",
        "SELECT s FROM (SELECT symbol AS s, price * 2 AS t FROM quotes WHERE 7 < price) AS x WHERE x.t > 3",
        "SELECT symbol FROM quotes WHERE price * 2 > 10 AND price > 5",
    ),
    (
        "SELECT s FROM hotter",
        "SELECT s FROM (SELECT * FROM (SELECT * FROM hot) WHERE twice > 1)",
        "SELECT s FROM hot WHERE twice > 2",
    ),
    (
        "SELECT q.symbol FROM quotes q JOIN profiles p ON q.symbol = p.symbol WHERE p.industry = 'a' AND price < 1",
        "SELECT symbol FROM quotes INNER JOIN profiles USING (symbol) WHERE 1 > price AND industry = 'b'",
        "SELECT x.symbol FROM quotes x JOIN profiles y ON (y.symbol = x.symbol) AND y.industry = 'c' WHERE x.price < 2",
        "SELECT symbol FROM listed WHERE industry = 'd' AND price < 3",
        "SELECT q.symbol FROM quotes q JOIN software p ON q.symbol = p.symbol WHERE price < 5",
        "SELECT l.symbol FROM (SELECT * FROM listed WHERE price < 4) l WHERE l.industry = 'e'",
    ),
    (
        "SELECT q.symbol FROM quotes q JOIN owners o ON o.symbol = q.symbol AND o.shares < volume WHERE o.owner = 'a'",
        "SELECT q.symbol FROM quotes q JOIN owners o ON q.volume > o.shares AND o.owner = 'b' AND q.symbol = o.symbol",
        "SELECT q.symbol FROM quotes q JOIN (SELECT * FROM owners WHERE NOT (owner <> 'c')) o"
        " ON NOT (q.volume <= o.shares) AND q.symbol = o.symbol",
    ),
    (
        "SELECT q.symbol FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol AND o.shares > length(o.owner)",
        "SELECT q.symbol FROM quotes q LEFT JOIN (SELECT * FROM owners WHERE NOT (shares <= length(owner))) o"
        " ON o.symbol = q.symbol",
        "SELECT q.symbol FROM quotes q LEFT JOIN (SELECT * FROM owners WHERE length(owner) < shares) o USING (symbol)",
    ),
    (
        "SELECT q.symbol FROM quotes q LEFT JOIN profiles p ON p.symbol = q.symbol AND p.staff > 5 WHERE p.staff < 9",
        "SELECT q.symbol FROM quotes q LEFT JOIN (SELECT * FROM profiles WHERE NOT (staff <= 6)) p USING (symbol)"
        " WHERE p.staff < 9",
    ),
    (
        "SELECT q.symbol FROM quotes q JOIN owners o ON o.symbol = q.symbol"
        " AND CASE WHEN o.shares > volume THEN startswith(o.owner, q.symbol) ELSE contains(o.owner, q.symbol) END",
        "SELECT q.symbol FROM quotes q JOIN owners o ON o.symbol = q.symbol"
        " AND CASE WHEN o.shares > volume THEN startswith(o.owner, q.symbol) ELSE contains(o.owner, q.symbol) END"
        " <> FALSE",
    ),
    (
        "SELECT q.symbol FROM quotes q LEFT JOIN profiles p USING (symbol) JOIN owners o ON o.symbol = q.symbol"
        " AND p.staff > q.volume AND q.price IS NULL",
        "SELECT q.symbol FROM quotes q LEFT JOIN profiles p USING (symbol) JOIN owners o ON o.symbol = q.symbol"
        " WHERE q.price IS NULL AND NOT (p.staff <= q.volume)",
    ),
    (
        "SELECT symbol FROM quotes WHERE startswith(symbol, 'a')",
        "SELECT symbol FROM quotes WHERE startswith(symbol, 'b') = TRUE",
        "SELECT symbol FROM quotes WHERE FALSE <> startswith(symbol, 'c')",
        "SELECT symbol FROM quotes WHERE NOT (startswith(symbol, 'd') = FALSE)",
    ),
]


@pytest.mark.parametrize("queries", _EQUAL)
def test_one_group(queries: tuple[str, ...]) -> None:
    """Named, nested or written out, under any alias and whatever the constants: one group."""
    assert len({_group(query) for query in queries}) == 1


def test_different_groups() -> None:
    """LEFT, another table, another key and no join at all are groups of their own."""
    queries = [
        "SELECT q.symbol FROM quotes q",
        "SELECT q.symbol FROM quotes q JOIN profiles p ON q.symbol = p.symbol",
        "SELECT q.symbol FROM quotes q LEFT JOIN profiles p ON q.symbol = p.symbol",
        "SELECT q.symbol FROM quotes q JOIN profiles p ON q.symbol = p.industry",
        "SELECT q.symbol FROM quotes q JOIN owners o ON q.symbol = o.symbol",
        "SELECT q.symbol FROM quotes q JOIN profiles p USING (symbol) JOIN profiles i ON i.symbol = p.industry",
    ]
    assert len({_group(query) for query in queries}) == len(queries)


def test_a_column_keeps_the_name_that_its_source_shows() -> None:
    """A view's alias is the result's name; `*` is all columns, with columns joined by USING once."""
    names = [item.name for item in compile_select("SELECT s, Twice FROM hot", _CATALOG).select.items]
    assert names == ["s", "twice"]
    names = [
        item.name for item in compile_select("SELECT * FROM quotes JOIN profiles USING (symbol)", _CATALOG).select.items
    ]
    assert names == ["symbol", "price", "volume", "industry", "staff"]


def test_left_join_with_a_constant_in_on() -> None:
    """The row of a whole key is one of NULLs where ON's constant leaves it out: the constant is lifted all the same."""
    joined = "quotes q LEFT JOIN profiles p ON p.symbol = q.symbol AND p.staff > {}"
    select = f"SELECT p.staff FROM {joined} WHERE industry IS NULL"
    assert _group(select.format(5)) == _group(select.format(7))
    assert (
        "LEFT JOIN profiles ON symbol = profiles.symbol WHERE"
        in compile_select(select.format(5), _CATALOG).plan.signature
    )


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_a_constant_in_an_equality_beside_the_whole_key(kind: str) -> None:
    """The equality makes no separate join: the rows are looked up by the key, and the constant is lifted."""
    select = f"SELECT q.symbol FROM quotes q {kind} profiles p ON p.staff = q.volume + {{}} AND p.symbol = q.symbol"
    select += " WHERE p.industry IS NULL"
    one, other = (compile_select(select.format(number), _CATALOG).plan for number in (1, 2))
    assert one.computation == other.computation
    assert one.group_id == other.group_id
    needed = "SELECT q.symbol FROM quotes q JOIN profiles p ON p.symbol = concat(q.symbol, '{}')"
    assert _group(needed.format("-x")) != _group(needed.format("-y")), "without it nothing would look rows up"


def test_a_constant_in_an_equality_beside_a_part_of_the_key() -> None:
    """Rows are looked up by the part, so it is lifted; of a LEFT JOIN it stands in ON."""
    select = "SELECT q.symbol FROM quotes q {} owners o ON o.symbol = q.symbol AND o.owner = concat(q.symbol, '{}')"
    for kind, signature in (
        ("JOIN", "JOIN owners ON symbol = owners.symbol WHERE concat(symbol, :c0) = owners.owner"),
        ("LEFT JOIN", "LEFT JOIN owners ON symbol = owners.symbol AND concat(symbol, :c0) = owners.owner"),
    ):
        one, other = (compile_select(select.format(kind, text), _CATALOG).plan for text in ("-x", "-y"))
        assert one == other
        assert one.signature == f"SELECT … FROM quotes {signature}"


_MANY = "SELECT q.symbol FROM quotes q LEFT JOIN {} WHERE price < {}"


def test_left_joins_of_several_rows_with_constants_in_on() -> None:
    """Queries that differ only in constants share a group, in any spelling; a different condition makes a new group."""
    spelt = [
        ("owners o ON o.symbol = q.symbol AND o.shares > 5 AND o.owner <> 'a'", 3),
        ("owners x ON NOT (x.shares <= 6) AND 'b' <> x.owner AND q.symbol = x.symbol", 4),
        ("(SELECT * FROM owners WHERE shares > 7) o ON o.symbol = q.symbol AND o.owner <> 'c'", 5),
    ]
    plans = [compile_select(_MANY.format(*each), _CATALOG) for each in spelt]
    assert len({query.plan.group_id for query in plans}) == 1
    assert [query.row.values for query in plans] == [(3.0, 5, "a"), (4.0, 6, "b"), (5.0, 7, "c")]
    assert plans[0].plan.signature == (
        "SELECT … FROM quotes LEFT JOIN owners ON symbol = owners.symbol"
        " AND owners.shares > :c1 AND owners.owner <> :c2 WHERE price < :c0"
    )
    others = ["o.shares >= 5", "o.shares > 5", "(o.shares > 5 OR o.owner = 'a')", "q.volume > 5"]
    groups = {_group(_MANY.format(f"owners o ON o.symbol = q.symbol AND {on}", 3)) for on in others}
    assert len({*groups, plans[0].plan.group_id}) == 5


def test_a_table_twice_with_constants_in_on() -> None:
    """Which of two LEFT JOINs a condition is of is part of the signature, not a question of its constant."""
    joined = "owners o ON o.symbol = q.symbol AND volume > {} LEFT JOIN owners m ON m.symbol = q.symbol AND volume > {}"
    one, other = (compile_select(_MANY.format(joined.format(*pair), 1), _CATALOG) for pair in ((5, 7), (7, 5)))
    assert one.plan == other.plan
    assert (one.row.values, other.row.values) == ((1.0, 5, 7), (1.0, 7, 5))


def test_ids_of_joins_that_groups_decide_nothing_of() -> None:
    """A join without the newer fields keeps its id from earlier versions."""
    keys = (JoinKey(Column("symbol", "STRING"), "symbol", "STRING"),)
    plain = LookupJoin("t_2", "owners", keys, outer=True, single=False)
    assert Computation.of(StreamId("s_1"), (plain,)).computation_id == "j_9ad1f18137fec45bd00ec8d4"
    computations = [Computation.of(StreamId("s_1"), (replace(plain, **more),)) for more in _MORE]
    assert len({each.computation_id for each in computations}) == len(_MORE)


_MORE: list[dict[str, bool]] = [{}, {"unique": True}, {"undecided": True}, {"unique": True, "undecided": True}]


def test_an_equality_beside_the_whole_key() -> None:
    """The equality looks no row up: in ON of an inner join it means the same as in WHERE, for any types."""
    on = "SELECT q.symbol FROM quotes q JOIN profiles p ON p.symbol = q.symbol {} p.industry = q.symbol"
    assert _group(on.format("AND")) == _group(on.format("WHERE"))
    assert _group(on.format("AND price = p.staff AND")) == _group(on.format("WHERE price = p.staff AND"))


def test_the_order_of_on_tells_no_select_lists_apart() -> None:
    """Columns of a LEFT JOIN are the same, and so is the destination, in whatever order ON has its conditions."""
    select = "SELECT p.staff FROM quotes q LEFT JOIN {}"
    lists = {
        compile_select(select.format(joined), _CATALOG).select.select_id
        for joined in (
            "profiles p ON p.symbol = q.symbol AND p.staff > 5 AND q.price < 3",
            "profiles p ON 3 > q.price AND NOT p.staff <= 5 AND q.symbol = p.symbol",
            "(SELECT * FROM profiles WHERE staff > 5) p ON p.symbol = q.symbol AND q.price < 3",
            "(SELECT * FROM profiles WHERE 5 < staff) AS p ON q.price < 3 AND p.symbol = q.symbol",
        )
    }
    assert len(lists) == 1


@pytest.mark.parametrize(
    ("select", "code", "expected"),
    [
        ("SELECT q.symbol FROM profiles p JOIN quotes q USING (symbol)", "unsupported-query", "begins with a table"),
        ("SELECT q.symbol FROM quotes q RIGHT JOIN profiles p USING (symbol)", "unsupported-query", "RIGHT JOIN"),
        ("SELECT q.symbol FROM quotes q FULL JOIN profiles p USING (symbol)", "unsupported-query", "FULL JOIN"),
        ("SELECT q.symbol FROM quotes q CROSS JOIN profiles p", "unsupported-query", "without an equality"),
        ("SELECT q.symbol FROM quotes q NATURAL JOIN profiles p", "unsupported-query", "NATURAL JOIN"),
        (
            "SELECT q.symbol FROM quotes q, profiles p WHERE q.symbol = p.symbol",
            "unsupported-query",
            "a join by comma",
        ),
        (
            "SELECT q.symbol FROM quotes q JOIN profiles p ON q.price > p.staff",
            "unsupported-query",
            "without an equality",
        ),
        ("SELECT q.symbol FROM quotes q JOIN profiles p ON q.price = p.staff", "unsupported-query", "DOUBLE with INT"),
        (
            "SELECT q.symbol FROM quotes q JOIN eu.trades-1 t USING (symbol)",
            "unsupported-query",
            "a join of two streams",
        ),
        (
            "SELECT s FROM (SELECT symbol AS s FROM quotes q JOIN profiles p USING (symbol), owners o WHERE price < 3)",
            "unsupported-query",
            "a join by comma",
        ),
        ("SELECT symbol FROM quotes q JOIN profiles p ON q.symbol = p.symbol", "unknown-column", "in several sources"),
        ("SELECT p.price FROM quotes q JOIN profiles p USING (symbol)", "unknown-column", '"p.price" does not exist'),
        ("SELECT x.price FROM quotes q JOIN profiles p USING (symbol)", "unknown-column", '"x.price" does not exist'),
        ("SELECT price FROM hot", "unknown-column", '"price" does not exist'),
        ("SELECT s FROM hots", "unknown-stream", '"hots" does not exist'),
        (
            "SELECT * FROM quotes q JOIN profiles p ON q.symbol = p.symbol",
            "unsupported-query",
            'second column "symbol"',
        ),
        ("SELECT q.symbol FROM quotes q JOIN profiles q USING (symbol)", "syntax-error", "names two sources"),
        ("SELECT s FROM (SELECT symbol AS s FROM quotes LIMIT 5)", "unsupported-query", "LIMIT"),
    ],
)
def test_refused(select: str, code: str, expected: str) -> None:
    """Each refusal has its code, and names the part of the query."""
    with pytest.raises(InputError) as refused:
        compile_select(select, _CATALOG)
    assert refused.value.code == code
    assert expected in refused.value.message


_JOINED = "FROM quotes q JOIN profiles p ON p.symbol = q.symbol"


@pytest.mark.parametrize(
    ("select", "hint"),
    [
        (f"SELECT quotes.symbol {_JOINED}", "Write q.symbol: the alias replaces the name."),
        (f"SELECT PROFILES.symbol {_JOINED}", "Write p.symbol: the alias replaces the name."),
        (f"SELECT profile.symbol {_JOINED.replace(' p ', ' ').replace('p.', 'profiles.')}", 'Did you mean "profiles"?'),
        ("SELECT hot.s FROM hot h", "Write h.s: the alias replaces the name."),
        (f"SELECT p._time AS t {_JOINED}", "Write q._time."),
        (f"SELECT p.PRICE AS t {_JOINED}", "Write q.price."),
        (f"SELECT q.industry AS t {_JOINED}", "Write p.industry."),
        (f"SELECT p._tim AS t {_JOINED}", None),
        (f"SELECT _tim AS t {_JOINED}", 'Did you mean "_time"?'),
        (f"SELECT p.indstry AS t {_JOINED}", 'Did you mean "industry"?'),
        ("SELECT _time FROM hot", "A view has the columns that its SELECT lists: list _time there."),
        (
            "SELECT _KEY FROM (SELECT symbol FROM quotes) x",
            "A subquery has the columns that its SELECT lists: list _key there.",
        ),
    ],
)
def test_hints(select: str, hint: str | None) -> None:
    """A hint names the columns of the named source, or the source that has the column."""
    with pytest.raises(InputError) as refused:
        compile_select(select, _CATALOG)
    assert refused.value.code == "unknown-column"
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("select", "detail"),
    [
        (
            "SELECT x FROM nothing",
            "There are the streams eu.trades-1, quotes, the tables owners, profiles,"
            " the views hot, hotter, listed, software.",
        ),
        (
            "SELECT q.symbol FROM quotes q JOIN hot h ON h.s = q.symbol",
            '"h" is a view over stream "quotes". A CQ does not join two streams.',
        ),
        (
            "SELECT q.symbol FROM quotes q JOIN (SELECT symbol AS s FROM eu.trades-1) h ON h.s = q.symbol",
            '"h" is a subquery over stream "eu.trades-1". A CQ does not join two streams.',
        ),
    ],
)
def test_each_kind_of_source_goes_by_its_name(select: str, detail: str) -> None:
    """Streams, tables and views are not taken for each other."""
    with pytest.raises(InputError) as refused:
        compile_select(select, _CATALOG)
    assert refused.value.detail == detail
