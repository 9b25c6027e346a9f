"""A client that is replaced when an answer is late."""

from __future__ import annotations

from itertools import count

import pytest

from grouping.process.renewed import RenewedClient


def _client() -> RenewedClient[int]:
    """Return a client whose clients are numbers, and for which TimeoutError is late."""
    numbers = count()
    return RenewedClient(lambda: next(numbers), lambda error: isinstance(error, TimeoutError))


def test_a_late_answer_is_asked_for_by_another_client() -> None:
    """The question goes on until a client answers."""
    client = _client()

    def question(number: int) -> str:
        if number < 3:
            raise TimeoutError
        return f"client {number}"

    assert client.ask(question, 60.0) == "client 3"
    assert client.client == 3


def test_it_ends_in_time_and_with_a_new_client() -> None:
    """The error is raised after the time, and the next question has another client."""
    client = _client()

    def question(_: int) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        client.ask(question, 0.0)
    assert client.client == 1


def test_other_errors_are_answers() -> None:
    """They are raised at once, and the client stays."""
    client = _client()

    def question(_: int) -> None:
        raise ValueError("no such topic")

    with pytest.raises(ValueError, match="no such topic"):
        client.ask(question, 60.0)
    assert client.client == 0
