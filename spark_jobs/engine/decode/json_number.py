"""A JSON number as it was written: no digit is lost before the number is checked."""

from __future__ import annotations

__all__ = ["JsonNumber"]


class JsonNumber(str):
    """The text of a JSON number."""

    __slots__ = ()
