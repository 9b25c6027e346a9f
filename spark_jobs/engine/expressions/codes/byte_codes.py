"""Bytes as texts and back: digests, hexadecimal digits, base64 and character sets, as Spark computes them."""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64encode

from grouping.model.sql_type import BIGINT, BINARY, STRING
from spark_jobs.engine.expressions.types import Implementation, by_value

__all__ = ["BYTE_CODES"]

_SHA2 = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SEXTETS = {letter: value for value, letter in enumerate(_LETTERS)}
_PADDING = ord("=")
_LINE = 76
"""The number of characters in a line of MIME's base64."""
_BITS = 6
_TRIPLE = 18
"""The number of bits by which the first of four sextets is shifted to the left."""
_SETS = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16",
    "UTF-32": "utf-32",
}
"""The character sets that Spark 4 knows: Python's name by Java's name."""
_BIG_ENDIAN = {"utf-16": ("utf-16-be", b"\xfe\xff"), "utf-32": ("utf-32-be", b"")}
"""By a set whose name has no byte order: the set in which Java writes, and the mark that Java writes first.

Java writes the mark only before a text that is not empty.
"""
_MARKED = {"utf-16": (b"\xfe\xff", b"\xff\xfe"), "utf-32": (b"\0\0\xfe\xff", b"\xff\xfe\0\0")}
"""The byte order marks by the same names; bytes that begin with neither mark are read as big-endian."""


def _bytes(value: str | bytes) -> bytes:
    """Return bytes unchanged, and a text as its bytes in UTF-8."""
    return value.encode() if isinstance(value, str) else value


def _sha2(value: str | bytes, bits: int) -> str | None:
    """Return the digest of `bits` bits; NULL for a size that SHA-2 does not have."""
    digest = _SHA2.get(bits)
    return digest(_bytes(value)).hexdigest() if digest else None


def _hex(value: int | str | bytes) -> str:
    """Return hexadecimal digits in capitals: a number's digits without leading zeros, else two for each byte."""
    if isinstance(value, int):
        return f"{value % 2**64:X}"
    return _bytes(value).hex().upper()


def _unhex(text: str) -> bytes | None:
    """Read hexadecimal digits; NULL if a character is no such digit.

    If the number of digits is odd, the first digit is a byte by itself.
    """
    if not text.isascii() or not text.isalnum():
        return None if text else b""
    try:
        return bytes.fromhex(text.zfill(len(text) + len(text) % 2))
    except ValueError:
        return None


def _base64(value: str | bytes) -> str:
    """Return base64 as java.util.Base64's MIME encoder writes it: in lines separated by CR LF."""
    written = b64encode(_bytes(value)).decode()
    return "\r\n".join(written[begin : begin + _LINE] for begin in range(0, len(written), _LINE))


def _unbase64(text: str) -> bytes | None:
    """Read base64 as java.util.Base64's MIME decoder does: other characters are skipped, padding may be left out.

    The result is NULL if Java refuses the text: if a single sextet is left over, if the padding is incomplete or
    follows a complete group, or if sextets follow the padding.
    """
    made = bytearray()
    bits, place = 0, _TRIPLE
    letters = iter(text.encode("latin-1", "replace"))
    for letter in letters:
        if letter == _PADDING:
            if place == _TRIPLE or (place == _BITS and next(letters, None) != _PADDING):
                return None
            break
        if letter not in _SEXTETS:
            continue
        bits |= _SEXTETS[letter] << place
        place -= _BITS
        if place < 0:
            made += bits.to_bytes(3, "big")
            bits, place = 0, _TRIPLE
    if place == _TRIPLE - _BITS or any(letter in _SEXTETS or letter == _PADDING for letter in letters):
        return None
    return bytes(made) + bits.to_bytes(3, "big")[: {_TRIPLE: 0, _BITS: 1, 0: 2}[place]]


def _encode(text: str, charset: str) -> bytes | None:
    """Return the bytes of a text in a character set; NULL if the set is unknown or lacks a character of the text."""
    name = _SETS.get(charset.upper())
    if name is None:
        return None
    order, mark = _BIG_ENDIAN.get(name, (name, b""))
    try:
        return (mark if text else b"") + text.encode(order)
    except UnicodeEncodeError:
        return None


def _decode(value: str | bytes, charset: str) -> str | None:
    """Return the text of bytes in a character set; NULL if the set is unknown or the bytes are invalid in it."""
    name = _SETS.get(charset.upper())
    if name is None:
        return None
    value = _bytes(value)
    if name in _BIG_ENDIAN and not value.startswith(_MARKED[name]):
        name = _BIG_ENDIAN[name][0]
    try:
        return value.decode(name)
    except UnicodeDecodeError:
        return None


def _substring(value: bytes, start: int, length: int = 2**31 - 1) -> bytes:
    """Return `length` bytes from `start` on, by default all.

    The place `start` counts from 1, or from the end if negative.
    """
    begin = start - 1 if start > 0 else len(value) + start if start < 0 else 0
    left = (len(value) - begin + 2**31) % 2**32 - 2**31
    return value[max(begin, 0) : len(value) if left < length else max(begin + length, 0)]


BYTE_CODES: dict[str, Implementation] = {
    "base64": by_value(_base64, STRING),
    "crc32": by_value(lambda value: zlib.crc32(_bytes(value)), BIGINT),
    "decode": by_value(_decode, STRING),
    "encode": by_value(_encode, BINARY),
    "substring of bytes": by_value(_substring, BINARY),
    "hex": by_value(_hex, STRING),
    "md5": by_value(lambda value: hashlib.md5(_bytes(value), usedforsecurity=False).hexdigest(), STRING),
    "sha1": by_value(lambda value: hashlib.sha1(_bytes(value), usedforsecurity=False).hexdigest(), STRING),
    "sha2": by_value(_sha2, STRING),
    "unbase64": by_value(_unbase64, BINARY),
    "unhex": by_value(_unhex, BINARY),
}
"""The implementation by function; the names are those in `grouping.functions`."""
