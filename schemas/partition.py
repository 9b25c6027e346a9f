"""The default partitioner of Kafka: the partition of a key.

Keyed topics are partitioned by murmur2 of the key (docs/commands.md), so a client can compute its partition of
`cq.replies`. With `partitioner=murmur2_random`, librdkafka uses the same partitions.
"""

from __future__ import annotations

from struct import unpack_from

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
ROTATION = 24
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash with Kafka's seed, as an unsigned number.

    The result equals the signed result of `org.apache.kafka.common.utils.Utils.murmur2` modulo 2^32.
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
    """Return the partition that Kafka's Java client chooses for a key.

    Args:
        key: The record's key; not None (records without a key have no fixed partition).
        partitions: The number of partitions of the topic, at least 1.

    Example:
        >>> partition_of(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
        True
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions
