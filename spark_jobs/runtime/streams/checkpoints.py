"""The checkpoints of all streams of an evaluator, by the ids of their sources."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.task_notes import LANE
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.kafka.sink import checkpoint_location, rows_location
from spark_jobs.runtime.streams.checkpoint import Checkpoint
from spark_jobs.runtime.streams.files import Files

__all__ = ["Checkpoints"]

log = logging.getLogger(__name__)


class Checkpoints:
    """Finds checkpoints, and removes the checkpoints of dropped streams."""

    def __init__(self, settings: Settings, files: Files, broker: Broker) -> None:
        """Prepare to use the folder of checkpoints that the settings name.

        Args:
            settings: The evaluator's settings.
            files: The file system of the checkpoints.
            broker: Kafka, with the pins of streams.
        """
        self._settings = settings
        self._broker = broker
        self._files = files

    def of(self, source_id: str) -> Checkpoint:
        """Return the checkpoint of a query, by `Stream.source_id` or the name of a lane; its files may be missing."""
        return Checkpoint(checkpoint_location(source_id, self._settings), self._files)

    def sweep(self, live: Iterable[str]) -> None:
        """Remove the checkpoints of streams that were dropped, or whose topics were deleted, while no evaluator ran.

        Args:
            live: The `Stream.source_id` of each live stream.

        Raises:
            OperationalError: Kafka or the file system of the checkpoints does not answer.
        """
        places = (checkpoint_location("", self._settings), rows_location(self._settings))
        dropped = {name for place in places for name in self._files.names(place)}.difference(live)
        for source_id in (each for each in dropped if not each.startswith(LANE)):
            self.forget(source_id)

    def forget(self, source_id: str) -> None:
        """Remove the data that is kept for a stream's replays: pins, stored states and the checkpoint.

        The checkpoint is removed last. If a step fails, the next evaluator's `sweep` finds the checkpoint and removes
        the rest.
        """
        self._broker.write(self._settings.topics.pins, source_id.encode())
        try:
            self._files.remove(f"{rows_location(self._settings)}/{source_id}")
            self.of(source_id).remove()
        except OperationalError as error:
            log.warning("checkpoint not removed; the next start removes it", extra={"reason": error.line})
