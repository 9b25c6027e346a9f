"""The data folder that `cq up`, `cq down` and `cq status` share: its files about the running processes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grouping.model.errors import OperationalError
from grouping.process.data_folder import claim

__all__ = ["RunFolder", "write_json"]

ROOM = 512 << 20
"""The number of bytes that must be free for a start. Kafka and Valkey need this space even without events."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A data folder, with its files about the running processes."""

    data: Path

    @property
    def endpoints(self) -> Path:
        """The file with the addresses and process ids (docs/operating.md)."""
        return self.data / "endpoints.json"

    @property
    def state(self) -> Path:
        """The file in which the supervisor reports the states of the roles."""
        return self.data / "run" / "supervisor.json"

    def status(self, role: str) -> Path:
        """Return the file in which a role reports its state and the progress of its work."""
        return self.data / "run" / f"{role}.json"

    def log(self, role: str) -> Path:
        """Return the file with a role's output."""
        return self.data / "logs" / f"{role}.log"

    def prepare(self) -> None:
        """Make the folder, or check an existing folder.

        Raises:
            OperationalError: The folder cannot be made, a later version of the product has written it, or the disk is
                too full.
        """
        try:
            for name in ("run", "logs"):
                (self.data / name).mkdir(parents=True, exist_ok=True)
            claim(self.data)
            free = shutil.disk_usage(self.data).free
        except OSError as error:
            raise OperationalError(
                f'the data folder "{self.data}" cannot be used: {(error.strerror or str(error)).lower()}',
                hint="Give another one: --data DIR.",
            ) from error
        if free < ROOM:
            raise OperationalError(
                f'there is too little disk space for the data folder "{self.data}": {free >> 20} MiB are free',
                hint=f"Free disk space ({ROOM >> 20} MiB) or give a folder on another disk: --data DIR.",
            )

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Hold a lock on the folder during the block. If the process dies, the kernel releases the lock.

        Raises:
            OperationalError: Another supervisor holds the lock.
        """
        with (self.data / "run" / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OperationalError(
                    f'the gateway runs already on "{self.data}" (pid {self.holder()})',
                    hint=f"Use it, or stop it first: cq down --data {self.data}.",
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            try:
                yield
            finally:
                lock.truncate(0)

    def holder(self) -> int | None:
        """Return the process id of the supervisor that holds the lock on this folder; None if there is none."""
        try:
            with (self.data / "run" / "lock").open("r") as lock:
                pid = int(lock.read() or 0)
                try:
                    if pid:
                        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return pid
                return None  # no process holds the lock; a killed process may have left its id
        except (FileNotFoundError, ValueError):
            return None

    def read(self, path: Path) -> dict[str, Any]:
        """Return the JSON object in a file of this folder; empty if the file is missing or is not a JSON object."""
        try:
            answer = json.loads(path.read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return answer if isinstance(answer, dict) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace a file atomically: readers see either the old or the new value. Only the owner can read the file."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    aside.replace(path)
