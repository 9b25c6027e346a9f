"""Marks of the clock: watermarks that the driver's clock has set for an idle source partition.

A mark names a position of the log, and takes effect before the event at this position. The driver writes a mark before
a micro-batch uses it. Workers read marks when they fold the log into a state. The marks of a partition are in a file
next to the stored states of the partition (docs/design/042-time-by-partition.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow.fs

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.sink import rows_location

__all__ = ["ClockMarks", "PlacedMark", "marks_location", "marks_text", "read_marks"]

_KEPT = 10_000
"""The largest number of marks that are kept for a partition; each idle period of the partition has one mark."""


class PlacedMark(NamedTuple):
    """A watermark that the clock has set before the event at a position."""

    position: int
    watermark: int
    """Epoch milliseconds."""
    batch: str
    """The micro-batch that makes the results of the mark: the id of the query, a slash, and the micro-batch's
    number."""


def marks_location(settings: Settings, source_id: str, partition: int) -> str:
    """Return the path of the file with the marks of a source partition."""
    return f"{rows_location(settings)}/{source_id}/{partition}/clock.marks"


def marks_text(marks: Iterable[PlacedMark]) -> str:
    """Return the contents of a file of marks: the last `_KEPT` of the given marks, a line for each.

    Example:
        >>> read_marks(marks_text([PlacedMark(7, 1000, "q/3")]))
        [PlacedMark(position=7, watermark=1000, batch='q/3')]
    """
    return "\n".join(f"{mark.position} {mark.watermark} {mark.batch}" for mark in list(marks)[-_KEPT:])


def read_marks(text: str) -> list[PlacedMark]:
    """Return the marks of a file in the order of their positions."""
    fields = (line.split(" ") for line in text.splitlines() if line)
    return [PlacedMark(int(position), int(watermark), batch) for position, watermark, batch in fields]


class ClockMarks:
    """Reads the marks, for workers."""

    def __init__(self, settings: Settings) -> None:
        """Prepare to read from the folder of states that the settings name."""
        self._settings = settings

    def of(self, source_id: str, partition: int) -> list[PlacedMark]:
        """Return the marks of a source partition in the order of their positions.

        Raises:
            OperationalError: The file system does not answer. A partition cannot be evaluated without its marks.
        """
        location = marks_location(self._settings, source_id, partition).replace("s3a://", "s3://", 1)
        try:
            system: pyarrow.fs.FileSystem = pyarrow.fs.LocalFileSystem()
            if "://" in location:
                system, location = pyarrow.fs.FileSystem.from_uri(location)
            if system.get_file_info(location).type is not pyarrow.fs.FileType.File:
                return []
            with system.open_input_stream(location) as file:
                return read_marks(file.read().decode())
        except (OSError, pyarrow.ArrowException) as error:
            raise OperationalError("marks of the clock cannot be read", detail=str(error)) from error
