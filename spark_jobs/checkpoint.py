"""What Spark's checkpoint of a query says about how far it is; only for checkpoints in a local folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

__all__ = ["Position", "checkpoints", "has_begun", "last_commit", "remove"]


class Position(NamedTuple):
    """The last micro-batch that is committed, and for each partition the offset after its last event."""

    batch: int
    offsets: dict[str, int]


def last_commit(location: str, topic: str) -> Position | None:
    """Return the position of a query that is not running, None when it never committed (or is not kept locally).

    Spark's log is a file per batch: in ``commits`` one that is done, in ``offsets`` a version line, a line of metadata
    and a line of ``{"topic": {"0": 12}}`` for the source.
    """
    commits = Path(location) / "commits"
    if "://" in location or not commits.is_dir():
        return None
    batches = sorted((int(path.name) for path in commits.iterdir() if path.name.isdigit()), reverse=True)
    for batch in batches:
        log = Path(location) / "offsets" / str(batch)
        if log.exists():
            return Position(batch, json.loads(log.read_text().splitlines()[-1]).get(topic, {}))
    return None


def has_begun(location: str) -> bool:
    """Tell whether a query ever began a micro-batch there, which it will carry out again (or is not kept locally)."""
    offsets = Path(location) / "offsets"
    return "://" in location or (offsets.is_dir() and any(entry.name.isdigit() for entry in offsets.iterdir()))


def checkpoints(folder: str) -> list[str]:
    """Return the names of the checkpoints in a local folder."""
    path = Path(folder)
    return [entry.name for entry in path.iterdir()] if "://" not in folder and path.is_dir() else []


def remove(location: str) -> None:
    """Delete the checkpoint of a stream that is gone."""
    if "://" not in location:
        shutil.rmtree(location, ignore_errors=True)
