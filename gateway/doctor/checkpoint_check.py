"""Checks Spark's checkpoints on this machine: finds unreadable checkpoints, and checkpoints without a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gateway.doctor.finding import Finding
from gateway.model.inventory import Inventory
from grouping.settings.settings import Settings
from grouping.store.task_notes import LANE

__all__ = ["check_checkpoints"]

_LOGS = ("offsets", "commits", "sources/0")
"""The folders of Spark's logs in a checkpoint. A log has a file for each micro-batch. The file's last line is JSON."""


def check_checkpoints(settings: Settings, inventory: Inventory) -> Iterator[Finding]:
    """Yield faults of checkpoints. Checkpoints at a URL, or on another machine, are not checked.

    Raises:
        OSError: A folder cannot be read.
    """
    base = settings.evaluator.checkpoints
    if "://" in base:
        return
    folder = Path(base) / settings.prefix if base else settings.data / "checkpoints"
    streams = {stream.source_id: stream.name for stream in inventory.streams.values()}
    for checkpoint in sorted(each for each in folder.glob("*") if each.is_dir()):
        name = "the lane" if checkpoint.name.startswith(LANE) else _title(streams.get(checkpoint.name))
        if not name:
            hint = (
                "The evaluator deletes the checkpoint when it starts. By hand, delete it only while no evaluator runs."
            )
            yield Finding("checkpoint-unknown", str(checkpoint), "The checkpoint belongs to no stream.", hint)
        elif broken := [log for log in _LOGS if not _is_whole(checkpoint / log)]:
            detail = f"The last file of {', '.join(broken)} is empty or torn."
            hint = "Look for a full disk. The next start of the evaluator makes a checkpoint from the offsets in Redis."
            yield Finding("checkpoint-unreadable", name, detail, hint)


def _title(stream: str | None) -> str:
    return "" if stream is None else f"stream {stream}"


def _is_whole(log: Path) -> bool:
    """Tell whether the last file of a log can be read; True if the log has no file."""
    batches = [int(each.name) for each in log.glob("*") if each.name.isdigit()]
    if not batches:
        return True
    try:
        lines = (log / str(max(batches))).read_text("utf-8").splitlines()
        json.loads(lines[-1])
    except (ValueError, IndexError):
        return False
    return True
