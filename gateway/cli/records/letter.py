"""A dead letter (docs/results.md), and a check whether the record in it can be published again."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from gateway.evaluation.records import PlacedRecord, source_batch
from gateway.kafka import Record
from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode_pieces
from spark_jobs.engine.rows.headers import unpacked_headers

__all__ = ["DeadLetter", "printable", "why_not_replayed"]

_OF_RECORDS = frozenset(("not-evaluated", "result-too-large", "too-many-rows", "undecodable"))
"""The codes of dead letters that contain a record of a source topic."""


class DeadLetter(msgspec.Struct, frozen=True):
    """A dead letter."""

    time: datetime
    code: str
    source: str
    """The place of the record, as ``<topic>/<partition>/<offset>``; for a digest, its ``ce_id``."""
    detail: str
    place: str = ""
    """The place of the letter itself, as ``<partition>/<offset>``."""
    key: bytes | None = None
    value: bytes | None = None

    @classmethod
    def of(cls, record: Record) -> DeadLetter:
        """Read a record of the topic of dead letters."""
        headers = {name: (value or b"").decode("utf-8", "replace") for name, value in record.headers}
        code, source, detail = (headers.get(name, "") for name in ("code", "source", "detail"))
        time = datetime.fromtimestamp(record.time_ms / 1000, UTC)
        return cls(time, code, source, detail, record.position, record.key, record.value)

    def concerns(self, stream: Stream) -> bool:
        """Tell whether the letter is about a record of a stream's topic, or about one of its digests."""
        topic = self.source.rsplit("/", 2)[0]
        return topic == stream.topic or self.source.startswith(f"{stream.name}/")

    @property
    def line(self) -> str:
        """The letter as a line for a person."""
        return printable(f"{self.time:%Y-%m-%d %H:%M:%S}  {self.code}  {self.source}  {self.detail}")


def printable(text: str) -> str:
    r"""Return a text that is safe for a terminal: a character that is not printable becomes a question mark.

    The details of letters may quote names from records, which may have any characters.

    Example:
        >>> printable("a\x1b[2Jb"), printable("é – 7")
        ('a?[2Jb', 'é – 7')
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def why_not_replayed(letter: DeadLetter, stream: Stream, settings: Settings) -> str | None:
    """Return why the record of a dead letter cannot be published again; None if it can.

    Args:
        letter: The dead letter.
        stream: The stream as it is declared now.
        settings: The settings.

    Example:
        >>> letter = DeadLetter(datetime(2026, 11, 29, tzinfo=UTC), "events-deleted", "quotes/0/7", "7 to 9.")
        >>> why_not_replayed(letter, Stream("s_1", "quotes", (), "quotes", "json", {}, ""), Settings())
        'the dead letter has no record'
    """
    if letter.code not in _OF_RECORDS or letter.value is None or letter.source.rsplit("/", 2)[0] != stream.topic:
        return "the dead letter has no record"
    if stream.registry:  # whether the record fits is unknown, since only the evaluator knows the registry's schemas
        return None
    batch = source_batch([PlacedRecord(letter.value, letter.key, letter.time, 0, 0)])
    again = next((letters for _, letters in decode_pieces(batch, stream, settings) if letters is not None), None)
    if again is None:
        return None
    detail = dict(unpacked_headers(again["headers"][0].as_py()))["detail"].decode("utf-8", "replace")
    return f"the record does not fit the stream: {detail.rstrip('.')}"
