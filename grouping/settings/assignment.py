"""The assignment of streams to evaluators. The gateway and all evaluators must have the same value of this setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from grouping.settings.settings import Settings

__all__ = ["Assignment"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The streams of each evaluator: a stream belongs to the first evaluator whose patterns match its name.

    Example:
        >>> shares = Assignment.of(Settings(evaluator={"streams": {"fast": "quotes, orders.*", "logs": "*.log"}}))
        >>> [shares.evaluator_of(name) for name in ("Quotes", "orders.log", "news.log", "news")]
        ['fast', 'fast', 'logs', '']
        >>> shares.names
        ('', 'fast', 'logs')
    """

    patterns: tuple[tuple[str, tuple[str, ...]], ...]
    """For each evaluator, the shell patterns of names of streams, in lower case."""

    @classmethod
    def of(cls, settings: Settings) -> Assignment:
        """Return the assignment of the settings."""
        streams = settings.evaluator.streams
        return cls(tuple((name, tuple(_patterns(text))) for name, text in streams.items()))

    def evaluator_of(self, stream: str) -> str:
        """Return the name of the evaluator of the stream with this name; "" for the evaluator without a name."""
        return _first(self.patterns, stream.casefold())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the evaluators that must run. The name "" is left out if named evaluators have all streams."""
        named = tuple(name for name, _ in self.patterns)
        return named if any("*" in patterns for _, patterns in self.patterns) else ("", *named)


def _patterns(text: str) -> Iterator[str]:
    return (pattern.strip().casefold() for pattern in text.split(","))


@lru_cache(maxsize=1 << 14)
def _first(shares: tuple[tuple[str, tuple[str, ...]], ...], folded: str) -> str:
    return next((name for name, patterns in shares if any(fnmatchcase(folded, pattern) for pattern in patterns)), "")
