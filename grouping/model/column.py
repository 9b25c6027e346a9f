"""A column of a stream or of a table."""

from __future__ import annotations

import msgspec

__all__ = ["StreamColumn"]


class StreamColumn(msgspec.Struct, frozen=True):
    """One declared column."""

    name: str
    type: str
