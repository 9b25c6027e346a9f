"""VARIANT columns: values in records, dead letters, and their use in results and predicates."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.testing import Stream, evaluate
from grouping.model.catalog import StreamColumn
from grouping.model.errors import InputError
from grouping.values.variant import parse_variant, parse_variant_path, shown, variant_text
from spark_jobs.engine.decode.json_events import JsonReader
from spark_jobs.engine.decode.json_exact import read_record

_COLUMN = StreamColumn("v", "VARIANT")
_STREAM = Stream("deliveries (id INT, v VARIANT, vs ARRAY<VARIANT>)")


def _read(*records: bytes) -> tuple[list[Any], dict[int, str]]:
    read, wrong = JsonReader([_COLUMN])(pa.array(records))
    return read(_COLUMN), wrong


def test_values_are_written_in_one_way() -> None:
    """Fields stand in order, numbers as their kinds have them; null is a value, and a missing field is none."""
    records = [b'{"v": {"b": 1.50, "a": [1e3, -0.0, "\\u001f"]}}', b'{"v": null}', b"{}", b'{"v": {"a": 1, "a": 2}}']
    found, wrong = _read(*records)
    assert found == ['{"a":[1e3,0,"\\u001F"],"b":1.5}', "null", None, '{"a":2}']
    assert not wrong


@pytest.mark.parametrize(
    "value",
    [
        b'"\\ud800"',
        b'{"\\ud800": 1}',
        b'"\xff"',
        b"[" * 201 + b"]" * 201,
        b"[" * 5000 + b"]" * 5000,
        b"9" * 1001,
        b"NaN",
    ],
)
def test_what_no_variant_holds_is_a_dead_letter(value: bytes) -> None:
    """Half of a surrogate pair, bytes that are no UTF-8, levels and digits beyond the limits; the others go on."""
    found, wrong = _read(b'{"v": 1}', b'{"v": ' + value + b"}", b'{"v": 2}')
    assert found == ["1", "2"]
    assert list(wrong) == [1]


def test_the_deepest_value_is_read_and_shown() -> None:
    """A value of 200 levels passes every stage."""
    deep = "[" * 200 + "1e0" + "]" * 200
    ours = evaluate("SELECT v FROM deliveries", _STREAM, [f'{{"id": 1, "v": {deep}}}'.encode()])
    assert ours[0].result == {"v": json.loads(deep)}


def test_a_deep_text_with_half_of_a_pair_is_no_variant() -> None:
    """The half is replaced first, and the depth is a fault of the text then, not of the task."""
    assert parse_variant('["\\ud800"]') == '["?"]'
    assert parse_variant("[" * 201 + '"\\ud800"' + "]" * 201) is None


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3).map(float)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3).filter(str.isprintable), inner),
    max_leaves=12,
)


@given(_JSON)
def test_both_readers_and_parse_json_agree(value: Any) -> None:
    """The fast reader, the exact reader and parse_json give the same text of a value, with its meaning."""
    text = json.dumps(value)
    exact = read_record(f'{{"v": {text}}}'.encode(), [_COLUMN])[0]
    assert _read(f'{{"v": {text}}}'.encode())[0] == [exact]
    assert parse_variant(text) == exact
    assert isinstance(exact, str)
    assert variant_text(exact.encode()) == exact if len(text) < 19 else True
    assert json.loads(shown(exact)) == json.loads(json.dumps(value, sort_keys=True), parse_int=_near, parse_float=float)


def _near(digits: str) -> int | float:
    """Return a whole number, as a double where it has more digits than a DECIMAL."""
    return int(digits) if len(digits.lstrip("-")) <= 38 else float(digits)


def test_parts_are_found_by_queries() -> None:
    """Parts decide which events match, constants being lifted; results hold parts, whole values and elements."""
    rows = [
        b'{"id": 1, "v": {"user": {"id": 7}, "tags": ["a", "b"], "n": 1.50}, "vs": [1, null, {"k": "x"}]}',
        b'{"id": 2, "v": {"user": {"id": "7"}, "tags": "a"}}',
        b'{"id": 3, "v": [7], "vs": []}',
        b'{"id": 4, "v": null}',
        b'{"id": 5}',
    ]

    def matches(condition: str) -> list[int]:
        made = evaluate(f"SELECT id FROM deliveries WHERE {condition}", _STREAM, rows)
        return [row.result["id"] for row in made if row.result]

    assert matches("variant_get(v, '$.user.id', 'int') = 7") == [1, 2]
    assert matches("variant_get(v, '$.user.id', 'string') IN ('7', '8')") == [1, 2]
    assert matches("v IS NULL") == [5]
    assert matches("is_variant_null(v)") == [4]
    assert matches("array_contains(variant_get(v, '$.tags', 'array<string>'), 'b')") == [1]
    assert matches("exists(vs, x -> variant_get(x, '$.k', 'string') = 'x')") == [1]
    assert matches("CAST(v AS ARRAY<INT>)[0] = 7") == [3]
    made = evaluate(
        "SELECT v, variant_get(v, '$.n') AS n, vs, variant_get(v, '$', 'struct<n: decimal(5,2), user: variant>') AS s,"
        " variant_get(v, '$.user', 'map<string, variant>') AS m FROM deliveries",
        _STREAM,
        rows,
    )
    assert made[0].result == {
        "v": {"user": {"id": 7}, "tags": ["a", "b"], "n": 1.5},
        "n": 1.5,
        "vs": [1, None, {"k": "x"}],
        "s": {"n": "1.50", "user": {"id": 7}},
        "m": {"id": 7},
    }
    assert made[3].result == {"v": None, "n": None, "vs": None, "s": None, "m": None}


@pytest.mark.parametrize("path", ["", "a", "$.", "$a", "$[-1]", "$[*]", "$[ 1 ]", " $", "$['a]", "$.a."])
def test_a_wrong_path_is_refused(path: str) -> None:
    """A path that Spark refuses is refused."""
    with pytest.raises(InputError, match="path"):
        parse_variant_path(path)


def test_names_in_quotes_are_steps() -> None:
    """Quotes of either kind hold a name with dots and brackets."""
    assert parse_variant_path("""$['a.b']["it's"]['']""") == ("a.b", "it's", "")
