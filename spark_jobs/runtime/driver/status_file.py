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
    """The evaluator's state in a JSON file, which each write replaces as a whole."""

    def __init__(self, path: Path) -> None:
        """Write to that path."""
        self._path = path
        self.role_state = RoleState()
        """The same state for readers over HTTP."""
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, state: str, **more: Any) -> None:
        """Replace the content of the file."""
        self.role_state.tell(state)
        written_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        body = {"pid": os.getpid(), "state": state, "told_at": written_at, "last_error": last_error(), **more}
        aside = self._path.with_suffix(".new")
        try:
            aside.write_text(json.dumps(body))
            aside.replace(self._path)
        except OSError as error:  # a full disk, mostly
            log.warning("status not written", extra={"reason": str(error)})
            self.still()

    def still(self) -> None:
        """Show that the last reported state still holds."""
        self.role_state.still()
        with contextlib.suppress(OSError):
            os.utime(self._path)
