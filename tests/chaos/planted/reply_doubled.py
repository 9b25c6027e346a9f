"""A restarted gateway writes its last unit again, although Kafka has the unit."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tests.chaos.planted import replace, when_imported

__all__ = ["plant"]


def plant() -> None:
    """Plant the fault."""
    when_imported("gateway.state.commit", _keep_pending)
    when_imported("gateway.state.recovery.recovery", _write_again)


def _keep_pending(commit: ModuleType) -> None:
    def pending(self: Any) -> tuple[int, Any]:
        body = self._working.connection.redis.get(self._working.connection.keys.journal)
        journal = None if body is None else commit.Journal.unpack(body)
        return (journal.number if journal else 0), journal

    replace(commit.Commits, "pending", pending)


def _write_again(recovery: ModuleType) -> None:
    replace(recovery, "_is_written", lambda *_: False)
