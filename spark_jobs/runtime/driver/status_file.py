"""The file in which the evaluator reports its state, for the supervisor and `cq status`."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grouping.process.log_lines import last_error
from grouping.process.metrics_server import RoleState

__all__ = ["EvaluatorStatusFile"]

log = logging.getLogger(__name__)


class EvaluatorStatusFile:
    """The evaluator's state in a JSON file; each write replaces the whole file."""

    def __init__(self, path: Path) -> None:
        """Prepare to write to a path, and make the path's folder."""
        self._path = path
        self.role_state = RoleState()
        """The same state for readers over HTTP."""
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, state: str, **more: Any) -> None:
        """Replace the content of the file; if this fails, the failure is only logged.

        Args:
            state: The evaluator's state, such as "starting" or "ready".
            more: Further fields of the JSON object.
        """
        self.role_state.tell(state)
        written_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        body = {"pid": os.getpid(), "state": state, "told_at": written_at, "last_error": last_error(), **more}
        aside = self._path.with_suffix(".new")
        try:
            aside.write_text(json.dumps(body))
            aside.replace(self._path)
        except OSError as error:  # mostly because the disk is full
            log.warning("status not written", extra={"reason": str(error)})
            self.still()

    def still(self) -> None:
        """Show that the evaluator is still in the last reported state: the file gets a new time."""
        self.role_state.still()
        with contextlib.suppress(OSError):
            os.utime(self._path)
