"""What a unit of work brings beside what it changes in Redis."""

from __future__ import annotations

__all__ = ["CatalogChange"]

CatalogChange = tuple[bytes, bytes | None]
"""Key and value of a record of `cq.catalog`; None is a tombstone."""
