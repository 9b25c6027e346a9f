"""Stored states of rows before: a cache of the log, in a folder beside the checkpoints.

A worker without a state loads the last one at or before its batch, and reads the log from there. A file that is
missing, torn or of another version costs time only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

import pyarrow.fs

from grouping.settings.settings import Settings
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.stored_rows import restored_rows, stored_rows
from spark_jobs.runtime.kafka.sink import rows_location

__all__ = ["RowSnapshots", "SnapshotPlace"]

log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0
_CHANGED_BYTES = 16 << 20
"""Bytes of changed rows after which a state is stored before its time."""
_KEPT = 2
"""Files that are kept for a state: a batch that is evaluated again may begin before the last one."""
_SUFFIX = ".rows"
_DIGITS = 20


class SnapshotPlace(NamedTuple):
    """Which state: a folder with its files."""

    source_id: str
    """`Stream.source_id`."""
    partition: int
    computation_id: str


class RowSnapshots:
    """Writes and reads states. Faults of the file system are logged, and leave the reader without a state."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        """Look where the settings say.

        Args:
            settings: The evaluator's settings.
            clock: Seconds.
        """
        location = rows_location(settings)
        self._clock = clock
        self._location = location if "://" in location else f"file://{location}"
        self._due: dict[SnapshotPlace, float] = {}

    def last(self, place: SnapshotPlace, at_most: int) -> LastRows | None:
        """Return the last whole state whose position is `at_most` or before; None where there is none."""
        try:
            system, folder = self._opened(place)
            for position, path in sorted(self._files(system, folder), reverse=True):
                if position > at_most:
                    continue
                try:
                    with system.open_input_stream(path) as file:
                        state = restored_rows(file.read())
                except (ValueError, pyarrow.ArrowInvalid) as reason:
                    log.warning("snapshot passed over", extra={"path": path, "reason": str(reason)})
                    continue
                self._due[place] = self._clock() + _EVERY_SECONDS
                return state
        except OSError as error:
            log.warning("no snapshot of rows", extra={"place": place, "reason": str(error)})
        return None

    def keep(self, place: SnapshotPlace, state: LastRows) -> None:
        """Store a state from time to time, if it has changed; called when nothing in the state can be undone."""
        now = self._clock()
        if place not in self._due:
            self._due[place] = now + _EVERY_SECONDS
        large = state.changed_bytes >= _CHANGED_BYTES
        if not state.changed or (now < self._due[place] and not large):
            return
        self._due[place] = now + _EVERY_SECONDS
        state.changed = 0
        try:
            system, folder = self._opened(place)
            files = sorted(self._files(system, folder))
            if files and files[-1][0] >= state.position:
                return  # another worker has stored a later state
            system.create_dir(folder, recursive=True)
            path = f"{folder}/{state.position:0{_DIGITS}}{_SUFFIX}"
            with system.open_output_stream(f"{path}.new") as file:
                file.write(stored_rows(state))
            system.move(f"{path}.new", path)
            for _, old in files[: 1 - _KEPT]:
                system.delete_file(old)
        except OSError as error:
            log.warning("rows not stored", extra={"place": place, "reason": str(error)})

    def forget(self, place: SnapshotPlace) -> None:
        """Remove the files of a state that nobody needs any more."""
        self._due.pop(place, None)
        try:
            system, folder = self._opened(place)
            if self._files(system, folder):
                system.delete_dir(folder)
        except OSError as error:
            log.warning("stored rows not removed", extra={"place": place, "reason": str(error)})

    def _opened(self, place: SnapshotPlace) -> tuple[pyarrow.fs.FileSystem, str]:
        system, base = pyarrow.fs.FileSystem.from_uri(self._location)
        return system, f"{base}/{place.source_id}/{place.partition}/{place.computation_id}"

    @staticmethod
    def _files(system: pyarrow.fs.FileSystem, folder: str) -> list[tuple[int, str]]:
        """Return the positions and paths of whole files."""
        infos = system.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True))
        names = [(info.base_name.removesuffix(_SUFFIX), info) for info in infos if info.base_name.endswith(_SUFFIX)]
        return [(int(name), info.path) for name, info in names if name.isdigit()]
