"""The Redis keys of the evaluator and its workers; all others are in `keys.py`."""

from __future__ import annotations

from dataclasses import dataclass

from grouping.model.ids import StreamId

__all__ = ["EvaluatorKeys"]


@dataclass(frozen=True, slots=True)
class EvaluatorKeys:
    """The keys written by the evaluator of a prefix.

    Example:
        >>> EvaluatorKeys("cq").committed("s_1")
        'cq:committed:s_1'
    """

    start: str
    """The beginning of all keys, without the colon."""

    def pins(self, stream_id: StreamId) -> str:
        """Hash of micro-batches under way to `Pin` as text. By workers; the gateway reads."""
        return f"{self.start}:pins:{stream_id}"

    def committed(self, stream_id: StreamId) -> str:
        """`CommittedNote` (notes.py): how far events are evaluated. By the evaluator; the gateway reads."""
        return f"{self.start}:committed:{stream_id}"

    def next_batch(self, stream_id: StreamId) -> str:
        """Number of the first uncommitted micro-batch: earlier ones are pinned no more. By the evaluator.

        A rebuild of the working copy leaves it alone, by its name.
        """
        return f"{self.start}:evaluator:next-batch:{stream_id}"

    def checkpoint(self, stream_id: StreamId) -> str:
        """Text: which checkpoint the stream was evaluated by last (runtime/streams/resumption.py). By the evaluator.

        A rebuild of the working copy leaves it alone, by its name.
        """
        return f"{self.start}:evaluator:checkpoint:{stream_id}"

    def statistics(self, stream_id: StreamId) -> str:
        """Hash of source partitions to `PartitionStatistics`. By workers; the gateway reads."""
        return f"{self.start}:statistics:{stream_id}"

    def matches(self, stream_id: StreamId) -> str:
        """List of `MatchTally`, one for each task. By workers; the gateway takes them."""
        return f"{self.start}:matches:{stream_id}"

    def counted(self, stream_id: StreamId) -> str:
        """Hash of source partitions to the micro-batch that `matches` has last. By workers."""
        return f"{self.start}:counted:{stream_id}"

    def output(self, stream_id: StreamId) -> str:
        """Hash of the fields of `Output` (notes.py). By workers; the gateway reads."""
        return f"{self.start}:output:{stream_id}"

    def misfits(self, stream_id: StreamId) -> str:
        """Hash of columns of a lenient stream to values that did not fit. By workers; the gateway reads."""
        return f"{self.start}:misfits:{stream_id}"

    def quarantine(self, stream_id: StreamId) -> str:
        """Hash of work units to `Quarantine` (quarantine.py). By workers and the evaluator; the gateway reads."""
        return f"{self.start}:quarantine:{stream_id}"

    def trial(self, stream_id: StreamId) -> str:
        """`CulpritSearch` (quarantine.py) at the batch that comes next. The evaluator's own."""
        return f"{self.start}:trial:{stream_id}"

    def in_hand(self, stream_id: StreamId) -> str:
        """Hash of tasks to the shares that they have in hand, as JSON. By workers, for the evaluator."""
        return f"{self.start}:in-hand:{stream_id}"

    @property
    def dead_letters(self) -> str:
        """Hash of codes to how many dead letters there were. By workers; the gateway reads."""
        return f"{self.start}:dead-letters"

    @property
    def digest_job(self) -> str:
        """`Job` (grouping/digests/jobs.py): digests that a Spark job makes. Gateway and evaluator write in turns.

        A rebuild of the working copy leaves it alone, by its name: an evaluator may have taken the job.
        """
        return f"{self.start}:evaluator:digest-job"

    def executors(self, name: str = "") -> str:
        """`ExecutorsNote` (notes.py): the executors of an evaluator's tasks. By the evaluator; the gateway reads.

        A rebuild of the working copy leaves it alone, by its name.
        """
        return f"{self.start}:evaluator:executors" + (f"/{name}" if name else "")

    def lane_hand(self, name: str = "") -> str:
        """Hash of a lane's tasks to their micro-batch and the `Stream.source_id` in hand.

        By workers, for the evaluator of that name. A rebuild of the working copy leaves the key alone, by its name.
        """
        return f"{self.start}:evaluator:lane-hand" + (f"/{name}" if name else "")

    def lane_seconds(self, name: str = "") -> str:
        """Hash of `Stream.source_id` to seconds of evaluation in the lane. By workers, for the evaluator of that name.

        A rebuild of the working copy leaves the key alone, by its name.
        """
        return f"{self.start}:evaluator:lane-seconds" + (f"/{name}" if name else "")

    def owner(self, stream_id: StreamId) -> str:
        """`Owner` (ownership.py) as text: which evaluator has the stream. By the evaluator; the gateway reads.

        Watched by whatever is written of the stream. A rebuild of the working copy leaves it alone, by its name.
        """
        return f"{self.start}:evaluator:owner:{stream_id}"
