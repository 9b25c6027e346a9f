"""How many commands a subscriber may send."""

from __future__ import annotations

from gateway.turns.rates import CommandRates


def _accepted(rates: CommandRates, subscriber: bytes, count: int, now_ms: int, per_second: int = 100) -> int:
    return sum(rates.refusal(subscriber, per_second, now_ms) is None for _ in range(count))


def test_a_burst_then_the_rate() -> None:
    """Ten seconds' commands may come at once, then as many as time allows; others have buckets of their own."""
    rates = CommandRates()
    assert 1000 == _accepted(rates, b"alice", 5000, 0)
    assert 50 == _accepted(rates, b"alice", 5000, 500)
    assert 1 == _accepted(rates, b"bob", 1, 500)
    assert 0 == _accepted(rates, b"alice", 10, 400), "a clock that goes back gives nothing"
    assert 1000 == _accepted(rates, b"alice", 5000, 3_600_000)


def test_a_refusal_says_when_to_try_again() -> None:
    """The reply has the limit, and how long to wait."""
    rates = CommandRates()
    assert 10 == _accepted(rates, b"alice", 10, 0, 1)
    refusal = rates.refusal(b"alice", 1, 0)
    assert refusal is not None
    assert ("quota-exceeded", "Send it again in 1 s, under another command_id.") == (refusal.code, refusal.hint)
    assert "1 a second" in (refusal.detail or "")


def test_no_limit_by_default() -> None:
    """With 0 any number of commands is carried out."""
    assert 100_000 == _accepted(CommandRates(), b"alice", 100_000, 0, 0)


def test_a_rate_that_changes() -> None:
    """A lower rate counts at once, a higher one as time goes."""
    rates = CommandRates()
    assert 500 == _accepted(rates, b"alice", 500, 0)
    assert 10 == _accepted(rates, b"alice", 500, 0, 1)
    assert 200 == _accepted(rates, b"alice", 500, 1000, 200)
