"""A record that is no change of a database: the dead letter names the path, the expected value, and the value found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.engine.operators.lookup_join.changes import decode_changes
from tests.unit.matching.event_batches import header
from tests.unit.replica.table_records import SETTINGS, batch_of, table

_FORMATS = ("debezium-json", "maxwell-json", "canal-json")
_TEXT = "a text in it is no valid UTF-8 or has half of a surrogate pair."
_FAULTS = [
    ("debezium-json", b'{"op": 1}', 'The value is no Debezium change: "op" is a number, and must be a string.'),
    (
        "debezium-json",
        b'{"schema": null, "payload": {"op": ["c"]}}',
        'The value is no Debezium change: "payload.op" is an array, and must be a string.',
    ),
    ("debezium-json", b"[]", "The value is JSON but no object."),
    ("debezium-json", b'{"op": "c', "The value is not one JSON object: Unterminated string starting at character 7."),
    ("debezium-json", b'{"op": "\xff"}', f"The value is no Debezium change: {_TEXT}"),
    ("debezium-json", b'{"op": "\\ud800"}', f"The value is no Debezium change: {_TEXT}"),
    ("debezium-json", b'{"a": ' * 5_000, "The value is nested too deeply."),
    (
        "debezium-json",
        b'{"op": "c", "after": "{\\"id\\": }"}',
        "The value is not one JSON object: Expecting value at character 7.",
    ),
    ("maxwell-json", b'{"type": true}', 'The value is no Maxwell change: "type" is a boolean, and must be a string.'),
    ("maxwell-json", b'"insert"', "The value is JSON but no object."),
    (
        "maxwell-json",
        b'{"type": "update", "data": {"id": "a"}, "old": {"\xff": 1}}',
        f"The row is no JSON object: {_TEXT}",
    ),
    (
        "canal-json",
        b'{"type": "INSERT", "data": {"id": "a"}}',
        'The value is no Canal change: "data" is an object, and must be an array.',
    ),
    (
        "canal-json",
        b'{"type": "INSERT", "data": [], "isDdl": "no"}',
        'The value is no Canal change: "isDdl" is a string, and must be a boolean.',
    ),
]


def _detail(form: str, value: bytes) -> str:
    of = table("id STRING", "at TIMESTAMP", key=["id"], form=form)
    _, letters = decode_changes(batch_of([(0, 0, (b"a", value))]), of, SETTINGS)
    return "" if letters is None else header(letters.to_pylist()[0], "detail")


@pytest.mark.parametrize(("form", "value", "detail"), _FAULTS)
def test_a_fault_of_an_envelope_has_no_words_of_the_library(form: str, value: bytes, detail: str) -> None:
    """Also within a payload, and in a row that is a text of JSON."""
    assert detail in _detail(form, value)


_JSON = st.recursive(
    st.sampled_from(["5", "true", '"c"', '"update"', '"INSERT"', "null", '"\\ud800"', "{}", "[]", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda found: f"[{', '.join(found)}]")
        | st.dictionaries(st.sampled_from(["op", "type", "data", "old", "after", "payload", "isDdl"]), inner).map(
            lambda found: "{" + ", ".join(f'"{name}": {value}' for name, value in found.items()) + "}"
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(_FORMATS), _JSON)
def test_no_detail_has_words_of_the_library(form: str, value: str) -> None:
    """Whatever stands in the fields of an envelope."""
    assert "Expected `" not in _detail(form, value.encode())
