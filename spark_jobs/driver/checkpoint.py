"""Spark's checkpoint of a query, read and written; only for checkpoints in a local folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Position", "begun_anew", "checkpoints", "is_whole", "last_commit", "note_anew", "remove"]

_ANEW = "anew.json"
"""A file beside Spark's own folders, deleted with them."""


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
        if _is_readable(log):
            return Position(batch, json.loads(log.read_text().splitlines()[-1]).get(topic, {}))
    return None


def is_whole(location: str) -> bool:
    """Tell whether a query can go on from a checkpoint: a micro-batch began, and each log's last file is readable.

    A disk that was full, or lost its power, leaves empty files. A checkpoint elsewhere than here is taken to be whole.
    """
    if "://" in location:
        return True
    logs = {kind: _last(Path(location) / kind) for kind in ("offsets", "commits", "sources/0")}
    return logs["offsets"] is not None and all(log is None or _is_readable(log) for log in logs.values())


def _last(folder: Path) -> Path | None:
    """Return the file of the last batch in one of Spark's logs, None when there is none."""
    numbers = [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return folder / str(max(numbers)) if numbers else None


def _is_readable(log: Path) -> bool:
    try:
        json.loads(log.read_text("utf-8").splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return False
    return True


def note_anew(location: str, ends: Mapping[str, int]) -> None:
    """Note with a new checkpoint, by source partition, the end of what an earlier one may have evaluated."""
    if "://" not in location:
        Path(location).mkdir(parents=True, exist_ok=True)
        written = Path(location) / f"{_ANEW}.new"
        written.write_text(json.dumps(ends), "utf-8")
        written.replace(Path(location) / _ANEW)


def begun_anew(location: str) -> dict[str, int]:
    """Return the offsets of `note_anew`; none for a checkpoint of an earlier version, or in no local folder."""
    noted = Path(location) / _ANEW
    if "://" in location or not noted.is_file():
        return {}
    ends: dict[str, int] = json.loads(noted.read_text("utf-8"))
    return ends


def checkpoints(folder: str) -> list[str]:
    """Return the names of the checkpoints in a local folder."""
    path = Path(folder)
    return [entry.name for entry in path.iterdir()] if "://" not in folder and path.is_dir() else []


def remove(location: str) -> None:
    """Delete the checkpoint of a stream that is gone."""
    if "://" not in location:
        shutil.rmtree(location, ignore_errors=True)
