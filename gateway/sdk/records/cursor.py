"""Cursors: the places of readers as opaque text. A reader can resume from the text even if the CQ no longer exists."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence

import msgspec

from gateway.sdk.errors import BadCursor
from gateway.sdk.records.record import Mark
from gateway.sdk.results import ContinuousQuery, End

__all__ = ["CursorWriter", "ReadingPlace", "decode_cursor", "encode_cursor", "place_of"]

_FORM = "2."
"""The prefix of cursors in the present form: the encoded queries follow, then a dot and the encoded positions."""
_FIRST_FORM = "1."
"""The prefix of cursors in the earlier form, where queries and positions are encoded together."""


class ReadingPlace(msgspec.Struct):
    """How far one CQ has been read."""

    query: ContinuousQuery
    """The CQ as it was when reading began."""
    next: dict[int, int]
    """Partition of the destination's topic → offset of the next record to read."""
    marks: dict[int, Mark | int] = {}
    """Source partition → mark of the last match that was handed over. Cursors of early versions have only the offset
    of the match."""
    tick: int | None = None
    """The tick of the digest that was handed over last, epoch milliseconds."""
    end: End | None = None
    """The CQ's end; None if it was not read yet."""
    forerunner: str | None = None
    """The member of an earlier CQ of the same name in the same destination, until its departure was read; else
    None."""


def place_of(query: ContinuousQuery) -> ReadingPlace:
    """Return the place where a reader of this CQ begins."""
    return ReadingPlace(query=query, next=query.destination.begins())


class _ReadingPosition(msgspec.Struct, array_like=True):
    """The part of a reading place that moves."""

    next: dict[int, int]
    marks: dict[int, Mark | int]
    tick: int | None
    end: End | None
    forerunner: str | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode_first = msgspec.msgpack.Decoder(list[ReadingPlace]).decode
_decode_queries = msgspec.msgpack.Decoder(list[ContinuousQuery]).decode
_decode_positions = msgspec.msgpack.Decoder(list[_ReadingPosition]).decode


class CursorWriter:
    """Makes the cursors of a subscription quickly: a program with thousands of CQs may want one after each result."""

    def __init__(self) -> None:
        self._queries: Sequence[ContinuousQuery] = ()
        self._text = _packed([], 6)
        """The encoded queries. They hardly ever change, so they are not encoded for each cursor."""

    def write(self, places: Sequence[ReadingPlace]) -> str:
        """Return the cursor of these places."""
        queries = [place.query for place in places]
        if queries != self._queries:
            self._queries, self._text = queries, _packed([_lasting(query) for query in queries], 6)
        moving = [
            _ReadingPosition(place.next, place.marks, place.tick, place.end, place.forerunner) for place in places
        ]
        return f"{_FORM}{self._text}.{_packed(moving, 1)}"


def encode_cursor(places: Sequence[ReadingPlace]) -> str:
    """Return the cursor of these places.

    Example:
        >>> decode_cursor(encode_cursor([]))
        []
    """
    return CursorWriter().write(places)


def decode_cursor(text: str) -> list[ReadingPlace]:
    """Return the places of a cursor.

    Raises:
        BadCursor: The text was cut or changed, or is not a cursor.
    """
    if not text.startswith((_FORM, _FIRST_FORM)):
        raise BadCursor("the text is not a cursor", hint="Pass a text that Subscription.cursor returned.")
    try:
        if text.startswith(_FIRST_FORM):
            return _decode_first(_unpacked(text.removeprefix(_FIRST_FORM)))
        queries, _, positions = text.removeprefix(_FORM).partition(".")
        pairs = zip(_decode_queries(_unpacked(queries)), _decode_positions(_unpacked(positions)), strict=True)
        return [ReadingPlace(query, at.next, at.marks, at.tick, at.end, at.forerunner) for query, at in pairs]
    except (binascii.Error, ValueError, zlib.error, msgspec.DecodeError) as exc:
        raise BadCursor("the cursor was cut or changed", detail=f"{exc}.") from exc


def _lasting(query: ContinuousQuery) -> ContinuousQuery:
    """Return a CQ without the fields that a reader does not need: its text, and fields that change all the time."""
    return msgspec.structs.replace(query, text=None, matches=None, last_match_at=None, quarantined=None)


def _packed(values: Sequence[object], level: int) -> str:
    return base64.urlsafe_b64encode(zlib.compress(_encode(values), level)).decode().rstrip("=")


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
