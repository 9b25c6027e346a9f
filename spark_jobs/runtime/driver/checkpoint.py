"""Spark's checkpoint of a query, read and written, wherever it lies."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spark_jobs.runtime.driver.files import Files

__all__ = ["Checkpoint", "Position"]

_ANEW = "anew.json"
_NAME = "name"
"""Files beside Spark's own folders, deleted with them."""


class Position(NamedTuple):
    """The last micro-batch that is committed, and for each partition the offset after its last event."""

    batch: int
    offsets: dict[str, int]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of a query that is not running.

    Spark's log is a file per batch: in ``commits`` a finished batch, in ``offsets`` a version line, a line of metadata
    and a line of ``{"topic": {"0": 12}}`` for the source.
    """

    location: str
    """A folder, or the URL of one."""

    files: Files
    """The file system of the location."""

    def last_commit(self, topic: str) -> Position | None:
        """Return the position of the query, None when it never committed."""
        for batch in self._batches("commits"):
            log = self._log(f"offsets/{batch}")
            if log is not None:
                return Position(batch, log.get(topic, {}))
        return None

    def under_way(self, topic: str) -> tuple[dict[str, int], dict[str, int]] | None:
        """Return by partition the begin and the end of the uncommitted micro-batch, None without one."""
        batch = self._uncommitted()
        if batch is None:
            return None
        starts, ends = self._log(self._beginning(batch)), self._log(f"offsets/{batch}")
        return None if starts is None or ends is None else (starts.get(topic, {}), ends.get(topic, {}))

    def move(self, topic: str, starts: Mapping[str, int], ends: Mapping[str, int]) -> None:
        """Give the uncommitted micro-batch new bounds; the query must not run.

        Spark begins a micro-batch at the end of the previous one, so the previous end moves.
        """
        batch = self._uncommitted()
        assert batch is not None, "there is a micro-batch"
        # The start first: a crash in between leaves a micro-batch that fails as before.
        for name, offsets in ((self._beginning(batch), starts), (f"offsets/{batch}", ends)):
            path = f"{self.location}/{name}"
            lines = (self.files.text(path) or "").splitlines()
            log: dict[str, dict[str, int]] = json.loads(lines[-1])
            log[topic] = {**log.get(topic, {}), **offsets}
            self.files.write(path, "\n".join((*lines[:-1], json.dumps(log, separators=(",", ":")))))

    def _uncommitted(self) -> int | None:
        begun, committed = self._batches("offsets")[:1], self._batches("commits")[:1]
        return begun[0] if begun and begun != committed else None

    def _beginning(self, batch: int) -> str:
        """Return the name of the file that tells where a micro-batch begins."""
        return f"offsets/{batch - 1}" if batch else "sources/0/0"

    def is_whole(self) -> bool:
        """Tell whether the query can go on: a micro-batch began, and each log's last file is readable.

        A disk that was full, or lost its power, leaves empty files.
        """
        last = {kind: self._batches(kind)[:1] for kind in ("offsets", "commits", "sources/0")}
        return bool(last["offsets"]) and all(
            self._log(f"{kind}/{batch}") is not None for kind, batches in last.items() for batch in batches
        )

    def note_anew(self, ends: Mapping[str, int]) -> None:
        """Note with a new checkpoint, by source partition, the end of events perhaps evaluated under an old one."""
        self.files.write(f"{self.location}/{_ANEW}", json.dumps(ends))

    def begun_anew(self) -> dict[str, int]:
        """Return the offsets of `note_anew`; none for a checkpoint of an earlier version."""
        noted = self.files.text(f"{self.location}/{_ANEW}")
        ends: dict[str, int] = json.loads(noted) if noted else {}
        return ends

    def name(self) -> str | None:
        """Return the name that `give_name` gave; none for a checkpoint of an earlier version."""
        return self.files.text(f"{self.location}/{_NAME}")

    def give_name(self) -> str:
        """Give the checkpoint a unique name, wherever it lies, and return the name."""
        name = secrets.token_hex(8)
        self.files.write(f"{self.location}/{_NAME}", name)
        return name

    def remove(self) -> None:
        """Delete it, the stream being gone."""
        self.files.remove(self.location)

    def _batches(self, kind: str) -> list[int]:
        """Return the batches in a log of Spark, the last first."""
        names = self.files.names(f"{self.location}/{kind}")
        return sorted((int(name) for name in names if name.isdigit()), reverse=True)

    def _log(self, name: str) -> dict[str, dict[str, int]] | None:
        """Return the contents of the last line of a log file, None where it cannot be read."""
        try:
            text = self.files.text(f"{self.location}/{name}")
            log: dict[str, dict[str, int]] = json.loads((text or "").splitlines()[-1])
        except (OSError, ValueError, IndexError):
            return None
        return log
