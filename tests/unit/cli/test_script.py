"""Scripts of statements: how they are cut, and who sends the statements of `cq export --all`."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.cli.scripts.definitions import cq_statements
from gateway.cli.scripts.script import statements_of
from gateway.cli.scripts.subscriber_change import by_subscriber, section
from gateway.cli.scripts.whole_script import sections
from grouping.model.errors import InputError
from grouping.statements.tokens import PlainSql

_PIECES = st.sampled_from(
    ("'", "''", '"', "`", "--", "-", "/*", "*/", "/", "*", "{#", "#}", "{", ";", "\n", "\r", "\r\n", "\x0b", "\x85",
     "\u2028", "\x00", " ", "a", "é", "0x", "x'41'", "1e", "$$", "SHOW", "EXPLAIN", "BEGIN", 'SET SUBSCRIBER "bob"',
     "SET SUBSCRIBER bob", "SET/**/SUBSCRIBER", "FOR 'x'", "DROP CQ c")
)  # fmt: skip
_TEXTS = st.one_of(st.lists(_PIECES, max_size=12).map("".join), st.text(max_size=20))
_SUBSCRIBERS = st.sampled_from(("alice", "bob", 'o"neil', "a;b", "--", "FOR 'x'", "\u2028"))


@given(_TEXTS)
def test_a_cut_is_where_the_tokenizer_has_a_semicolon(text: str) -> None:
    """A text with a single statement for the gateway's tokenizer is a single statement of a script too, unchanged."""
    try:
        # A word before the text keeps sqlglot from reading SHOW and EXPLAIN to the next semicolon as one token.
        tokens = PlainSql().tokenizer().tokenize("," + text.upper().replace("BEGIN", "START"))[1:]
    except Exception:  # noqa: BLE001 - sqlglot raises more than one class; such a text is no statement
        return
    ends = [token.token_type.name == "SEMICOLON" for token in tokens]
    if ends and not any(ends):
        assert [text.strip()] == statements_of(text)


@given(st.lists(st.tuples(_SUBSCRIBERS, _TEXTS), max_size=6), st.booleans())
@example([("alice", "CREATE CQ a AS SELECT a FROM t -- \r; SET SUBSCRIBER bob; DROP CQ c")], True)
@example([("alice", "CREATE CQ a AS SELECT a FROM t; -- the end"), ("bob", "DROP CQ a")], False)
def test_every_text_is_sent_for_its_subscriber(texts: list[tuple[str, str]], paused: bool) -> None:
    """A script of an export is cut into the same statements, each for the subscriber who had it."""
    wanted = [
        (subscriber, statement) for subscriber, text in texts for statement in cq_statements("a", text, paused=paused)
    ]
    sent = by_subscriber(statements_of(_script(wanted)), "operator")
    assert wanted == [(who, text) for who, own in sent for text in own]


@given(st.lists(st.tuples(st.sampled_from(("alice", "bob")), _TEXTS), max_size=6))
@example([("alice", "CREATE CQ a AS SELECT a FROM t -- \r; SET SUBSCRIBER bob; DROP CQ c")])
@example([("alice", "DROP CQ a -- \r/*"), ("bob", "DROP CQ b /* */")])
def test_a_script_with_other_line_ends_is_sent_for_the_same_subscribers_or_not_at_all(
    texts: list[tuple[str, str]],
) -> None:
    """A program that turns carriage returns into line feeds cannot make a comment run as anybody's statement."""
    statements = [(who, each) for who, text in texts for each in cq_statements("a", text, paused=False)]
    changed = _script(statements).replace("\r\n", "\n").replace("\r", "\n")
    try:
        sent = by_subscriber(statements_of(changed), "operator")
    except InputError:
        return
    assert by_subscriber(statements_of(_script(statements)), "operator") == sent


@pytest.mark.parametrize("change", ["SET SUBSCRIBER", 'SET SUBSCRIBER "bob" NOW', "SET /* x */ SUBSCRIBER 'bob'"])
def test_a_change_of_the_subscriber_that_cannot_be_read_stops_the_script(change: str) -> None:
    """The statements behind it would be sent for the subscriber before it."""
    with pytest.raises(InputError, match="cannot be read"):
        by_subscriber(statements_of(f"SHOW CQS; {change}; DROP CQ a"), None)


def test_a_long_section_is_cut() -> None:
    """A subscriber's million CQs are not held at a time."""
    texts = [("alice", f"DROP CQ a{number}") for number in range(2_500)]
    script = list(sections(texts))
    assert 3 == sum(each.startswith("SET SUBSCRIBER") for each in script)
    assert texts == [(who, text) for who, own in by_subscriber(script, None) for text in own]


def test_a_comment_in_many_parts_is_read_in_linear_time() -> None:
    """Comments before a statement that is no change are tried once."""
    assert [(None, ["/**/" * 20_000 + "x"])] == by_subscriber(["/**/" * 20_000 + "x"], None)


def test_statements_without_a_subscriber_go_with_those_before_them() -> None:
    """A stream that an old gateway made has no owner."""
    script = list(sections([("", "a"), ("alice", "b"), ("", "c")]))
    assert ["a", *section("alice", ["b", "c"])] == script


def _script(statements: list[tuple[str, str]]) -> str:
    """Return the output of `cq export --all` for statements by subscriber."""
    lines = sections((who, text) for who, text in statements)
    return "".join(chain.from_iterable((line, "\n;\n") for line in lines))


@pytest.mark.parametrize("before", ["", "DROP CQ c; "])
def test_a_byte_order_mark_hides_no_change_of_the_subscriber(before: str) -> None:
    """Editors and `cat` of their files leave the mark before a statement."""
    script = before + "\ufeff" + "; ".join(section("alice", ["DROP CQ a"]))
    *_, last = by_subscriber(statements_of(script), "operator")
    assert last == ("alice", ["DROP CQ a"])
