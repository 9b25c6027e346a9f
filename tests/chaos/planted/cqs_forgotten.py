"""A lost Redis comes back without every third CQ."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from tests.chaos.planted import replace, when_imported

__all__ = ["plant"]


def plant() -> None:
    """Plant the fault."""
    when_imported("gateway.state.recovery.catalog_replay", _change)


def _change(replay: ModuleType) -> None:
    run = replay.CatalogReplay.run

    def forget(self: Any, messages: Iterable[Any]) -> bool:
        kept = (one for one in messages if not (one.key or b"").startswith(b"cq") or zlib.crc32(one.key) % 3)
        return run(self, kept)

    replace(replay.CatalogReplay, "run", forget)
