"""Spark's digests and encodings of texts, which are their bytes in UTF-8."""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import quote_plus, unquote_to_bytes

from grouping.model.sql_type import BIGINT, STRING, SqlType
from spark_jobs.expressions.by_value import each_distinct
from spark_jobs.expressions.types import Implementation, Operand, polars_type

__all__ = ["CODES"]

_SHA2 = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


def _code(function: Callable[..., object], kind: SqlType = STRING) -> Implementation:
    return lambda args, _: Operand(
        each_distinct([argument.expr for argument in args], function, polars_type(kind)), kind
    )


def _sha2(text: str, bits: int) -> str | None:
    """Return the digest of that many bits, NULL where there is none of so many."""
    digest = _SHA2.get(bits)
    return digest(text.encode()).hexdigest() if digest else None


def _url_decode(text: str) -> str | None:
    """Decode as java.net.URLDecoder does; NULL for a percent sign without two hexadecimal digits behind it."""
    pieces = text.split("%")[1:]
    if not all(len(piece) > 1 and all(digit in _HEX for digit in piece[:2]) for piece in pieces):
        return None
    return unquote_to_bytes(text.replace("+", " ")).decode(errors="replace")


_HEX = frozenset("0123456789abcdefABCDEF")

CODES: dict[str, Implementation] = {
    "base64": _code(lambda text: b64encode(text.encode()).decode()),
    "chr": _code(lambda number: chr(number % 256) if number >= 0 else ""),
    "crc32": _code(lambda text: zlib.crc32(text.encode()), BIGINT),
    "md5": _code(lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()),
    "sha1": _code(lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()),
    "sha2": _code(_sha2),
    "url_decode": _code(_url_decode),
    "url_encode": _code(lambda text: quote_plus(text, safe="*").replace("~", "%7E")),
}
"""By function, as `grouping.functions.text_functions` names them."""
