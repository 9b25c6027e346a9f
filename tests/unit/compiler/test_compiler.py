"""The compiler by its golden cases, and by tests that no case can express."""

from __future__ import annotations

import json
import time

import pytest

from grouping.access.explain import explain, explain_stages
from grouping.compiler.compiler import STAGES, compile_select, stage_texts
from grouping.model.errors import InputError
from tests.cases import Case, load, refusal
from tests.quotes import ASSETS, QUOTES, catalog

_STAGES = [stage.name for stage in STAGES]


def _after(stage: str, text: str) -> str:
    """Return the tree after a stage, of a SELECT or of a predicate on quotes."""
    select = text if stage == "plan" or text.startswith("SELECT") else f"SELECT symbol FROM quotes WHERE {text}"
    sources = catalog(ASSETS) if "assets" in select else catalog()
    return next(tree for name, tree in stage_texts(select, sources) if name == stage)


@pytest.mark.parametrize("case", [case for stage in _STAGES for case in load(stage)], ids=str)
def test_case(case: Case, pytestconfig: pytest.Config) -> None:
    """After each stage the tree is as the case says, or that stage refuses the query."""
    assert case.stage == case.path.parent.name
    before = _STAGES[: _STAGES.index(case.stage)]
    if before and case.expected.startswith("error: "):
        _after(before[-1], case.input)  # the stage itself refuses
    try:
        actual = _after(case.stage, case.input)
    except InputError as error:
        actual = refusal(error)
    case.check(actual, rewrite=pytestconfig.getoption("--rewrite", default=False))


@pytest.mark.parametrize(
    "where",
    [
        "split(symbol, '{}')[0] = 'x'",
        "get_json_object(symbol, '$.{}') = 'x'",
        "date_format(_time, 'yyyy{}') = 'x'",
        "map(symbol, price)['{}'] > 1",
    ],
)
def test_a_literal_of_a_shape_is_hidden(where: str) -> None:
    """A guess of another subscriber's constant is confirmed by no signature, though the groups differ."""
    plans = [
        compile_select(f"SELECT symbol FROM quotes WHERE {where.format(text)}", catalog()).plan for text in ("MM", "HH")
    ]
    assert 2 == len({plan.group_id for plan in plans}) == len({plan.signature for plan in plans})
    assert not [plan.signature for plan in plans if "MM" in plan.signature or "HH" in plan.signature]


@pytest.mark.parametrize(
    "where",
    [
        " AND ".join(["price > 1"] * 10_000),
        " OR ".join(f"price > {n} AND volume < {n}" for n in range(5000)),
        f"symbol IN ({', '.join(repr(str(n)) for n in range(10_000))})",
        f"upper(symbol) NOT IN ({', '.join(repr(str(n)) for n in range(10_000))})",
        "NOT " * 90 + "flag",
        "(" * 90 + "flag" + ")" * 90,
    ],
    ids=["and", "or", "in", "not in", "not", "parentheses"],
)
def test_large_predicates_are_compiled(where: str) -> None:
    """A large predicate takes about half a second of a core; quadratic time would be minutes."""
    started = time.process_time()
    compile_select(f"SELECT symbol FROM quotes WHERE {where}", catalog())
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    "where",
    [
        "NOT " * 20_000 + "flag",
        "(" * 20_000 + "flag" + ")" * 20_000,
        "+".join(["price"] * 20_000) + " > 1",
        "abs(" * 5000 + "price" + ")" * 5000 + " > 1",
        "CASE WHEN " * 3000 + "flag" + " THEN flag END" * 3000,
        "price" + " BETWEEN (price" * 90 + " BETWEEN 1 AND 2" + ") AND 2" * 90,
    ],
    ids=["not", "parentheses", "chain", "functions", "case", "between"],
)
def test_deep_predicates_are_refused(where: str) -> None:
    """A predicate nested too deep is refused by its depth, not by a stack overflow."""
    with pytest.raises(InputError) as caught:
        compile_select(f"SELECT symbol FROM quotes WHERE {where}", catalog())
    assert caught.value.code in ("unsupported-query", "type-mismatch")


def test_repeated_operands_are_bounded() -> None:
    """BETWEEN repeats its operand; nested ones do not explode."""
    where = "flag"
    for _ in range(40):
        where = f"({where}) BETWEEN FALSE AND TRUE"
    with pytest.raises(InputError) as caught:
        compile_select(f"SELECT symbol FROM quotes WHERE {where}", catalog())
    assert caught.value.code == "unsupported-query"


def test_streams_do_not_share_groups() -> None:
    """Queries of the same text over two streams are in two groups (I4)."""
    quotes, trades = (compile_select(f"SELECT * FROM {name} WHERE i = 1", catalog()) for name in ("quotes", "trades"))
    assert quotes.plan.group_id != trades.plan.group_id


def test_select_list_is_no_part_of_the_group() -> None:
    """Queries that differ in the SELECT list share a group and not a SELECT list."""
    one = compile_select("SELECT symbol FROM quotes WHERE i = 1", catalog())
    other = compile_select("SELECT price FROM quotes WHERE i = 1", catalog())
    assert one.plan == other.plan
    assert one.select.select_id != other.select.select_id


