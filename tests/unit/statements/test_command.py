"""Statements are read as written, or refused in house form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.errors import InputError
from grouping.model.query import CreateCq, CreateStream, Drop, Show, Statement
from grouping.statements.command import parse
from schemas.codec import Command, MalformedCommand, decode_command, encode_command
from tests.cases import Case, load, refusal

WORDS = (
    "CREATE DROP ALTER CQ STREAM OR REPLACE AS SELECT FROM WHERE DO PUBLISH SHARED DIGEST LATEST TOP BY EVEN IF EMPTY "
    "START EVERY CRON AT TIME ZONE EXPIRE AFTER SET SHOW CQS LIKE LIMIT EXPLAIN DESCRIBE WITH BEGIN FETCH DECIMAL "
    "'1_hour' '2026-11-21T10:00:00Z' 'x' \"q\" `b` ( ) [ ] { } ; , . - -- /* */ ' \" ` = $$ "
    "{{ {# 1e5 0x1 x'1' N'a' \0 📈 \n"
).split(" ")


def render(statement: Statement) -> str:
    """Return a statement with a line for each field that is not None."""
    values = {name: getattr(statement, name) for name in type(statement).__match_args__}
    if isinstance(statement, CreateStream):
        values["columns"] = tuple((name, str(sql_type)) for name, sql_type in statement.columns)
        values["partition_key"] = statement.partition_key or None
    lines = [f"{name}: {value!r}" for name, value in values.items() if value not in (None, {})]
    return "\n".join([type(statement).__name__, *lines])


def parsed(text: str) -> str:
    try:
        return render(parse(text))
    except InputError as error:
        return refusal(error)


@pytest.mark.parametrize("case", load("command"), ids=str)
def test_case(case: Case, pytestconfig: pytest.Config) -> None:
    """Each statement, and each refusal, is as its golden case says."""
    case.check(parsed(case.input), rewrite=bool(pytestconfig.getoption("--rewrite", default=False)))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)))
def test_any_text_is_a_statement_or_a_refusal(text: str) -> None:
    """No text raises anything but InputError, with a message in house form."""
    for attempt in (text, f"CREATE CQ a AS SELECT b FROM c {text}", f"CREATE STREAM a (b STRING {text}"):
        try:
            parse(attempt)
        except InputError as error:
            codes = "syntax-error unknown-statement bad-interval bad-time stream-mismatch unsupported-query".split()
            assert error.code in codes
            assert not error.message.endswith(".")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "CREATE CQ a AS SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
        "CREATE CQ a AS SELECT '" + "x" * 1_000_000,
        "DROP CQ " + "a" * 1_000_000,
        "DROP STREAM " + "a." * 200_000,
        "SHOW CQS LIMIT " + "9" * 1_000_000,
        "CREATE STREAM a (b " + "c" * 1_000_000,
        "CREATE CQ a AS SELECT b FROM c EVERY '" + "9" * 1_000_000 + "'",
        "CREATE CQ a AS SELECT b FROM c START '" + "9" * 1_000_000 + "'",
    ],
    ids=lambda text: text[:45],
)
def test_large_text_is_answered_shortly(text: str) -> None:
    """Ten thousand brackets or a megabyte are no fault of ours, and an answer doesn't repeat them."""
    try:
        parse(text)
    except InputError as error:
        assert len(f"{error.message}{error.detail}{error.hint}") < 1000


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=50))
def test_quoted_name_is_read_back(name: str) -> None:
    """A name in quotes, its quotes doubled, is read as it was, in either quotes."""
    assert parse('DROP CQ "' + name.replace('"', '""') + '"') == Drop("cq", name)
    assert parse("DROP CQ `" + name.replace("`", "``") + "`") == Drop("cq", name)


@pytest.mark.parametrize(
    "text",
    [
        "GRANT READ ON STREAM s TO 'ann', '{}'",
        "REVOKE READ ON VIEW v FROM '{}' CASCADE",
        'SET QUOTA cqs = 5 FOR "{}"',
        'SHOW QUOTA FOR "{}"',
        "SHOW CQS OF `{}`",
        "DROP CQS LIKE 'a%' OF \"{}\"",
    ],
)
def test_the_name_of_a_subscriber_is_one_that_a_command_can_have(text: str) -> None:
    """A subscriber in a statement has the limits of the subscriber of a command (schemas/codec.py)."""
    name = "ü" * 1024
    assert name in str(parse(text.format(name)))
    for wrong, message in ((name + "x", "is too long"), ("a\x01b", "has a control character"), ("a\x85", "control")):
        with pytest.raises(InputError, match=message) as raised:
            parse(text.format(wrong))
        assert "syntax-error" == raised.value.code
        with pytest.raises(MalformedCommand):
            decode_command(encode_command(Command("1", wrong, "SHOW CQS")))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_string_is_read_back(value: str) -> None:
    """A string, its quotes doubled, is read as it was: backslashes, line ends and NUL are ordinary."""
    assert parse("SHOW CQS AFTER '" + value.replace("'", "''") + "'") == Show("cqs", after=value)


@given(
    st.sampled_from(
        ["SELECT a FROM b", "SELECT a, start FROM b.c-d WHERE x = 'EVERY ''1 hour''' -- DO PUBLISH\n AND (y) > 1"]
    ),
    st.permutations(
        ["DO PUBLISH SHARED", "START '2026-11-21T10:00:00Z'", "EVERY '1 hour'", "EXPIRE '2026-12-01T00:00:00Z'"]
    ),
    st.sampled_from([" ", "\n", " /* x */ ", " -- x\n"]),
)
def test_order_of_clauses_does_not_matter(select: str, clauses: list[str], space: str) -> None:
    """The clauses mean the same in any order and the SELECT keeps its own text."""
    statement = parse(space.join(["create cq a", "as", select, *clauses]) + ";")
    assert isinstance(statement, CreateCq)
    assert statement.select == select
    assert statement == parse(" ".join(["CREATE CQ a AS", select, *sorted(clauses)]))
