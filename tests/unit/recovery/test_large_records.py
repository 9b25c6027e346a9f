"""A stored journal refused for its size is written without its largest records."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from confluent_kafka import KafkaError, KafkaException

from gateway.kafka import LARGEST_RECORD, OutgoingRecord, RecordTooLarge
from gateway.kafka.driver import mapped
from gateway.state.journal import Journal
from gateway.state.recovery.large_records import without_largest
from schemas.codec import Encoding, Reply, decode_reply, encode_reply

_REPLIES = "cq.replies"
_LARGE = "x" * LARGEST_RECORD


def _reply(command_id: str, result: object, encoding: Encoding) -> OutgoingRecord:
    reply = Reply(
        command_id=command_id,
        subscriber="ann",
        status="accepted",
        code="ok",
        message="done",
        result=result,
        replied_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return OutgoingRecord(_REPLIES, b"ann", encode_reply(reply, encoding), (), 0)


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_a_reply_loses_its_result_and_others_are_left_out(encoding: Encoding) -> None:
    """The numbers of remembered replies follow their records."""
    records = [
        OutgoingRecord("cq.catalog", b"k", _LARGE.encode() * 2, (), 0),
        _reply("small", {"a": 1}, encoding),
        _reply("large", {"a": _LARGE}, encoding),
    ]
    first = without_largest(Journal(1, {}, records, {1: b"small", 2: b"large"}), _REPLIES)
    assert first is not None
    assert (len(first.records), first.replies) == (2, {0: b"small", 1: b"large"})
    second = without_largest(first, _REPLIES)
    assert second is not None
    small, large = (decode_reply(record.value or b"") for record in second.records)
    assert (small.result is None, large.result, large.command_id) == (False, None, "large")
    assert "more than Kafka takes" in (large.detail or "")
    assert second.replies == first.replies
    assert all(record.fits for record in second.records)
    assert without_largest(second, _REPLIES) is None


def test_a_refusal_for_its_size_is_no_server_that_is_away() -> None:
    """The driver's code for a too large record has an error of its own, and no try follows."""
    with pytest.raises(RecordTooLarge), mapped("a test"):
        raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))


def test_what_surrounds_a_record_must_fit_too() -> None:
    """Key and headers count; a record of exactly the largest size has no room for them."""
    assert OutgoingRecord("t", b"k", b"v" * 1000).fits
    assert not OutgoingRecord("t", None, b"v" * LARGEST_RECORD).fits
    assert not OutgoingRecord("t", b"k" * (LARGEST_RECORD // 2), b"", (("h", b"v" * (LARGEST_RECORD // 2)),)).fits
