"""Regular expressions: which are accepted, and that they are read as Java reads them."""

from __future__ import annotations

import polars as pl
import pytest

from grouping.model.errors import InputError
from grouping.values.patterns import rust_pattern


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
        ("", ["", "a"], []),
    ],
)
def test_a_pattern_means_what_java_says(pattern: str, matched: list[str], others: list[str]) -> None:
    """Line ends, classes and letter case are Java's."""
    texts = [*matched, *others]
    found = pl.Series(texts).str.contains(rust_pattern(pattern)).to_list()
    assert [text in matched for text in texts] == found


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?i:a)", "a++", "a**", "*", r"\bA", r"\1", r"(a)\1", r"\p{L}", r"\Qa\E", "a$b", "(a$)", "[a[b]]",
        "[a&&b]", "[", "(", ")", "a)", "[]", "{2}", "a{", "a{3,2}", "[z-a]", r"[a-\d]", "^*", "((a{99}){99}){99}",
        r"\s$", "[^,]*$", "(?i", "a\\", "[a",
    ],
)  # fmt: skip
def test_what_engines_read_differently_is_refused(pattern: str) -> None:
    """A pattern outside the common subset is refused with its place, never guessed at."""
    with pytest.raises(InputError) as caught:
        rust_pattern(pattern)
    assert caught.value.code == "unsupported-query"
    assert "characters there is" in str(caught.value.detail)
