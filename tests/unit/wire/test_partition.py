"""Partitions as Kafka's Java client chooses them."""

from __future__ import annotations

import pytest

from gateway.registry.partitions import partitions_of
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


@pytest.mark.parametrize("length", range(0, 30))
def test_many_keys_at_once_have_the_partitions_of_each(length: int) -> None:
    """By columns each key gets the partition that it gets alone, whatever the length of its last block."""
    keys = [bytes((number * 37 + place * 11) % 256 for place in range(length)) for number in range(50)]
    assert [partition_of(key, 32) for key in keys] == partitions_of(keys, 32)


def test_keys_of_different_lengths_go_together() -> None:
    """Keys need not be alike."""
    keys = [b"k" * number for number in range(40)]
    assert [partition_of(key, 5) for key in keys] == partitions_of(keys, 5)
