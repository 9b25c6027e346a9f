"""The text of an aggregate is the name of its column, so different expressions must have different texts."""

from __future__ import annotations

from gateway.testing import ACCEPTED_AT, Stream
from gateway.testing.query import checked
from grouping.compiler.aggregate_texts import typed_text
from grouping.compiler.literal_differences import differ_in_literals

_STREAM = Stream(
    "q (s STRING, n INT, x DOUBLE, d DECIMAL(10,2), t TIMESTAMP, b BOOLEAN, tags ARRAY<STRING>, nums ARRAY<INT>, "
    "m MAP<STRING, INT>, v VARIANT, j STRING, `NULL` STRING, `TRUE` BOOLEAN, "
    "`it's` INT)"
)
_ALIKE = (
    (
        "s IN ('a', 'b')",
        "s IN ('a', 'c')",
        "s IN ('a')",
        "s IN ('a', NULL)",
        "s IN ('a, b', 'c')",
        "s IN ('a', 'b, c')",
    ),
    ("n IN (1, 2)", "n IN (1, 3)", "n IN (1, 2, 3)", "n NOT IN (1, 2)"),
    ("s = NULL", "s = `NULL`", "s = 'NULL'"),
    ("b = TRUE", "b = `TRUE`", "s = 'TRUE'"),
    ("1", "1L", "1.0", "1.00", "1D", "'1'", "1S"),
    ("array(1, 2)", "array(1L, 2L)", "array('1', '2')", "array(1.0, 2.0)"),
    ("n - 1 - n", "n - (1 - n)", "n - 1 + n"),
    ("b AND n = 1 OR x = 2", "b AND (n = 1 OR x = 2)"),
    ("NOT (b AND n = 1)", "NOT b AND n = 1"),
    ("CAST(s AS INT)", "CAST(s AS BIGINT)"),
    ("CAST(d AS DECIMAL(10,1))", "CAST(d AS DECIMAL(11,1))"),
    ("struct(s AS a)", "struct(s AS c)"),
    ("from_json(j, 'a INT')", "from_json(j, 'a BIGINT')"),
    ("variant_get(v, '$.a')", "variant_get(v, '$.a', 'INT')", "variant_get(v, '$.a', 'STRING')"),
    ("filter(tags, y -> y IN ('a', 'b'))", "filter(tags, y -> y IN ('a', 'c'))"),
    ("transform(tags, y -> transform(tags, z -> y))", "transform(tags, y -> transform(tags, z -> z))"),
    ("reduce(nums, 0, (a, y) -> a + y)", "reduce(nums, 1, (a, y) -> a + y)"),
    ("s LIKE ANY ('a%', 'b%')", "s LIKE ANY ('a%', 'c%')", "s LIKE ALL ('a%', 'b%')"),
    ("t + INTERVAL '1' DAY", "t + INTERVAL '1' HOUR", "t - INTERVAL '1' DAY"),
    ("CASE n WHEN 1 THEN 2 WHEN 3 THEN 4 END", "CASE n WHEN 1 THEN 2 WHEN 3 THEN 5 END"),
    ("array_contains(array('a', 'b'), s)", "array_contains(array('a', 'c'), s)"),
)


def test_different_expressions_have_different_texts() -> None:
    """The expressions of a line differ in one place."""
    for line in _ALIKE:
        made = [checked(f"SELECT {text} AS z FROM q", _STREAM, ACCEPTED_AT, []).query for text in line]
        texts = [typed_text(expression) for query in made if (expression := query.select.items[0].expression)]
        assert len(set(texts)) == len(line), (line, texts)


def test_a_query_that_was_stored_with_one_aggregate_for_two_is_wrong() -> None:
    """So a gateway compiles it again; a query with one aggregate stays as it is."""
    one, two = "count(*) FILTER (WHERE s IN ('a', 'b'))", "count(*) FILTER (WHERE s IN ('a', 'c'))"
    stored, right = (
        checked(f"SELECT {one} AS y, {second} AS z FROM q EVERY '1 minute'", _STREAM, ACCEPTED_AT, []).query
        for second in (one, two)
    )
    assert differ_in_literals(stored, right)
    assert not differ_in_literals(right, right)


_ALIKE_CONDITIONS = (
    ("to_json(transform(nums, y -> 1.5)) = '[1.5]'", "to_json(transform(nums, y -> '1.5')) = '[1.5]'"),
    ("map('k', '2026-01-01')[s] = 'z'", "map('k', DATE '2026-01-01')[s] = DATE '2026-01-01'", "map('k', TRUE)[s]"),
    ("to_json(array(TRUE)) = s", "to_json(array('a')) = s", "to_json(array(DATE '2026-01-01')) = s"),
    ("to_json(array(nullif('a', 'b'))) = s", "to_json(array(nullif(TRUE, FALSE))) = s"),
    ("to_json(struct(1.0 AS q)) = s", "to_json(struct('1.0' AS q)) = s"),
    ("reduce(nums, 1, (a, y) -> a) = 1", "reduce(nums, 1L, (a, y) -> a) = 1"),
)


def test_different_predicates_are_different_groups() -> None:
    """The predicates of a line differ in the type of a constant that is not lifted, or that decides an ARRAY's type."""
    for line in _ALIKE_CONDITIONS:
        made = [checked(f"SELECT n FROM q WHERE {text}", _STREAM, ACCEPTED_AT, []).query.plan for text in line]
        assert len({plan.group_id for plan in made}) == len(line), line


def test_no_signature_shows_a_text_of_having() -> None:
    """A hash takes the place of a text within an aggregate."""
    having = (
        "max(to_json(struct(`it's` AS b, 'SECRET' AS q, s))) > 'SECRET' AND max(get_json_object(j, '$.SECRET')) = s"
    )
    text = f"SELECT s, count(*) AS z FROM q GROUP BY s HAVING {having} EVERY '1 minute'"
    assert "SECRET" not in checked(text, _STREAM, ACCEPTED_AT, []).query.plan.signature
