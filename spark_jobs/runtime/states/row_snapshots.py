"""Stored states of operators, in a folder next to the checkpoints. The log can replace files of states without joins.

A worker without a state loads the last state at or before the beginning of its batch, and reads the log from there. If
the folder is on this machine, each task also stores its changes of the state, because another worker may get the next
batch of the partition. If a file is missing, torn or of another version, the worker only needs more time.

A state over joins with tables also depends on the rows that the tables had when its events were evaluated. Therefore
all changes since the last but one stored state are kept, and a new worker reads them in place of the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow.fs

from grouping.settings.settings import Settings
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.runtime.kafka.sink import rows_location

__all__ = ["RowSnapshots", "SnapshotPlace"]

log = logging.getLogger(__name__)

State = TypeVar("State", bound=LogState)

_EVERY_SECONDS = 60.0
_CHANGED_BYTES = 16 << 20
"""A state is stored before its time if its changes have this many bytes or more, and are not smaller than the state."""
_AWAY_SECONDS = 300.0
_FAULTS = (OSError, pyarrow.ArrowException)
_KEPT = 2
"""The number of files that are kept for a state: a batch that is evaluated again may begin before the last file."""
_SUFFIX = ".rows"
_CHANGES_KEPT = 6
"""The number of files of changes that are kept for a state that is not joined with tables."""
_CHANGES = ".changes"
_DIGITS = 20


class SnapshotPlace(NamedTuple):
    """The folder with the files of one state."""

    source_id: str
    """`Stream.source_id`."""
    partition: int
    computation_id: str
    joined: bool = False
    """Whether the rows of the state are joined with tables."""

    @property
    def path(self) -> str:
        """The folder's path within the folder of all states."""
        return f"{self.source_id}/{self.partition}/{self.computation_id}"


class RowSnapshots:
    """Writes and reads states. After a fault of the file system, nothing is written or read for some time."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare to use the folder of states that the settings name.

        Args:
            settings: The evaluator's settings.
            clock: Seconds.
        """
        location = rows_location(settings)
        self._clock = clock
        self._location = location.replace("s3a://", "s3://", 1)  # Hadoop's name for it
        self._folder = None if "://" in location else Path(location)
        """The folder, if it is on this machine; None if its location is a URL."""
        self._due: dict[str, float] = {}
        """By `SnapshotPlace.path`: when the state is to be stored next."""
        self._away_until = 0.0
        """The time before which the file system is not used after a fault, so that not every task waits for it."""

    def last(self, place: SnapshotPlace, at_most: int, kind: type[State], after: int = -1) -> State | None:
        """Return the last whole state of a kind whose position is in (`after`, `at_most`]; None if there is none."""
        if self._clock() < self._away_until:
            return None
        try:
            system, folder = self._opened(place)
            for position, path in sorted(self._files(system, folder), reverse=True):
                if not after < position <= at_most:
                    continue
                try:
                    with system.open_input_stream(path) as file:
                        state = kind.restored(file.read())
                except ValueError as reason:
                    log.warning("snapshot passed over", extra={"path": path, "reason": str(reason)})
                    continue
                self._due[place.path] = self._clock() + _EVERY_SECONDS
                return state
        except _FAULTS as error:
            self._pause(error)
        return None

    def keep(self, place: SnapshotPlace, state: LogState) -> None:
        """Store a state from time to time, if it has changed; must be called before the first step of a task.

        A state over joins is stored even if it has not changed, because only then old files of changes can be removed.
        """
        now = self._clock()
        due = self._due.setdefault(place.path, now + _EVERY_SECONDS)
        large = state.changed_bytes >= max(_CHANGED_BYTES, state.nbytes)
        changed = state.changed or place.joined
        if not changed or (now < due and not large) or now < self._away_until:
            return
        self._due[place.path] = now + _EVERY_SECONDS
        state.changed = 0
        try:
            system, folder = self._opened(place)
            files = sorted(self._files(system, folder))
            if files and files[-1][0] >= state.position:
                return  # another worker has stored a later state
            system.create_dir(folder, recursive=True)
            path = f"{folder}/{state.position:0{_DIGITS}}{_SUFFIX}"
            with system.open_output_stream(f"{path}.new") as file:
                file.write(state.stored())
            system.move(f"{path}.new", path)
            for _, old in files[: 1 - _KEPT]:
                system.delete_file(old)
            if files and place.joined and self._folder is not None:
                for changes in (self._folder / place.path).glob(f"*{_CHANGES}"):
                    if _bounds(changes)[1] <= files[1 - _KEPT][0]:
                        changes.unlink(missing_ok=True)
        except _FAULTS as error:
            self._pause(error)

    def store_changes(self, place: SnapshotPlace, state: LogState) -> None:
        """Store the changes of a task that has ended, for other workers of this machine."""
        if self._folder is None or self._clock() < self._away_until:
            return
        folder = self._folder / place.path
        written = folder / f"{state.reached:0{_DIGITS}}-{state.position:0{_DIGITS}}{_CHANGES}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            new = written.with_suffix(".new")
            new.write_bytes(state.changes())
            new.replace(written)
            if not place.joined:
                for old in sorted(folder.glob(f"*{_CHANGES}"))[:-_CHANGES_KEPT]:
                    old.unlink(missing_ok=True)
        except _FAULTS as error:
            self._pause(error)

    def catch_up(self, place: SnapshotPlace, state: LogState, at_most: int) -> None:
        """Apply to a state the changes that other workers have stored, up to a position, as long as there is no gap."""
        folder = None if self._folder is None else self._folder / place.path
        found = [] if folder is None else [(_bounds(path), path) for path in folder.glob(f"*{_CHANGES}")]
        while state.position < at_most:
            found = [each for each in found if state.position < each[0][1] <= at_most]
            usable = [each for each in found if each[0][0] <= state.position]
            try:
                if not usable or not state.put_changes(max(usable, key=lambda each: each[0][1])[1].read_bytes()):
                    return
            except (OSError, ValueError) as reason:
                log.warning("changes passed over", extra={"place": place, "reason": str(reason)})
                return

    def forget(self, place: SnapshotPlace) -> None:
        """Remove the files of a state."""
        self._due.pop(place.path, None)
        try:
            system, folder = self._opened(place)
            if system.get_file_info(folder).type == pyarrow.fs.FileType.Directory:
                system.delete_dir(folder)
        except _FAULTS as error:
            self._pause(error)

    def _pause(self, fault: BaseException) -> None:
        self._away_until = self._clock() + _AWAY_SECONDS
        log.warning(
            "states of operators are not stored or read for some time",
            extra={"place": self._location, "reason": str(fault)},
        )

    def _opened(self, place: SnapshotPlace) -> tuple[pyarrow.fs.FileSystem, str]:
        if self._folder is not None:
            return pyarrow.fs.LocalFileSystem(), str(self._folder / place.path)
        system, base = pyarrow.fs.FileSystem.from_uri(self._location)
        return system, f"{base}/{place.path}"

    @staticmethod
    def _files(system: pyarrow.fs.FileSystem, folder: str) -> list[tuple[int, str]]:
        """Return the positions and paths of whole files."""
        infos = system.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True))
        names = [(info.base_name.removesuffix(_SUFFIX), info) for info in infos if info.base_name.endswith(_SUFFIX)]
        return [(int(name), info.path) for name, info in names if name.isdigit()]


def _bounds(path: Path) -> tuple[int, int]:
    """Return where the changes of a file begin and end."""
    began, _, position = path.stem.partition("-")
    return int(began), int(position)
