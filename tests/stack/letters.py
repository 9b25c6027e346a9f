"""Waits for expected dead letters, and finds unexpected ones."""

from __future__ import annotations

from tests.kafka_client import RawClient, wait_until
from tests.kafka_tail import DeadLetter, Tail, dead_letters

__all__ = ["await_letters"]


def await_letters(
    client: RawClient,
    tail: Tail,
    expected: dict[int, tuple[bytes | None, bytes | None]],
    topic: str,
    partition: int,
    code: str,
) -> list[DeadLetter]:
    """Return the dead letters of a partition once each expected offset has one.

    Args:
        client: The client whose replies are collected meanwhile.
        tail: The reader of cq.deadletters.
        expected: By offset, the key and value that the dead letter must have.
        topic: The source topic.
        partition: The source partition; a dead letter for another offset of this partition is a failure.
        code: The code that all dead letters must have.
    """
    found: list[DeadLetter] = []

    def complete() -> bool:
        client.poll(0.05)
        new = [letter for letter in dead_letters(tail) if letter.source.startswith(f"{topic}/{partition}/")]
        found.extend(new)
        return {int(letter.source.rsplit("/", 1)[1]) for letter in found} >= expected.keys()

    wait_until(complete, f"dead letters of {topic} at {sorted(expected)}")
    for letter in found:
        offset = int(letter.source.rsplit("/", 1)[1])
        assert offset in expected, letter
        assert (code, *expected[offset]) == (letter.code, letter.key, letter.value)
    assert len(expected) == len(found), [letter.source for letter in found]
    return found
