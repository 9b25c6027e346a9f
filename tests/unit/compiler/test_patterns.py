"""Regular expressions: which are accepted, and that they are read as Java reads them."""

from __future__ import annotations

import polars as pl
import pytest

from grouping.model.errors import InputError
from grouping.model.sql_type import BOOLEAN, STRING
from grouping.values.patterns import occurrences, rust_groups, rust_pattern
from spark_jobs.engine.expressions.texts.search import rlike
from spark_jobs.engine.expressions.types import Operand


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        ("^a$", ["a", "a\n", "a\r\n", "a\u2028"], ["a\n\n", "ab", "\na"]),
        (".", ["a", "\U0001f600"], ["", "\n", "\r", "\u0085", "\u2029"]),
        (r"^\d+$", ["123"], ["", "\u0661", "1a"]),
        (r"^\w\s\S", ["a\tb", "_ \u00e9"], ["\u00e9 b", "a\u00a0b"]),
        ("(?i)^[a-c]X$", ["Bx", "ax"], ["dx", "\u212ax"]),
        ("(?i)k", ["K", "k"], ["\u212a"]),
        (r"[^a\]-]", ["b"], ["a", "]", "-"]),
        ("a{2,3}?b|c+$", ["aab", "xcc"], ["ab", "cx"]),
        ("[.]|[*$^]", [".", "$"], ["a"]),
        (r"\bto\b", ["to", "go to it", "x-to", "\u00e9to"], ["tot", "_to", "into"]),
        (r"^[^@]+@[^@]+$", ["a@b", "a@b\r\n", "a@\n"], ["a@", "@b", "a@b@c"]),
        (r"^a[^b]$", ["ac", "a\r", "a\n", "ac\r\n"], ["a\r\n", "ab", "a"]),
        (r"^a\s+$", ["a\r\n", "a ", "a\t\n"], ["a", "a\u2028", "ab\n"]),
        ("", ["", "a"], []),
        ("[^b]$|a", ["ab", "c", "a\n", "b\n"], ["b", "", "bb"]),
        ("(a$|b)", ["xa\n", "bx"], ["ax"]),
        ("(?m)^ab$", ["ab", "x\r\nab\ry", "\u2028ab\x85"], ["xab", "abx"]),
        (r"^(?=.*\d)(?!.*x)", ["a1", "1\nx"], ["a", "1x", "x1"]),
        (r"a(?!bc)", ["a", "ab", "abd", "abca"], ["abc", "xabc"]),
        (r"(?<!ab)c", ["c", "bc", "xbc"], ["abc"]),
        (r".(?<!b)$", ["a", "ba\n"], ["b", "ab\n", ""]),
    ],
)
def test_a_pattern_means_what_java_says(pattern: str, matched: list[str], others: list[str]) -> None:
    """Line ends, classes and letter case are Java's."""
    texts = [*matched, *others]
    text = pl.repeat(pattern, pl.len(), dtype=pl.String)
    both = [Operand(pl.col("text"), STRING), Operand(text, STRING)]
    found = pl.DataFrame({"text": texts}).select(rlike(both, BOOLEAN).expr)["text"].to_list()
    assert [text in matched for text in texts] == found


@pytest.mark.parametrize(
    "pattern",
    [
        r"\B", r"\b+", "(?=a)b", "(?x:a)", "a++", "a**", "*", r"\1", r"(a)\1", r"\p{No}x\p{Nope}", r"[\Qa\E]", "a$b",
        "(a$)+", "(a$)b", "[^a[b]]", "[a&&b]", "[", "(", ")", "a)", "[]", "[^a&&[b]]", "[[:alpha:]]", "[a-[b]]",
        "{2}", "a{", "a{3,2}", "[z-a]", r"[a-\d]", "^*", "((a{99}){99}){99}", r"\p{L}{200}", r"\Qab\E*",
        "(?i", "a\\", "[a", "(" * 200 + ")" * 200, r"\uD83D", r"\x{110000}", "(?)", r"\b{g}", "(?m)a^b", r"(?m)\s$",
        "(?<=a*)b", "a(?!b+)", "(?<!)a", "a(?![ab]c|[bc]d)", "(?=a)|b(?=c)d", "(a(?=b))", r"[^b]$|a\z",
    ],
)  # fmt: skip
def test_what_engines_read_differently_is_refused(pattern: str) -> None:
    """A pattern outside the common subset is refused with its place, never guessed at."""
    with pytest.raises(InputError) as caught:
        rust_pattern(pattern)
    assert caught.value.code == "unsupported-query"
    assert " there is " in str(caught.value.detail)


@pytest.mark.parametrize(
    "pattern", ["(a*)*", "(a|b?)+", "a|b$", r"[ \n]+$", "(?:a|){2}", "(a|b$)", "(?m)^a", "(?m)a$", "a(?=b)", "(?<!a)b"]
)
def test_groups_that_engines_find_elsewhere_are_refused(pattern: str) -> None:
    """Where the place of an occurrence, or of a group in it, might differ, only its presence may be asked for."""
    with pytest.raises(InputError) as caught:
        rust_groups(pattern)
    assert caught.value.code == "unsupported-query"
    assert rust_pattern(pattern)


@pytest.mark.parametrize("pattern", ["", "a*", "(a|b*)", "^", "a{0,2}", r"\b", "x??"])
def test_the_empty_text_is_not_looked_for_everywhere(pattern: str) -> None:
    """A pattern that matches it has a first occurrence, but not the same ones in both engines."""
    assert rust_groups(pattern).empty
    with pytest.raises(InputError):
        occurrences(pattern)
