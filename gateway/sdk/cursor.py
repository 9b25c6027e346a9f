"""A reader's place as opaque text: everything that resuming needs, so that the CQ need not exist any more."""

from __future__ import annotations

import base64
import binascii
import zlib

import msgspec

from gateway.sdk.errors import BadCursor
from gateway.sdk.results import ContinuousQuery, End

__all__ = ["Place", "decode_cursor", "encode_cursor", "place_of"]

_FORM = "1."
"""Begins every cursor, so that a later form can be told apart."""


class Place(msgspec.Struct):
    """How far one CQ has been read."""

    query: ContinuousQuery
    """As it was when the reading began."""
    next: dict[int, int]
    """Partition of the destination's topic → offset of the next record to look at."""
    marks: dict[int, int] = {}
    """Source partition → highest source offset handed over."""
    tick: int | None = None
    """Last tick whose digest was handed over, in milliseconds."""
    end: End | None = None
    """The CQ's end, once it was read."""


def place_of(query: ContinuousQuery) -> Place:
    """Return the place where a reader of this CQ begins."""
    return Place(query=query, next=query.destination.begins())


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Place])


def encode_cursor(places: list[Place]) -> str:
    """Return the cursor of these places.

    Example:
        >>> decode_cursor(encode_cursor([]))
        []
    """
    packed = zlib.compress(_encoder.encode(places))
    return _FORM + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_cursor(text: str) -> list[Place]:
    """Return the places of a cursor.

    Raises:
        BadCursor: The text was cut, changed, or made by something else.
    """
    if not text.startswith(_FORM):
        raise BadCursor("the text is no cursor", hint="Pass what Subscription.cursor gave.")
    body = text.removeprefix(_FORM)
    try:
        packed = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        return _decoder.decode(zlib.decompress(packed))
    except (binascii.Error, ValueError, zlib.error, msgspec.DecodeError) as exc:
        raise BadCursor("the cursor was cut or changed", detail=f"{exc}.") from exc
