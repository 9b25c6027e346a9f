"""Removes records that are too large for Kafka from a stored journal, so that recovery can go on."""

from __future__ import annotations

import logging

import msgspec

from gateway.kafka import OutgoingRecord
from gateway.state.journal import Journal
from schemas.codec import Encoding, decode_reply, encode_reply
from schemas.single_object import MAGIC

__all__ = ["without_largest"]

log = logging.getLogger(__name__)

_SURELY_SMALL = 256 << 10
"""Size in bytes up to which every topic of the gateway accepts a record."""


def without_largest(journal: Journal, replies_topic: str) -> Journal | None:
    """Return a journal without its largest record; for a journal with a record that Kafka has refused as too large.

    The result is None if all records are so small that every topic accepts them.

    If the largest record is a reply, it is kept without its result, since each command must have exactly one reply. Any
    other record is left out. Both cases are logged.

    Args:
        journal: The journal.
        replies_topic: The topic of replies.
    """
    largest = max(range(len(journal.records)), key=lambda number: journal.records[number].size, default=None)
    if largest is None or journal.records[largest].size <= _SURELY_SMALL:
        return None
    record = journal.records[largest]
    fields = {"topic": record.topic, "bytes": record.size}
    if record.topic == replies_topic and (short := _without_result(record)).size <= _SURELY_SMALL:
        log.error("a stored reply is too large for kafka, and is written without its result", extra=fields)
        records = [*journal.records[:largest], short, *journal.records[largest + 1 :]]
        return msgspec.structs.replace(journal, records=records)
    log.error("a stored record is too large for kafka, and is left out", extra=fields)
    records = [*journal.records[:largest], *journal.records[largest + 1 :]]
    replies = {number - (number > largest): key for number, key in journal.replies.items() if number != largest}
    return msgspec.structs.replace(journal, records=records, replies=replies)


def _without_result(record: OutgoingRecord) -> OutgoingRecord:
    value = record.value or b""
    reply = decode_reply(value)
    detail = f"The result is left out: the reply had {len(value)} bytes, more than Kafka takes."
    short = msgspec.structs.replace(reply, result=None, detail=detail)
    encoding: Encoding = "avro" if value.startswith(MAGIC) else "json"
    return msgspec.structs.replace(record, value=encode_reply(short, encoding))
