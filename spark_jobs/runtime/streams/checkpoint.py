"""Reads and changes Spark's checkpoint of a query."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spark_jobs.runtime.application.spark_options import SHUFFLE_PARTITIONS
from spark_jobs.runtime.kafka.pin_log import MicroBatch
from spark_jobs.runtime.streams.files import Files

__all__ = ["Checkpoint", "StreamPosition"]

_EARLIER_ENDS = "anew.json"
"""The file that `note_earlier_ends` writes, next to Spark's own folders."""
_BEGUN = "begun.json"
"""The file that `copy_of` writes and `begun_elsewhere` reads, next to Spark's own folders."""
_NAME = "name"
"""The file that `give_name` writes, next to Spark's own folders."""
_KEPT_BATCHES = 10
"""The number of micro-batches whose files are kept; Spark needs the files of the last two."""


class StreamPosition(NamedTuple):
    """The last committed micro-batch, and by partition, the offset after the last evaluated event."""

    batch: int
    offsets: dict[str, int]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of a query that is not running.

    Spark's log has two files for each micro-batch. The file in the folder ``offsets`` is written before the micro-batch
    is carried out. Its lines are a version, metadata, and ``{"topic": {"0": 12}}`` with the end offsets of the source.
    The file in the folder ``commits`` marks the micro-batch as carried out.
    """

    location: str
    """The path of a folder, or the URL of a folder."""

    files: Files
    """The file system of the location."""

    def open_log(self, starts: Mapping[str, Mapping[str, int]]) -> None:
        """Begin the log of a query that Spark does not run itself, with the same files as Spark's own queries.

        Args:
            starts: By topic and partition, the first offset of the first micro-batch.
        """
        self.files.write(f"{self.location}/metadata", json.dumps({"id": str(uuid.uuid4())}))
        self.files.write(f"{self.location}/sources/0/0", f"\0v1\n{json.dumps(starts)}")

    def query_id(self) -> str:
        """Return the id of the query that has the log."""
        metadata: dict[str, str] = json.loads(self.files.text(f"{self.location}/metadata") or "{}")
        return metadata.get("id", "")

    def begin(self, batch: int, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Write where a micro-batch ends; must be called before the micro-batch is carried out.

        Args:
            batch: The number of the micro-batch.
            ends: By topic and partition, the offset after the micro-batch's last event.
        """
        millis = time.time_ns() // 1_000_000
        metadata = {"batchWatermarkMs": 0, "batchTimestampMs": millis, "conf": SHUFFLE_PARTITIONS}
        lines = ("v1", json.dumps(metadata), json.dumps(ends))
        self.files.write(f"{self.location}/offsets/{batch}", "\n".join(lines))

    def commit(self, batch: int) -> None:
        """Write that a micro-batch is carried out, and remove the files of the micro-batch `_KEPT_BATCHES` before."""
        self.files.write(f"{self.location}/commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')
        for kind in ("offsets", "commits"):
            self.files.remove(f"{self.location}/{kind}/{batch - _KEPT_BATCHES}")

    def bounds(self) -> tuple[int, dict[str, dict[str, int]], dict[str, dict[str, int]] | None]:
        """Return where micro-batches end, as offsets by topic and partition.

        Returns:
            Three things: the number of the last committed micro-batch, or -1 before the first; the end of this
            micro-batch; and the end of the next micro-batch, or None if the next micro-batch has not begun.
        """
        batch = (self._batches("commits")[:1] or [-1])[0]
        if not (tail := self._tail()):
            return batch, self._log("sources/0/0") or {}, None
        return batch, self._log(tail[0]) or {}, self._log(tail[1]) if len(tail) > 1 else None

    def last_commit(self, topic: str) -> StreamPosition | None:
        """Return the position of the last commit for a topic; None if the query has never committed."""
        for batch in self._batches("commits"):
            log = self._log(f"offsets/{batch}")
            if log is not None:
                return StreamPosition(batch, log.get(topic, {}))
        return None

    def under_way(self, topic: str) -> tuple[dict[str, int], dict[str, int]] | None:
        """Return, by partition, where the uncommitted micro-batch begins and ends; None if there is no such batch."""
        batch = self._uncommitted()
        if batch is None:
            return None
        starts, ends = self._log(self._beginning(batch)), self._log(f"offsets/{batch}")
        return None if starts is None or ends is None else (starts.get(topic, {}), ends.get(topic, {}))

    def move(self, topic: str, starts: Mapping[str, int], ends: Mapping[str, int]) -> None:
        """Give the uncommitted micro-batch, which must exist, new bounds. The query must not run.

        Spark begins a micro-batch at the end of the previous micro-batch, so the previous end is changed, too.
        """
        batch = self._uncommitted()
        assert batch is not None, "there is a micro-batch"
        # The start is written first. After a crash between the two writes, the micro-batch then fails as before.
        self._rewrite(self._beginning(batch), lambda log: log | {topic: {**log.get(topic, {}), **starts}})
        self._rewrite(f"offsets/{batch}", lambda log: log | {topic: {**log.get(topic, {}), **ends}})

    def next_beginnings(self) -> dict[str, dict[str, int]] | None:
        """Return where the first uncommitted micro-batch begins, by topic and partition; None if the log is empty."""
        names = self._tail()
        return self._log(names[0]) if names else None

    def set_topics(self, kept: Collection[str], added: Mapping[str, Mapping[str, int]]) -> None:
        """Change the topics of the log. The query must not run. When the query starts again, it must read these topics.

        The log must have an entry for each topic, because Spark would read a topic without an entry from the earliest
        record. A micro-batch under way gets no events of an added topic.

        Args:
            kept: The topics that keep their entries; the entries of other topics are removed.
            added: By topic and partition, where the next micro-batch begins.
        """
        places = {topic: dict(offsets) for topic, offsets in added.items()}
        for name in self._tail():
            # The start is written first: after a crash between the two writes, no micro-batch reads an added topic.
            self._rewrite(name, lambda log: {topic: log[topic] for topic in kept if topic in log} | places)

    def copy_of(self, topic: str, target: Checkpoint) -> bool:
        """Write a checkpoint for a single topic, including the micro-batch under way.

        Args:
            topic: The topic.
            target: An empty checkpoint. Its `is_whole` becomes true only after all files are written.

        Returns:
            Whether the log has the topic; otherwise nothing is written.
        """
        tail = self._tail()
        if not tail or topic not in (self._log(tail[0]) or {}):
            return False
        # Spark needs the files of the last two micro-batches, even if both are committed.
        before = f"offsets/{self._batches('offsets')[0] - 1}"
        names = dict.fromkeys(("sources/0/0", before, *tail))
        commits = [name.replace("offsets", "commits") for name in tail if name.startswith("offsets")]
        target.files.write(f"{target.location}/metadata", json.dumps({"id": str(uuid.uuid4())}))
        if (under_way := self._uncommitted()) is not None:
            target.files.write(f"{target.location}/{_BEGUN}", json.dumps([self.query_id(), under_way]))
        for name in commits:
            if (text := self.files.text(f"{self.location}/{name}")) is not None:
                target.files.write(f"{target.location}/{name}", text)
        for name in names:
            if (text := self.files.text(f"{self.location}/{name}")) is not None:
                target.files.write(f"{target.location}/{name}", text)
                target._rewrite(name, lambda log: {topic: log.get(topic, {})})
        return True

    def _tail(self) -> list[str]:
        """Return the names of two files: one has the begin of the next micro-batch, the other has its end.

        The second name is missing if the next micro-batch has not begun; both are missing if no micro-batch ever began.
        """
        begun = self._batches("offsets")[:1]
        if not begun:
            return []
        under_way = f"offsets/{begun[0]}"
        return [under_way] if self._uncommitted() is None else [self._beginning(begun[0]), under_way]

    def _rewrite(self, name: str, change: Callable[[dict[str, dict[str, int]]], dict[str, dict[str, int]]]) -> None:
        """Change the offsets in the last line of a file of the log."""
        path = f"{self.location}/{name}"
        # The first line of a source's file begins with a zero byte.
        lines = (self.files.text(path) or "").split("\n")
        changed = json.dumps(change(json.loads(lines[-1])), separators=(",", ":"))
        self.files.write(path, "\n".join((*lines[:-1], changed)))

    def is_idle(self) -> bool:
        """Tell whether the checkpoint is whole and every micro-batch that began is committed."""
        return self.is_whole() and self._uncommitted() is None

    def has_begun(self) -> bool:
        """Tell whether a micro-batch ever began."""
        return bool(self._batches("offsets"))

    def _uncommitted(self) -> int | None:
        begun, committed = self._batches("offsets")[:1], self._batches("commits")[:1]
        return begun[0] if begun and begun != committed else None

    def _beginning(self, batch: int) -> str:
        """Return the name of the file with the begin of a micro-batch."""
        return f"offsets/{batch - 1}" if batch else "sources/0/0"

    def is_whole(self) -> bool:
        """Tell whether a query can go on from the checkpoint.

        This is so if a micro-batch began, and if the last file of each log can be read. A full disk, or a power
        failure, leaves empty files.
        """
        last = {kind: self._batches(kind)[:1] for kind in ("offsets", "commits", "sources/0")}
        return bool(last["offsets"]) and all(
            self._log(f"{kind}/{batch}") is not None for kind, batches in last.items() for batch in batches
        )

    def note_earlier_ends(self, ends: Mapping[str, int]) -> None:
        """Store, by source partition, the position before which an older checkpoint may have evaluated events."""
        self.files.write(f"{self.location}/{_EARLIER_ENDS}", json.dumps(ends))

    def earlier_ends(self) -> dict[str, int]:
        """Return the positions that `note_earlier_ends` stored; an empty dict if nothing was stored."""
        noted = self.files.text(f"{self.location}/{_EARLIER_ENDS}")
        ends: dict[str, int] = json.loads(noted) if noted else {}
        return ends

    def begun_elsewhere(self, source_id: str) -> MicroBatch | None:
        """Return the micro-batch that was under way in the original log when `copy_of` made this copy, or None.

        The pins of joined tables are stored under the id of the original query, so a replay of the micro-batch must ask
        for the pins by that id.

        Args:
            source_id: The `Stream.source_id` of the query's stream.
        """
        noted = self.files.text(f"{self.location}/{_BEGUN}")
        return MicroBatch(source_id, *json.loads(noted)) if noted else None

    def name(self) -> str | None:
        """Return the name that `give_name` wrote; None if there is no name."""
        return self.files.text(f"{self.location}/{_NAME}")

    def give_name(self, name: str = "") -> str:
        """Give the checkpoint a name, by default a random one, and return the name."""
        name = name or secrets.token_hex(8)
        self.files.write(f"{self.location}/{_NAME}", name)
        return name

    def remove(self) -> None:
        """Delete the checkpoint."""
        self.files.remove(self.location)

    def _batches(self, kind: str) -> list[int]:
        """Return the numbers of the batches in a log of Spark, in descending order."""
        names = self.files.names(f"{self.location}/{kind}")
        return sorted((int(name) for name in names if name.isdigit()), reverse=True)

    def _log(self, name: str) -> dict[str, dict[str, int]] | None:
        """Return the decoded last line of a log file; None if the file cannot be read."""
        try:
            text = self.files.text(f"{self.location}/{name}")
            log: dict[str, dict[str, int]] = json.loads((text or "").splitlines()[-1])
        except (OSError, ValueError, IndexError):
            return None
        return log
