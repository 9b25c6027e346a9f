"""The corpus's expressions that make maps: NULL or repeated keys, NULL or empty maps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

__all__ = ["map_calls"]

_MAPS = (
    "map('b', 1, 'a', 2)", "map('a', 1, 'a', 2)", "map('a', NULL, 'é😀', 7)", "map('', 1)", "map('c', 3, 'b', -4)",
    "map(nullif('x', 'x'), 1, 'a', 2)", "map_from_arrays(array('x', 'y'), array(1, 2))",
    "map_filter(map('a', 1), (k, v) -> v > 9)", "get(array(map('a', 1)), 5)", "map('b', 5)",
    "map_from_entries(array(struct('a', 1), struct('z', 2)))",
)  # fmt: skip
_BODIES = (
    "(k, x, y) -> coalesce(x, 0) + coalesce(y, 0)", "(k, x, y) -> x * y", "(k, x, y) -> concat(k, CAST(x AS STRING))",
    "(k, x, y) -> x IS NULL",
)  # fmt: skip
_NEW_KEYS = ("upper(k)", "'k'", "CAST(v AS STRING)", "nullif(k, 'a')", "concat(k, k)", "substring(k, 1, 1)")
_FORMS = (
    "array(1, 3000000000)", "array(1, 1.5)", "array(2, 1.5D)", "array(1S, 2)", "array(1, 2.25, 3Y)[0]",
    "get(array(1, 1.5), 1)", "array(NULL, 1, 2L)", "array(1.5, 20.25)[1]", "array(DATE'2024-02-29', NULL)",
    "map('a', 1, 'b')", "map('a')", "map('a', 1)['a']", "map('a', 1.5, 'b', 2)['b']", "map('a', 'x', 'b', NULL)['a']",
    "map('a', 1, 'b', 3000000000)['a']", "map('a', 1D, 'b', 2)['b']", "map('a', TRUE, 'b', 1)",
    "map('a', array(1))['a']",
    "map('a', map('b', 2))['a']['b']", "map('a', struct(1)).a.col1", "map(concat('a', 'b'), 1)['ab']",
    "map('a', CAST(NULL AS INT))['a']", "map_keys(map(X'61', 1))", "map('a', DATE'2024-02-29', 'b', NULL)['a']",
    "element_at(map('a', 1), 'b')", "try_element_at(map('a', 1), 'a')", "map_contains_key(map('a', 1), 'a')",
    "map('a', 1) = map('a', 1)", "map('A', 1)['a']", "map('a', 'b', 'c', 'd')['c'] = 'd'", "map('a', 1, 'a', 1)['a']",
    *(f"{name}(map_from_arrays({keys}, {values}))" for name in ("map_keys", "map_values") for keys, values in (
        ("array('a', 'b')", "array(1, 2)"),
        ("array('a')", "array(1, 2)"), ("array('a', 'b')", "array(1)"), ("array('a', 'a')", "array(1, 2)"),
        ("array('a', NULL)", "array(1, 2)"), ("array('a', 'b')", "array(NULL, 2.5D)"),
        ("split('p,q', ',')", "split('1,2', ',')"),
        ("get(array(array('a')), 5)", "array(1)"), ("array('a')", "get(array(array(1)), 5)"), ("array(1)", "array(2)"),
        ("filter(array('a'), x -> x > 'b')", "filter(array(1), x -> x > 9)"))),
    *(f"{name}(map_from_entries({entries}))" for name in ("map_keys", "map_values") for entries in (
        "array(struct('a', 1), struct('b', 2))", "array(struct('a', 1), struct('a', 2))",
        "array(struct('a', 1), get(array(struct('b', 2)), 5))", "array(struct(CAST(NULL AS STRING), 1))",
        "array(named_struct('k', 'a', 'v', array(1, 2)))", "get(array(array(struct('a', 1))), 5)",
        "filter(array(struct('a', 1)), s -> s.col2 > 5)", "map_entries(map('a', 1))", "array(struct('a', 1, 2))",
        "array('a')", "zip_with(array('a', 'b'), array(1, 2), (x, y) -> struct(x, y))")),
    *(f"{name}(map_concat({maps}))" for name in ("map_keys", "map_values") for maps in (
        "map('a', 1), map('b', 2)", "map('a', 1), map('a', 2)", "map('a', 1)", "map('a', 1), map('b', 'x')",
        "map('b', 1), map('a', NULL, 'c', 2), map('0', 7)", "map('a', 1), get(array(map('b', 1)), 5)",
        "map_filter(map('a', 1), (k, v) -> FALSE), map('q', 1)", "map('a', 1), array(1)",
        "str_to_map('a:1'), str_to_map('b:2,c')")),
    "transform_keys(array('a'), (k, v) -> k)", "map_keys(transform_keys(map('a', 1), (k, v) -> v))",
    "transform_keys(map('a', 1), k -> k)", "map_zip_with(map('a', 1), map('b', 1), (k, x) -> x)",
    "map_values(map_zip_with(map('a', 1), map('a', 'x', 'b', 'y'), (k, x, y) -> y))",
    "map_values(map_zip_with(map('a', array(1)), map('a', 2D), (k, x, y) -> size(x) + y))",
    "map_values(transform_values(map('a', array(3, 4)), (k, v) -> v[1]))", "size(map('a', 1, 'b', 2))",
    "cardinality(map('a', 1, 'a', 2))", "exists(map_entries(map('a', 1, 'b', 2)), e -> e.key = 'b' AND e.value = 2)",
    "aggregate(map_values(map('a', 1, 'b', 2)), 0, (s, x) -> s + x)",
    "map_keys(map_filter(map('a', 1), (k, v) -> k > v))",
)  # fmt: skip


def map_calls() -> Iterator[str]:
    """Yield the expressions."""
    for base in _MAPS:
        yield from (f"{name}({base})" for name in ("map_keys", "map_values", "size"))
        yield f"transform(map_entries({base}), e -> concat(e.key, CAST(e.value AS STRING)))"
        yield from (f"map_keys(transform_keys({base}, (k, v) -> {key}))" for key in _NEW_KEYS)
        yield f"map_values(transform_keys({base}, (k, v) -> concat(k, '!')))"
    for one, other in product(_MAPS[:9], repeat=2):
        yield from (f"{name}(map_concat({one}, {other}))" for name in ("map_keys", "map_values"))
        yield f"map_keys(map_zip_with({one}, {other}, {_BODIES[0]}))"
        yield from (f"map_values(map_zip_with({one}, {other}, {body}))" for body in _BODIES)
    yield from _FORMS
