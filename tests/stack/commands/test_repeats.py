"""Commands that come again by the thousand: each gets its first reply, and others don't wait (docs/commands.md)."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from tests.ground import Ground
from tests.stack.counter import Counter

_MANY = 5_000


def _commands(numbers: Iterable[int], text: str = "SHOW CQS LIMIT 1") -> list[tuple[str, str, str]]:
    return [(f"c{number}", f"s{number % 3}", text) for number in numbers]


def test_thousands_of_repeats_are_answered_at_once(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 commands again, in any order, and a new one of another: all are answered.

    The replies are read together. A read for each reply would take many times as long as the commands did.
    """
    monkeypatch.setattr("gateway.commands.repeats.ANSWER_SECONDS", 60.0)
    counter = Counter(ground.settings)
    took = counter.serve(_commands(range(_MANY)))
    first = counter.replies()
    counter.desk.now_ms += 60_000
    again = _commands(range(_MANY))
    random.Random(7).shuffle(again)
    took_again = counter.serve([*again[:2500], ("new", "bob", "SHOW CQS"), *again[2500:]])
    assert took_again < 10 * took
    replies = counter.replies()
    assert ["ok"] == [reply.code for reply in replies.pop("new")]
    assert {name: [*some, *some] for name, some in first.items()} == replies


def test_repeats_far_apart(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few repeats from here and there in a long log are found."""
    monkeypatch.setattr("gateway.commands.repeats.ANSWER_SECONDS", 60.0)
    counter = Counter(ground.settings)
    counter.serve(_commands(range(12_000)))
    counter.serve(_commands(range(0, 12_000, 2_999)))
    repeated = [replies for replies in counter.replies().values() if len(replies) > 1]
    assert 5 == len(repeated)
    assert all(first == second for first, second in repeated)


def test_repeats_that_take_too_long_are_asked_for_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply not found in time is `unavailable`, without a second run; later the same id has its reply."""
    monkeypatch.setattr("gateway.commands.repeats.ANSWER_SECONDS", 60.0)
    counter = Counter(ground.settings)
    commands = _commands(range(3), "CREATE CQ a AS SELECT k FROM t WHERE k = 1")
    counter.serve(commands)
    with monkeypatch.context() as patch:
        patch.setattr("gateway.commands.repeats.ANSWER_SECONDS", 0.0)
        counter.serve(commands)
    counter.serve(commands)
    for replies in counter.replies().values():
        assert ["ok", "unavailable", "ok"] == [reply.code for reply in replies]
        assert replies[0] == replies[2]
