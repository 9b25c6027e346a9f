"""The corpus's expressions over arrays and maps: each function over arrays of each type of elements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

__all__ = ["array_calls"]

_ARRAYS = {
    "INT": ("array(3, NULL, 1, 3)", "array(1)", "filter(array(1), x -> x > 9)", "get(array(array(1)), 5)",
            "array(NULL, 2, NULL, 7)", "array(-2147483648, 2147483647)"),
    "BIGINT": ("array(3000000000, 2L, NULL, 2L)", "array(1L)"),
    "STRING": ("array('b', 'a', NULL, 'b')", "split('é,😀,z,é,ﬁ', ',')", "array('')", "split('', ',')",
               "filter(split('a', ','), x -> x > 'b')", "get(array(array('x')), 5)", "array('a', 'A', ' a')"),
    "DOUBLE": ("array(1.5D, DOUBLE('NaN'), NULL, -2.5D, DOUBLE('NaN'))", "array(DOUBLE('Infinity'), 1e300)"),
    "DECIMAL": ("array(1.25, -2.50, NULL, 1.25)",),
    "BOOLEAN": ("array(TRUE, NULL, FALSE, TRUE)",),
    "DATE": ("array(DATE'2024-02-29', NULL, DATE'0001-01-01', DATE'2024-02-29')",),
    "TIMESTAMP": ("array(TIMESTAMP'2024-03-31 01:30:00', NULL, TIMESTAMP'1969-12-31 23:59:59.999999')",),
    "BINARY": ("array(X'FF', X'', X'00FF', X'FF')",),
    "SMALLINT": ("array(3S, NULL, -4S)",),
}  # fmt: skip
_VALUES = {
    "INT": ("1", "3", "9", "CAST(NULL AS INT)", "3000000000", "NULL", "1.5"),
    "BIGINT": ("2L", "1", "3000000000", "NULL"),
    "STRING": ("'b'", "'é'", "''", "'zz'", "CAST(NULL AS STRING)", "5"),
    "DOUBLE": ("1.5D", "DOUBLE('NaN')", "1.5", "1", "-0.0D", "CAST(NULL AS DOUBLE)"),
    "DECIMAL": ("1.25", "1.250", "CAST(1.25 AS DECIMAL(3,2))"),
    "BOOLEAN": ("TRUE", "FALSE"),
    "DATE": ("DATE'2024-02-29'", "'2024-02-29'"),
    "TIMESTAMP": ("TIMESTAMP'2024-03-31 01:30:00'", "DATE'2024-03-31'"),
    "BINARY": ("X'FF'", "'a'"),
    "SMALLINT": ("3S", "3", "CAST(NULL AS SMALLINT)"),
}
_OF_ONE = ("array_compact", "array_distinct", "array_max", "array_min", "array_sort", "reverse", "size", "array_size",
           "sort_array")  # fmt: skip
_WITH_VALUE = ("array_append", "array_contains", "array_position", "array_prepend", "array_remove")
_OF_TWO = ("array_except", "array_intersect", "array_union", "arrays_overlap", "concat")
_FORMS = (
    *(f"array_repeat({value}, {count})" for value in (
        "1", "'é'", "2.5D", "CAST(NULL AS INT)", "DATE'2024-02-29'", "3000000000", "concat('a', 'b')", "1.25",
        "array(1, 2)", "nullif('a', 'a')", "X'61'")
      for count in ("3", "0", "-1")),
    "array_repeat(1, NULL)", "array_repeat(1, 2L)", "array_repeat('a', 2)[1]", "array_size(array_repeat('a', 1000))",
    *(f"transform(arrays_zip({arrays}), z -> {body})" for arrays, body in (
        ("array(1, 2), array('a')", "concat(CAST(z.`0` AS STRING), coalesce(z.`1`, '-'))"), ("array(1, NULL)", "z.`0`"),
        ("array(1), get(array(array(1)), 5)", "z.`1`"), ("array(1), array(2, 3), array(4)", "z.`2`"),
        ("filter(array(1), x -> x > 9), filter(array('a'), x -> x > 'b')", "z.`0`"), ("array(1), 2", "z.`0`"))),
    "transform(array(array(1, 2)), x -> arrays_zip(x, array(7)).x)", "arrays_zip()",
    "size(arrays_zip(array(1), array(2, 3)))",
    *(f"{name}({value}, {form})" for name in ("to_char", "to_varchar") for value, form in (
        ("X'C3A9'", "'utf-8'"), ("X'C3FF'", "'HEX'"), ("X'C3FF'", "'base64'"), ("X'C3FF'", "'x'"), ("X'FF'", "'UTF-8'"),
        ("CAST(NULL AS DATE)", "'yyyy'"), ("DATE'2024-02-29'", "'E d MMM'"), ("NULL", "'yyyy'"), ("12", "'99'"),
        ("TIMESTAMP'2024-02-29 23:04:05.678'", "'HH:mm:ss.SSS'"), ("'2024-02-29'", "'yyyy'"))),
    "sort_array(array(3, NULL, 1), FALSE)", "sort_array(array('b', NULL, 'a', 'é'), FALSE)",
    "sort_array(array(1.5D, DOUBLE('NaN'), NULL), FALSE)", "sort_array(array(1), NULL)", "sort_array(array(1), 1)",
    *(f"slice({array}, {start}, {length})" for array in (_ARRAYS["INT"][0], _ARRAYS["STRING"][1], _ARRAYS["INT"][2])
      for start, length in product(("1", "2", "-2", "-9", "9", "0", "CAST(NULL AS INT)"), ("0", "2", "-1", "99"))),
    *(f"array_insert(array(3, NULL, 1), {place}, 7)" for place in ("1", "2", "4", "6", "-1", "-2", "-4", "-6", "0")),
    "array_insert(array('a'), 2, 'b')", "array_insert(array('a'), 2, CAST(NULL AS STRING))",
    "array_insert(array(1), 2, 3000000000)", "array_insert(get(array(array(1)), 5), 1, 2)",
    *(f"array_join({array}, {signs})" for array in _ARRAYS["STRING"]
      for signs in ("','", "''", "', ', '?'", "CAST(NULL AS STRING)", "',', CAST(NULL AS STRING)")),
    "array_join(array(1, 2), ',')", "array_join(array(TRUE), ',')",
    *(f"flatten({arrays})" for arrays in (
        "array(array(1, 2), array(3))", "array(array('a', NULL), filter(array('b'), x -> x > 'z'))",
        "array(array(1), get(array(array(1)), 5))", "get(array(array(array(1))), 7)", "array(1)",
        "array(array(array(1)), array(array(2), array(3)))", "filter(array(array(1)), x -> size(x) > 3)")),
    *(f"concat_ws('-', {texts})" for texts in (
        "array('a', NULL, 'b')", "array('a'), 'b', NULL", "'x', array('a', 'b'), array('c')", "1, array('b')",
        "get(array(array('x')), 5), 'y'", "filter(array('b'), x -> x > 'z')", "array(1, 2)")),
    "concat_ws(CAST(NULL AS STRING), array('a'))", "concat_ws(array('a'), 'b')",
    *(f"sequence({bounds})" for bounds in (
        "1, 5", "5, 1", "1, 10, 3", "10, 1, -4", "1, 5, -1", "1, 1", "1, 5, 0", "0, 2000", "NULL, 2", "1L, 3")),
    *(f"array_size(concat({arrays}))" for arrays in ("array(1), array(2), array(3)", "array(1)", "array(), array(1)")),
    "concat(array(1), array(3000000000))", "concat(array('a'), 'b')", "concat(array(1), get(array(array(1)), 5))",
    "array_union(array(1, 2), array(2L))", "array_union(array(-0.0D, 1D), array(0.0D))",
    "array_distinct(array(0.0D, -0.0D, 1D))", "array_intersect(array(0.0D), array(-0.0D))",
    "array_except(array(-0.0D, 1D), array(0.0D))", "array_position(array(-0.0D), 0.0D)",
    "array_max(array(array(1), array(2)))", "array_max(array())", "array_sort(array(array(2), array(1)))",
    *(f"str_to_map({args}){part}" for args in (
        "'a=1;b=2;c', ';', '='", "'a:1,b:2'", "'a:1,b:2,a:3'", "'', ',', ':'", "'k=v=w', ';', '='", "'é=😀', ';', '='",
        "'a|b', '\\|', ':'", "'x 1,y', ',', ' '")
      for part in ("['a']", "['k']", "['']", "['c']", "['é']")),
    "map_keys(str_to_map('b:1,a:2,b2'))", "map_values(str_to_map('b:1,a:2,b2'))", "size(str_to_map('x'))",
    "str_to_map(CAST(NULL AS STRING))['a']", "str_to_map('a,b', '', ':')['a']", "str_to_map(1)['1']",
    "size(map_entries(str_to_map('a:1,b')))", "get(map_entries(str_to_map('a:1,b')), 1).key",
    "get(map_entries(str_to_map('a:1,b')), 1).value", "exists(map_entries(str_to_map('a:1,b')), e -> e.value IS NULL)",
    "map_keys(map_filter(str_to_map('a:1,b:2,c'), (k, v) -> v > '1'))",
    "map_values(map_filter(str_to_map('a:1,b:2,c'), (k, v) -> k <> 'b'))",
    "size(map_filter(str_to_map('a:1'), (k, v) -> v IS NULL))", "map_filter(array(1), (k, v) -> TRUE)",
    "map_values(transform_values(str_to_map('a:1,b:2,c'), (k, v) -> CAST(v AS INT) * 2))",
    "map_values(transform_values(str_to_map('a:1,b'), (k, v) -> concat(k, v)))",
    "map_keys(transform_values(str_to_map('a:1,b'), (k, v) -> 1L))",
    "zip_with(array(1, 2), array(3, 4, 5), (x, y) -> x + y)",
    "zip_with(array('a'), array('b'), (x, y) -> concat(x, y))",
    "zip_with(array(1), get(array(array(1)), 5), (x, y) -> x)", "zip_with(array(1, NULL), array(2D), (x, y) -> x * y)",
    "transform(array(10, 20), (x, i) -> x + i)",
    "transform(array('a', NULL, 'c'), (x, i) -> concat(x, CAST(i AS STRING)))",
    "filter(array(5, 6, 7), (x, i) -> i > 0)", "filter(array(5, NULL, 0), (x, i) -> x > i)",
    "transform(array(1, 2), x -> x * 2)", "transform(array(1, NULL), x -> x + 3000000000)",
    *(f"{name}({args})" for name in ("aggregate", "reduce") for args in (
        "array(1, 2, 3), 0, (a, x) -> a + x", "array(1, NULL, 3), 0, (a, x) -> a + x",
        "array(2147483647, 1), 0, (a, x) -> a + x", "array(1, 2), 0D, (a, x) -> a + x",
        "array(0.1D, 0.2D, 0.3D), 0D, (a, x) -> a + x", "array(1, 2), 0, (a, x) -> a + x, a -> a / 2",
        "array('a', 'b'), '', (a, x) -> concat(a, x)", "array('a', NULL), 'z', (a, x) -> coalesce(x, a)",
        "filter(array(1), x -> x > 9), 5, (a, x) -> a + x", "get(array(array(1)), 5), 5, (a, x) -> a + x",
        "array(3, 9, 4), -1, (a, x) -> greatest(a, x)", "array(3, 9, 4), 0, (a, x) -> a + if(x > 3, 1, 0)",
        "array(TRUE, FALSE), TRUE, (a, x) -> a AND x", "array(1, 2), 0, (a, x) -> a + x * 1.5",
        "array(1, 2), CAST(0 AS BIGINT), (a, x) -> a + x", "array(1, 2), NULL, (a, x) -> a + x",
        "array(1.25, 2.50), CAST(0 AS DECIMAL(10,2)), (a, x) -> CAST(a + x AS DECIMAL(10,2))",
        "array(1.25, 2.50), 0.00, (a, x) -> a + x", "array(1, 2), 0, (a, x) -> a + x, a -> a > 2",
        "array(array(1, 2), array(3)), 0, (a, x) -> a + size(x)",
        "array(array(1, 2), array(3)), 0, (a, x) -> a + aggregate(x, 0, (b, y) -> b + y)",
        "array(1, 2, 3), 1, (a, x) -> a * x, a -> CAST(a AS STRING)", "array(1), 3000000000, (a, x) -> a + x")),
    "named_struct('a', 1, 'b', 'x').b", "named_struct('a', 1, 'B', 'x').b", "struct(1, 'x').col2", "struct(1.5).col1",
    "named_struct('a')", "named_struct(1, 2)", "named_struct('a', 1).c", "named_struct('a', array(1, 2)).a",
    "get(array(named_struct('a', 3000000000)), 0).a", "exists(array(struct('x'), struct('y')), s -> s.col1 = 'y')",
    *(f"CAST({number} AS DECIMAL(10,2)) {op} {text}" for number in ("1.25", "NULL", "99999999.99")
      for op in ("=", "<>", "<", ">=", "<=>") for text in ("'1.25'", "'1.2'", "'1e1'", "'abc'", "' 2 '", "'NaN'")),
    "CAST(1.25 AS DECIMAL(10,2)) BETWEEN '1' AND '2'", "'1.25' = CAST(1.25 AS DECIMAL(10,2))",
    "CAST(1.25 AS DECIMAL(10,2)) IN ('1.25')", "CASE CAST(1.25 AS DECIMAL(10,2)) WHEN '1.25' THEN 1 END",
    "forall(array(1, 2), x -> exists(array(1, 2, 3), y -> y = x + 1))",
)  # fmt: skip


def array_calls() -> Iterator[str]:
    """Yield the expressions."""
    for kind, arrays in _ARRAYS.items():
        for array in arrays:
            yield from (f"{name}({array})" for name in _OF_ONE)
            yield from (f"{name}({array}, {value})" for name in _WITH_VALUE for value in _VALUES[kind])
        yield from (f"{name}({one}, {two})" for name in _OF_TWO for one, two in product(arrays[:4], arrays[:3]))
    yield from _FORMS
