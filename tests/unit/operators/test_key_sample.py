"""Samples of keys: a key in two source partitions is found, and no other."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gateway.registry.operator_states import split_keys
from grouping.model.catalog import Stream
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers, key_columns
from spark_jobs.engine.operators.row_before.key_sample import KeySample

_STREAM = Stream("s_1", "s", (), "t", "json", {"0": 0}, "", partition_key=("k",))  # type: ignore[arg-type]
_KEYS = st.sets(st.one_of(st.none(), st.text(max_size=2)), min_size=1, max_size=30)


def _added(keys: KeyNumbers, values: list[str | None]) -> None:
    """Add keys of BY room, k: the room is another in each batch."""
    rooms = pa.array([f"room {keys.count}"] * len(values))
    keys.of(key_columns([rooms, pa.array(values, pa.string())]))


def _split(*samples: bytes) -> int:
    notes = SimpleNamespace(key_samples=lambda ids: dict.fromkeys(ids, samples))
    return split_keys(notes, [_STREAM])[_STREAM.stream_id]  # type: ignore[arg-type]


@given(left=st.lists(_KEYS, max_size=4), right=st.lists(_KEYS, max_size=4))
def test_split_keys_are_counted(left: list[set[str | None]], right: list[set[str | None]]) -> None:
    """Keys that both partitions met are counted once, whatever the other columns of BY; NULL is a key, too."""
    written = []
    for batches in (left, right):
        keys, sample = KeyNumbers(), KeySample([1], 2)
        for batch in batches:
            _added(keys, sorted(batch, key=str))
            sample.of(keys)
        written.append(sample.of(keys).tobytes())
    assert len(set[str | None]().union(*left) & set[str | None]().union(*right)) == _split(*written)


def test_a_clean_stream_has_no_split_keys() -> None:
    """A sample has a bounded size; partitions with very many keys of their own have none in common."""
    written = []
    for partition in range(4):
        keys, sample = KeyNumbers(), KeySample([1], 2)
        for batch in range(3):
            _added(keys, [f"{4 * number + partition}" for number in range(batch * 20_000, (batch + 1) * 20_000)])
        written.append(sample.of(keys).tobytes())
    assert {8 * 4_096} == {len(each) for each in written}
    assert 0 == _split(*written)
    assert 4_096 == _split(*written, written[0])


def test_a_state_that_is_loaded_anew() -> None:
    """The sample is of the keys that the state has now."""
    sample = KeySample([1], 2)
    for values in (["a", "b"], ["c"]):
        keys = KeyNumbers()
        _added(keys, [*values])
        assert len(values) == sample.of(keys).size