def test_explain_names_the_index() -> None:
    """EXPLAIN names the conjuncts looked up, and the conjuncts checked afterwards."""
    query = compile_select("SELECT symbol FROM quotes WHERE symbol = 'a' AND price < 5 AND symbol LIKE 'b%'", catalog())
    plan = explain(query, QUOTES)["plan"]
    assert ("composite", ["symbol = :c0", "price < :c1"], ["symbol LIKE :c2"]) == (
        plan["index"],
        plan["keys"],
        plan["residual"],
    )


def test_explain_stages_shows_every_stage() -> None:
    """EXPLAIN STAGES has the tree after each stage, in order, as data and as text; of any size it fits a reply."""
    members = ", ".join(f"'{number:08}'" for number in range(40_000))
    answer = explain_stages(f"SELECT symbol FROM quotes WHERE 5 < price AND symbol IN ({members})", catalog())
    stages = answer["plan"]["stages"]
    assert ["plan", "normalize", "order", "lift", "render"] == [stage["stage"] for stage in stages]
    assert all(stage["stage"] in answer["text"] for stage in stages)
    assert "WHERE all of\n  symbol IN :c0\n  price > :c1\n:c0 is SET<STRING> ('00000000'," in stages[3]["tree"]
    assert len(answer["text"]) < 300_000


def test_functions_of_texts_may_be_nested_where_texts_stay_short() -> None:
    """The limit is on the length of a text, not on the number of functions."""
    cleaned = "symbol"
    for character in "$€£,._-+ /":
        cleaned = f"replace({cleaned}, '{character}', '')"
    cased = "symbol || name"
    for _ in range(40):
        cased = f"upper(lower({cased}))"
    for value in (cleaned, cased, "repeat(concat(repeat(symbol, 2), 'a'), 2)", "lpad(repeat(symbol, 1000), 1000)"):
        assert compile_select(f"SELECT {value} AS v FROM quotes WHERE {value} = 'a'", catalog())


def test_explain_of_a_long_conjunct_is_short() -> None:
    """EXPLAIN of a disjunction grows linearly with its text: each slot is shown with its surroundings only."""
    query = compile_select(
        "SELECT i FROM quotes WHERE " + " OR ".join(f"(i = {n} AND price > {n})" for n in range(500)), catalog()
    )
    explained = explain(query, QUOTES)
    assert len(json.dumps(explained)) < 1_000_000
    constants = explained["plan"]["tree"]["constants"]
    assert len(constants) == 1000
    assert all(f":{each['slot']}" in each["in"] for each in constants)
    assert constants[500]["in"][0] == constants[500]["in"][-1] == "…"


def test_explain_shows_groups() -> None:
    """EXPLAIN names keys, aggregates, the constants that decide the store, and the conditions decided at the tick."""
    select = "SELECT name, sum(volume) AS s FROM quotes WHERE symbol = 'INTC' GROUP BY name HAVING count(*) > 10"
    query = compile_select(select, catalog())
    explained = explain(query, QUOTES)
    assert explained["plan"]["groups"] == {
        "keys": ["name"],
        "aggregates": ["count(*)", "sum(volume)"],
        "having": ["count(*) > :c1"],
        "stored_by": ["INTC"],
    }
    assert explained["text"].splitlines()[3:6] == [
        "  2. aggregated by name: count(*), sum(volume); matches with equal keys wait for the tick as one row",
        "  3. at the tick, the aggregates where count(*) > :c1",
        "  4. name, s to the destinations",
    ]
    assert explained["plan"]["tree"]["constants"] == [
        {"slot": "c0", "in": "symbol = :c0", "decided_by": "index"},
        {"slot": "c1", "in": "count(*) > :c1", "decided_by": "having"},
    ]


@pytest.mark.parametrize(
    "where",
    [
        "split(symbol, '{}')[0] = 'a'",
        "get_json_object(symbol, '$.{}') = 'a'",
        "str_to_map(symbol, ',', ':')['{}'] = 'a'",
        "date_format(at, '''{}'' yyyy') = 'a'",
        "size(transform(array(symbol), x -> named_struct('k', '{}'))) > 1",
    ],
)
def test_a_signature_holds_no_literal(where: str) -> None:
    """A literal of the shape is a hash in the signature: groups differ, and nobody reads it there."""
    plans = [
        compile_select(f"SELECT symbol FROM quotes WHERE {where.format(text)}", catalog()).plan for text in _SECRETS
    ]
    assert len({plan.group_id for plan in plans}) == len({plan.signature for plan in plans}) == 2
    assert not any(text in plan.signature for plan in plans for text in _SECRETS)


_SECRETS = ("SECRET", "HIDDEN")


@pytest.mark.parametrize(
    ("where", "constants"),
    [
        ("5e0 IN (i, -1, 1e40)", (5.0, (-1.0, 1e40))),
        ("5e0 IN (i, 1e40)", (5.0, 1e40)),
        ("5e0 IN (i, -1, 1e3)", (5, (-1, 1000))),
        ("-5 IN (i, -1, 1e3)", (-5, (-1, 1000))),
    ],
)
def test_constants_of_in_with_a_constant_before_it(where: str, constants: tuple[object, ...]) -> None:
    """The constants of IN are exact numbers; they are DOUBLEs if the first is and another fits no DECIMAL."""
    row = compile_select(f"SELECT symbol FROM quotes WHERE {where}", catalog()).row
    assert [*map(repr, constants)] == [*map(repr, dict.fromkeys(row.values))]
