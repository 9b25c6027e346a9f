"""GRANT and REVOKE: who may read a stream, a table or a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["AccessStatement", "Grant", "Revoke", "SourceKind"]

SourceKind = Literal["stream", "table", "view"]


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT READ ON kind name TO subscriber, … | ALL."""

    kind: SourceKind
    name: str
    readers: tuple[str, ...]
    """The subscribers; empty for ALL."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """REVOKE READ ON kind name FROM subscriber, … | ALL [CASCADE]."""

    kind: SourceKind
    name: str
    readers: tuple[str, ...]
    """The subscribers; empty for ALL."""
    cascade: bool = False
    """Whether CQs of subscribers that may not read the source any more are dropped."""


AccessStatement = Grant | Revoke
