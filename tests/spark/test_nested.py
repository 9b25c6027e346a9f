"""Parts of nested values mean the same as in Spark: each expression over the same rows, in both."""

from __future__ import annotations

import gc
import json
import warnings
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gateway.testing import Stream, evaluate

_STREAM = Stream(
    """calls (id INT, body STRING, tags ARRAY<STRING>, nums ARRAY<INT>, sizes ARRAY<DOUBLE>,
    payload STRUCT<user: STRUCT<id: BIGINT, name: STRING>, on: DATE, items: ARRAY<STRUCT<sku: STRING, n: INT>>>,
    attrs MAP<STRING, STRING>, counts MAP<STRING, INT>)"""
)
_TYPES = pa.schema(
    [
        ("id", pa.int32()),
        ("body", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("nums", pa.list_(pa.int32())),
        ("sizes", pa.list_(pa.float64())),
        (
            "payload",
            pa.struct(
                {
                    "user": pa.struct({"id": pa.int64(), "name": pa.string()}),
                    "on": pa.date32(),
                    "items": pa.list_(pa.struct({"sku": pa.string(), "n": pa.int32()})),
                }
            ),
        ),
        ("attrs", pa.map_(pa.string(), pa.string())),
        ("counts", pa.map_(pa.string(), pa.int32())),
    ]
)
_BODIES = [
    '{"user": "ann", "n": 3, "deep": {"list": [1, 2.50, {"x": null}, "é\\n\\u001f"]}}',
    "{'user': 'bob', 'n': 1e3}",
    '{"user": null, "user": "late", "n": -0.0}',
    '{"user": "x"} and more',
    '{"user": "x", "n": }',
    '{"user": "\\ud83d\\ude00\\/", "n": 12345678901234567890123}',
    '{"user": {"id": 7}, "n": [1, [2, 3]], "a b": true}',
    '[{"user": 1}, 2]',
    '"text"',
    "",
    " {} ",
    '{"user": 01}',
    '{"n": 1.0E-5, "user": "tab\there"}',
    "null",
    '{"user": "half',
    None,
]
_TAGS = [["a", "b", "a"], [], None, [None, "b"], [""], ["é", "A"], [None]]
_NUMS = [[1, None, 3], [], None, [2**31 - 1], [3, 3, 7], [-1]]
_SIZES = [[0.5, 1e300], [-0.0], None, [], [1.0, None]]
_USERS = [{"id": 7, "name": "Ann"}, None, {"id": None, "name": "bob"}, {"id": 2**53 + 1, "name": ""}]
_ITEMS = [[{"sku": "x", "n": 2}, {"sku": "y", "n": None}], [], None, [None, {"sku": "z", "n": 0}]]
_ATTRS = [{"k": "v", "e": None}, {}, None, {"": "empty", "K": "w"}, {"k": ""}]
_COUNTS = [{"c": 4}, {}, None, {"c": None, "d": -1}, {"d": 9}]
_ROWS: list[dict[str, Any]] = [
    {
        "id": row,
        "body": _BODIES[row % len(_BODIES)],
        "tags": _TAGS[row % len(_TAGS)],
        "nums": _NUMS[row % len(_NUMS)],
        "sizes": _SIZES[row % len(_SIZES)],
        "payload": None
        if row % 9 == 8
        else {"user": _USERS[row % 4], "on": None if row % 3 else "2026-11-21", "items": _ITEMS[(row // 2) % 4]},
        "attrs": _ATTRS[row % len(_ATTRS)],
        "counts": _COUNTS[row % len(_COUNTS)],
    }
    for row in range(48)
]

_PREDICATES = """
payload.user.id = 7
payload.user.name >= 'A'
Payload.USER.Name IS NULL
payload.user IS NULL
payload.on = DATE '2026-11-21'
year(payload.on) = 2026
array_contains(tags, 'b')
NOT array_contains(tags, 'b')
array_contains(tags, 'b') IS NULL
array_contains(tags, body)
array_contains(nums, 3)
array_contains(nums, 3000000000)
array_contains(nums, id)
array_contains(sizes, 0.5D)
array_contains(sizes, 0)
array_contains(array('a', 'é'), get(tags, 0))
array_contains(payload.items.sku, 'z')
array_contains(map_keys(attrs), 'k')
array_contains(map_values(attrs), '')
array_contains(map_values(counts), -1)
arrays_overlap(tags, array('z', 'b'))
NOT arrays_overlap(tags, array('z', 'b'))
arrays_overlap(tags, map_keys(attrs))
arrays_overlap(tags, map_keys(attrs)) IS NULL
arrays_overlap(payload.items.n, nums) IS NULL
map_contains_key(attrs, 'e')
NOT map_contains_key(attrs, 'e')
attrs['k'] = 'v'
attrs.k = 'v'
attrs['k'] IS NULL
counts['c'] > 3
upper(attrs['k']) IN ('V', '')
size(tags) > 1
size(attrs) = 0
cardinality(payload.items) <> 2
array_size(nums) = id
get(tags, 0) = 'a'
get(tags, 9) IS NULL
get(nums, id) = 3
try_element_at(tags, -1) = 'b'
try_element_at(nums, 2) = 3
try_element_at(attrs, 'k') = 'v'
try_element_at(payload.items, 1).sku = 'x'
get(payload.items, 1).n = 0
get(split(body, ','), 0) = '{"user": "x"'
get(split(body, '\\|'), 0) = body
size(split(body, '')) > 20
get_json_object(body, '$.user') = 'ann'
get_json_object(body, '$.user') IS NULL
get_json_object(body, '$.user') IN ('late', 'x')
get_json_object(body, '$.n') = '3'
get_json_object(body, '$.n') ILIKE '%E%'
lower(payload.user.name) = 'ann'
payload.user.name ILIKE 'AN%'
payload.user.id IN (7, 9007199254740993)
payload.user.id > 6.5
payload.user.id + size(tags) > 8
CASE WHEN size(nums) > 1 THEN payload.user.name ELSE attrs['k'] END = 'Ann'
exists(tags, t -> t = 'b')
NOT exists(tags, t -> t = 'b')
exists(tags, t -> t = 'b') IS NULL
exists(tags, t -> t = NULL) IS NULL
exists(tags, t -> t LIKE 'a%' OR t IS NULL)
exists(tags, t -> upper(t) IN ('A', 'É'))
exists(tags, t -> T <> body)
exists(tags, t -> t = lower(payload.user.name))
exists(nums, x -> x > 2)
NOT exists(nums, x -> x > 2)
exists(nums, x -> x = 3.5)
exists(nums, x -> x = 3)
exists(nums, x -> x > id AND x % 2 = 1)
exists(nums, x -> x IN (1, 7, 3000000000))
exists(sizes, x -> x < 0.75)
NOT exists(tags, t -> t = attrs['e'])
exists(nums, x -> x = payload.user.id)
NOT arrays_overlap(tags, array(attrs['e'], 'zz'))
arrays_overlap(nums, array(payload.user.id, 3))
arrays_overlap(array('b'), tags)
exists(payload.items, i -> i.n > 1 AND i.sku = 'x')
exists(payload.items, i -> i.sku IN ('y', 'z') AND i.n IS NULL)
exists(payload.items, i -> i IS NULL)
exists(payload.items, i -> exists(tags, t -> t >= i.sku))
exists(map_values(counts), c -> c > 3)
exists(split(body, ','), p -> p LIKE '%user%')
forall(nums, x -> x > 0)
NOT forall(nums, x -> x > 0)
forall(nums, x -> x > 0) IS NULL
forall(payload.items, i -> i.n >= 0 OR i.sku = 'y')
size(filter(nums, x -> x > 1)) = 1
size(filter(payload.items, i -> i.n > 0 AND i.sku <> 'y')) > 0
get(filter(tags, t -> t <> 'a'), 0) = 'b'
array_contains(transform(tags, t -> upper(t)), 'A')
get(transform(nums, x -> try_multiply(x, id)), 0) > 20
exists(transform(payload.items, i -> i.sku), s -> s = 'z')
""".strip().split("\n")  # fmt: skip

_VALUES = """
payload.user.id
payload.items.sku
payload.user
payload.items
attrs['k']
counts
map_keys(counts)
map_values(counts)
try_element_at(tags, -1)
size(attrs)
split(body, ',')
get_json_object(body, '$')
get_json_object(body, '$.user')
get_json_object(body, '$.user.id')
get_json_object(body, '$.n')
get_json_object(body, '$.n[1][0]')
get_json_object(body, '$.n[1]')
get_json_object(body, '$.deep')
get_json_object(body, '$.deep.list[3]')
get_json_object(body, '$.deep.list[2].x')
get_json_object(body, '$[''a b'']')
get_json_object(body, '$[0].user')
get_json_object(body, '$[1]')
filter(nums, x -> x > 1)
filter(payload.items, i -> i.n IS NOT NULL)
filter(tags, t -> t = 'nowhere')
transform(tags, t -> concat(t, '-', cast(id AS STRING)))
transform(nums, x -> try_add(x, id))
transform(payload.items, i -> i.sku)
transform(payload.items, i -> i.n > 0)
transform(tags, t -> size(filter(nums, x -> x > length(t))))
exists(nums, x -> x > 2)
forall(nums, x -> x > 2)
struct(attrs['k'], payload['user'], (id), counts['c'] AS n)
arrays_zip((tags), nums)
to_json(payload)
to_json(payload.user)
to_json(payload.items)
to_json(tags)
to_json(nums)
to_json(sizes)
to_json(attrs)
to_json(counts)
to_json(map('a"', tags, 'b', filter(tags, t -> t = 'a')))
to_json(array(struct(body, nums), struct(body, if(id < 0, nums, NULL) AS nums)))
to_json(struct(id, body AS text, TRUE AS flag, payload.on, CAST(NULL AS INT) AS none))
to_json(struct(CAST(id AS DECIMAL(20, 8)) / 1000000000 AS tiny, 1.50 AS half, CAST(id AS TINYINT) AS small))
to_json(struct(TIMESTAMP '1969-12-31 23:59:59.999999' AS before, DATE '0099-01-02' AS old))
to_json(array(timestamp_micros(id * 1234567L)))
to_json(array(CAST(body AS BINARY)))
to_json(array(double('NaN'), double('-Infinity'), 1e7D, 1e-5D, -0.0D))
to_json(array(concat(body, decode(unhex('0001091f7fc285e280a8f09f9880'), 'UTF-8'))))
to_json(struct(parse_json('{"b": [1.5, null], "a": "x"}') AS v, 7 AS n))
length(to_json(payload)) + 1
get_json_object(to_json(payload), '$.user.name')
""".strip().split("\n")


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> list[dict[str, Any]]:
    """Spark's results for all expressions, by row."""
    table = pa.Table.from_pylist([_typed(row) for row in _ROWS], _TYPES)
    predicates = [f"({text}) AS p{i}" for i, text in enumerate(_PREDICATES)]
    values = [f"{text} AS v{i}" for i, text in enumerate(_VALUES)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its sockets to the garbage collector
        texts = [
            text.replace("[''", "[\\'").replace("'']", "\\']").replace("\\|", "\\\\|")
            for text in (*predicates, *values)
        ]
        frame = spark.createDataFrame(table).selectExpr("id", *texts)
        rows: list[dict[str, Any]] = frame.toArrow().sort_by("id").to_pylist(maps_as_pydicts="strict")
        gc.collect()
    return rows


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as Arrow takes it."""
    made = {name: list(row[name].items()) if row[name] is not None else None for name in ("attrs", "counts")}
    payload = row["payload"]
    if payload is not None and payload["on"] is not None:
        payload = {**payload, "on": pa.scalar("2026-11-21").cast(pa.date32()).as_py()}
    return {**row, **made, "payload": payload}


def test_predicates_hold_where_spark_says(found: list[dict[str, Any]]) -> None:
    """WHERE lets the same rows through, whether the part is looked up or checked."""
    wrong = []
    for number, text in enumerate(_PREDICATES):
        wanted = [row["id"] for row in found if row[f"p{number}"] is True]
        ours = evaluate(f"SELECT id FROM calls WHERE {text}", _STREAM, _ROWS)
        if (ids := [row.result["id"] for row in ours if row.result]) != wanted:
            wrong.append(f"{text} holds in {ids}, Spark's in {wanted}")
    assert not wrong, "\n".join(wrong)


def test_values_are_what_spark_says(found: list[dict[str, Any]]) -> None:
    """A SELECT list yields the same parts."""
    wrong = []
    for number, text in enumerate(_VALUES):
        ours = evaluate(f"SELECT {text} AS v FROM calls", _STREAM, _ROWS)
        for one, row in zip(ours, found, strict=True):
            wanted = json.loads(json.dumps(row[f"v{number}"], default=str))
            assert one.result is not None, f"{text} in row {row['id']}"
            if one.result["v"] != wanted:
                wrong.append(f"{text} is {one.result['v']!r}, Spark's {wanted!r} in row {row['id']}")
    assert not wrong, "\n".join(wrong[:30])
