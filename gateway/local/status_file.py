"""The status file: a role reports its state there every second, and the supervisor notices when the reports stop."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.local.run_folder import write_json
from grouping.process.log_lines import last_error
from grouping.process.metrics_server import RoleState

__all__ = ["StatusFile", "StatusWatch", "recovery_line"]

log = logging.getLogger(__name__)

_EVERY_SECONDS = 1.0


class StatusFile:
    """The file in which a role reports its state. The time in a report is for people; `StatusWatch` ignores it."""

    def __init__(self, path: Path | None) -> None:
        """Report in this file; without a path, only over HTTP."""
        self._path = path
        self.role_state = RoleState()
        """The state for readers over HTTP."""

    def write(self, state: str, **more: Any) -> None:
        """Replace the contents of the file. If the disk is full, only change the file's time, as a sign of life."""
        self.role_state.tell(state)
        if self._path is None:
            return
        written_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            write_json(self._path, {**state_fields(state), "told_at": written_at, **more})
        except OSError as error:
            log.warning("status not written", extra={"reason": str(error)})
            with contextlib.suppress(OSError):
                os.utime(self._path)

    @contextlib.contextmanager
    def repeated(self, state: str, more: Callable[[], Mapping[str, Any]] = dict) -> Iterator[None]:
        """Report a state every second during the block. The block may take long, and cannot report by itself.

        Args:
            state: The state.
            more: Returns further fields of the report. Another thread calls it.
        """
        done = threading.Event()

        def tell() -> None:
            while not done.is_set():
                self.write(state, **more())
                done.wait(_EVERY_SECONDS)

        teller = threading.Thread(target=tell, name="status", daemon=True)
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()


def recovery_line(status: Mapping[str, Any]) -> str:
    """Return the progress of a recovery, as a role's report gives it; empty if no recovery is under way.

    Example:
        >>> recovery_line({"state": "starting", "recovery": {"topic": "cq.catalog", "read": 3000, "records": 10_000}})
        'has read 3,000 of 10,000 records of cq.catalog'
    """
    found = status.get("recovery")
    return f"has read {found['read']:,} of {found['records']:,} records of {found['topic']}" if found else ""


def state_fields(state: str) -> dict[str, Any]:
    """Return the fields of a report: the process, its state and its last error."""
    return {"pid": os.getpid(), "state": state, "last_error": last_error()}


class StatusWatch:
    """Notices each new report in a status file, by the file's inode and time. No clock is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: tuple[int, int] | None = None

    def heard(self) -> bool:
        """Return whether a new report was written since the last call."""
        try:
            found = self._path.stat()
        except OSError:
            return False
        before, self._last = self._last, (found.st_ino, found.st_mtime_ns)
        return before != self._last
