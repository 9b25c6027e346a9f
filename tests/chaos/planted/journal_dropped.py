"""A restarted gateway treats its last unit as written, although it died between Redis and Kafka."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

from tests.chaos.planted import replace, when_imported

__all__ = ["plant"]


def plant() -> None:
    """Plant the fault, and keep the gateway between the two for longer, so a kill meets it there."""
    when_imported("gateway.state.recovery.recovery", _drop)
    when_imported("gateway.state.commit", _dawdle)


def _drop(recovery: ModuleType) -> None:
    replace(recovery, "_is_written", lambda *_: True)


def _dawdle(commit: ModuleType) -> None:
    publish = commit.Commits.publish

    def late(self: Any, *arguments: Any) -> None:
        time.sleep(0.5)
        publish(self, *arguments)

    replace(commit.Commits, "publish", late)
