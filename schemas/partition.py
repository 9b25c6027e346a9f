"""Kafka's default partitioner: which partition a key belongs to.

Keyed topics are partitioned by murmur2 of the key (docs/commands.md), so that a client can tell its own partition of
`cq.replies` without asking anybody. librdkafka produces alike with `partitioner=murmur2_random`.
"""

from __future__ import annotations

from struct import unpack_from

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
ROTATION = 24
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """32-bit murmur2 with Kafka's seed, as an unsigned number.

    Source: `org.apache.kafka.common.utils.Utils.murmur2`, whose signed result this equals modulo 2^32.
    """
    length = len(data)
    whole = length & ~3
    value = SEED ^ length
    for block in unpack_from(f"<{whole >> 2}I", data):
        mixed = block * MULTIPLIER & _MASK
        value = (value * MULTIPLIER ^ (mixed ^ mixed >> ROTATION) * MULTIPLIER) & _MASK
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & _MASK
    value ^= value >> 13
    value = value * MULTIPLIER & _MASK
    return value ^ (value >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a record with this key, as Kafka's Java client chooses it.

    Args:
        key: The record's key; not None (records without a key have no fixed partition).
        partitions: How many partitions the topic has, at least 1.

    Example:
        >>> partition_of(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
        True
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions
