"""Long runs of literals: a text read without them, with the runs put back, means the same as the whole text."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.errors import SqlglotError

from grouping.compiler.compiler import compile_select, stage_texts
from grouping.model.errors import InputError
from grouping.settings.settings import Settings
from grouping.statements.command import parse
from grouping.statements.literal_runs import cut_runs
from grouping.statements.statement_size import check_words
from grouping.statements.tokens import PlainSql
from tests.quotes import catalog

CATALOG = catalog()
WIDE = 120
"""Characters between literals: forty of them are a long text already."""
READ, CUT = f"/*{' ' * (WIDE - 4)}*/", " " * WIDE
"""The text between: a comment, to have literals read singly, or blanks."""

NUMBERS = ("5", "-5", "5.50", "-0.0", "5e0", "1.5e-3", "007", "9223372036854775808", "0.10", str(10**37), f"-{10**17}")
STRINGS = ("''", "'INTC'", "'it''s'", "'a, b'", "' = 5 OR '", "'2026-11-21'", "'-- x'", "'(\"'")
WRONG = ("'x'", "1e999", "1" * 60, "NULL", "symbol", "DATE '2026-11-21'", "5L", "-'5'", "i + 1", "(5)", ".5", "5.")
DAYS = ("'2026-11-21'", "'2026-11-22'")
NEEDLES = {
    **dict.fromkeys(("symbol", '"my col"', "`name`", "upper(name)"), STRINGS),
    **dict.fromkeys(("price", "volume", "amount", "q.volume", "Q.I", "i + 1", "price * 2", "5"), NUMBERS),
    **dict.fromkeys(("d", "at"), DAYS),
    "flag": NUMBERS,
}
"""Columns, each with literals to compare with, mostly of its type."""
AROUND = (
    *["{}"] * 4,
    "NOT {}",
    "NOT ({} AND price > 5)",
    "flag AND {} AND price > 5",
    "flag OR {} OR volume = 3",
    "{} OR {}",
    "CASE WHEN {} THEN 1 ELSE 2 END = 1",
    "({}) IS NULL",
    "{} AND price >",
    "{} price",
    "({} AND",
    "{} AND nothing = 'a'",
)
seeds = st.integers(0, 2**32).map(random.Random)


def _literals(choose: random.Random, needle: str) -> list[str]:
    """Return forty literals."""
    kind = choose.choice((*[NEEDLES[needle]] * 8, NUMBERS, NUMBERS + STRINGS))
    literals = [choose.choice(kind) for _ in range(40)]
    if choose.random() < 0.2:
        literals[choose.randrange(40)] = choose.choice(WRONG)
    return literals


def _select(choose: random.Random) -> str:
    """Return a SELECT with gaps, named ``gap``, between its literals."""
    *before, last = choose.choice(AROUND).split("{}")

    def part() -> str:
        needle = choose.choice(tuple(NEEDLES))
        literals = _literals(choose, needle)
        if choose.random() < 0.5:
            return f"{needle} {choose.choice(('', 'NOT '))}IN ({',{gap}'.join(literals)})"
        return " OR {gap} ".join(f"{needle} = {literal}" for literal in literals)

    where = "".join(piece + part() for piece in before) + last
    having = choose.choice(("", "", " GROUP BY symbol HAVING max(price) > 5"))
    return f"SELECT symbol FROM quotes q WHERE {where}{having}"


def _meaning(select: str) -> object:
    """Return all that a SELECT is compiled to, or is refused with."""
    try:
        return compile_select(select, CATALOG), list(stage_texts(select, CATALOG))
    except InputError as error:
        return error.code, error.message, error.detail, error.hint


@settings(max_examples=100, deadline=None)
@given(seeds)
def test_a_text_means_the_same_without_its_runs(choose: random.Random) -> None:
    """Literals read singly or cut out give the same plan, row, text of each stage and refusal."""
    select = _select(choose)
    assert _meaning(select.replace("{gap}", READ)) == _meaning(select.replace("{gap}", CUT))


@settings(max_examples=150, deadline=None)
@given(seeds)
def test_other_tokens_keep_their_places(choose: random.Random) -> None:
    """Tokens of the text without the runs equal those of the whole text, except literals and separators."""
    pieces = "' '' \" ` -- /* */ {# #} x . ( it''s 5".split() + ["\n", "\r", " OR ", " IN "]
    gap = choose.choice((CUT, CUT[1:] + "\n", "\r\n" + CUT))
    literals = [choose.choice((*NUMBERS, *STRINGS)) for _ in range(80)]
    runs = (
        f" x IN ({f',{gap}'.join(literals)}) ",
        f"{gap}OR{gap}".join(f"t.x = {literal}" for literal in literals),
    )
    text = "".join(choose.choice((*pieces, *runs)) for _ in range(choose.randint(1, 30))) + choose.choice(runs)
    try:
        whole = _tokens(text)
    except SqlglotError:
        return
    cut = cut_runs(text)
    assert len(text) == len(cut.text)
    within = [range(run.start, run.start + len(run.source)) for run in cut.runs.values()]
    assert [token for token in whole if not any(token[2] in span for span in within)] == _tokens(cut.text)
    for run in cut.runs.values():
        tokens = [
            text[start : end + 1] for _, _, start, end, *_ in whole if run.start <= start < run.start + len(run.source)
        ]
        between = (",", "OR", "t", ".", "x", "=")
        assert "".join(token for token in tokens if token not in between) == "".join(run.literals)


def _tokens(text: str) -> list[tuple[object, ...]]:
    return [
        (token.token_type, token.text, token.start, token.end, token.line, token.col)
        for token in PlainSql().tokenizer().tokenize(text)
    ]


def _long(form: str, count: int) -> str:
    if form == "IN":
        literals = ", ".join(f"'{number:05}'" for number in range(count))
        return f"SELECT symbol FROM quotes WHERE symbol IN ({literals})"
    return "SELECT symbol FROM quotes WHERE " + " OR ".join(f"volume = {number}" for number in range(count))


@pytest.mark.parametrize("form", ["IN", "OR"])
def test_sqlglot_reads_two_literals_of_a_run(form: str) -> None:
    """However long the run is, and however it is measured before."""
    text = f"CREATE CQ a AS {_long(form, 10_000)} EVERY '1 minute'"
    assert len(_tokens(cut_runs(text).text)) < 40
    assert 9_997 <= sum(len(run.literals) for run in cut_runs(text).runs.values())
    check_words(text, Settings().limits.statement_words)
    assert parse(text).select == _long(form, 10_000)  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["IN", "OR"])
def test_a_literal_takes_few_steps(form: str) -> None:
    """Each more takes the compiler at most as many calls of functions as its value, its place and its order need."""

    def calls(count: int) -> int:
        made = 0

        def note(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event == "call"

        select = _long(form, count)
        sys.setprofile(note)
        try:
            compile_select(select, CATALOG)
        finally:
            sys.setprofile(None)
        return made

    few, many = calls(2_000), calls(6_000)
    assert (many - few) / 4_000 < {"IN": 5, "OR": 12}[form]
