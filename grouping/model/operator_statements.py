"""Statements of operators, about CQs, quotas and groups of other subscribers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DropCqs", "OperatorStatement", "PauseGroup", "SetQuota", "ShowCqsOf", "ShowQuota"]


@dataclass(frozen=True, slots=True)
class ShowCqsOf:
    """SHOW CQS OF ALL | OF subscriber [LIKE …] [AFTER …] [LIMIT n], an operator's."""

    subscriber: str | None
    """None for all."""
    like: str | None = None
    after: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DropCqs:
    """DROP CQS LIKE pattern OF subscriber, an operator's."""

    like: str
    subscriber: str


@dataclass(frozen=True, slots=True)
class SetQuota:
    """SET QUOTA name = n | DEFAULT, … FOR subscriber, an operator's."""

    subscriber: str
    limits: tuple[tuple[str, int | None], ...]
    """Each limit with its number; None for that of the settings."""


@dataclass(frozen=True, slots=True)
class ShowQuota:
    """SHOW QUOTA FOR subscriber, an operator's."""

    subscriber: str


@dataclass(frozen=True, slots=True)
class PauseGroup:
    """PAUSE GROUP group, or with paused False RESUME GROUP group, an operator's."""

    group: str
    paused: bool


OperatorStatement = ShowCqsOf | DropCqs | SetQuota | ShowQuota | PauseGroup
"""Statements about CQs, quotas and groups of other subscribers."""
