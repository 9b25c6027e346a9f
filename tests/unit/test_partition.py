"""Partitions as Kafka's Java client chooses them."""

from __future__ import annotations

import pytest

from schemas.partition import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hash_is_that_of_the_java_client(key: bytes, signed: int) -> None:
    """The hash equals Kafka's own published test vectors."""
    assert murmur2(key) == signed % 2**32
    assert partition_of(key, 7) == (signed & 0x7FFFFFFF) % 7


def test_one_partition_takes_every_key() -> None:
    """A topic of one partition holds all keys, the empty one included."""
    assert {partition_of(key, 1) for key in (b"", b"a", "Ünï".encode())} == {0}
