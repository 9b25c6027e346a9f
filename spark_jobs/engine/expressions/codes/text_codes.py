"""Spark's encodings of texts, computed over the UTF-8 bytes of the texts."""

from __future__ import annotations

import re
from urllib.parse import quote_plus, unquote_to_bytes

from spark_jobs.engine.expressions.types import Implementation, by_value

__all__ = ["CODES"]


def _url_decode(text: str) -> str | None:
    """Decode as java.net.URLDecoder does; NULL for a percent sign that two hexadecimal digits do not follow."""
    pieces = text.split("%")[1:]
    if not all(len(piece) > 1 and all(digit in _HEX for digit in piece[:2]) for piece in pieces):
        return None
    decoded = _HALF.sub("\ufffd".encode(), unquote_to_bytes(text.replace("+", " ")))
    return decoded.decode(errors="replace")


_HEX = frozenset("0123456789abcdefABCDEF")
_HALF = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half of a surrogate pair in UTF-8, or the first two of its bytes.

Java decodes these bytes to one replacement character, and Python to two or three.
"""

CODES: dict[str, Implementation] = {
    "chr": by_value(lambda number: chr(number % 256) if number >= 0 else ""),
    "url_decode": by_value(_url_decode),
    "url_encode": by_value(lambda text: quote_plus(text, safe="*").replace("~", "%7E")),
}
"""The implementation by function; the names are those in `grouping.functions`."""
