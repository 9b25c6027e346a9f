"""Dead letters as `cq dead-letters` shows them, and the records among them that can be published again."""

from __future__ import annotations

import msgspec
import pytest

from gateway.cli.records.letter import DeadLetter, why_not_replayed
from gateway.kafka import Record
from tests.unit.matching.event_batches import SETTINGS, stream

_STREAM = stream("n INT")  # on the topic "source"
_DETAIL = 'Column "n" of type INT cannot hold the value: a string is no number.'


def _letter(code: str = "undecodable", source: str = "source/3/17", value: bytes | None = b'{"n": "7"}') -> DeadLetter:
    headers = [("code", code.encode()), ("detail", _DETAIL.encode()), ("source", source.encode())]
    return DeadLetter.of(Record("cq.deadletters", 0, 5, 1_763_719_200_123, b"k", value, headers))


def test_a_letter_is_one_line() -> None:
    """Time, code, place and reason stand in a line, without characters that move a terminal's cursor."""
    letter = _letter()
    assert f"2025-11-21 10:00:00  undecodable  source/3/17  {_DETAIL}" == letter.line
    assert ("0/5", b"k") == (letter.place, letter.key)
    assert "a?[2Jb?" in msgspec.structs.replace(letter, detail="a\x1b[2Jb\n").line


@pytest.mark.parametrize(
    ("source", "concerns"),
    [("source/3/17", True), ("quotes/1763719200000/1", True), ("source.other/3/17", False), ("other/3/17", False)],
)
def test_letters_of_a_stream(source: str, concerns: bool) -> None:
    """Letters name the stream's topic, those of digests the stream."""
    assert concerns == _letter(source=source).concerns(_STREAM)


@pytest.mark.parametrize(
    ("letter", "reason"),
    [
        (_letter("events-deleted", value=None), "the dead letter has no record"),
        (_letter("malformed-command", "cq.commands/0/7"), "the dead letter has no record"),
        (_letter("result-too-large", "quotes/1763719200000/1"), "the dead letter has no record"),
        (_letter(), f"the record does not fit the stream: {_DETAIL.rstrip('.')}"),
        (_letter(value=b'{"n": 7}'), None),
        (_letter("not-evaluated", value=b'{"n": 7}'), None),
        (_letter("not-evaluated"), f"the record does not fit the stream: {_DETAIL.rstrip('.')}"),
    ],
)
def test_records_that_fit_can_be_replayed(letter: DeadLetter, reason: str | None) -> None:
    """A record that would be a dead letter again stays; a changed stream takes more of them."""
    assert reason == why_not_replayed(letter, _STREAM, SETTINGS)
    if letter.value is not None and letter.source.startswith("source/"):
        assert why_not_replayed(letter, _STREAM.altered(lenient=True), SETTINGS) in (
            None,
            "the dead letter has no record",
        )


def test_the_evaluator_judges_records_with_schemas_of_a_registry() -> None:
    """The command line has no schemas, so each record may be published again."""
    asking = msgspec.structs.replace(_STREAM, format="avro", framing="confluent", registry="http://r")
    assert why_not_replayed(_letter(value=bytes(9)), asking, SETTINGS) is None
