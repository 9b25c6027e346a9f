"""The figures of each stream for DESCRIBE STREAM, `cq status` and Prometheus: progress, CQs and evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gateway.kafka.offsets import Offsets
from gateway.metrics import BEHIND, SECONDS_BEHIND, forget_streams
from gateway.state.stream_evaluators import StreamEvaluators
from gateway.state.working_copy import WorkingCopy
from gateway.topics.lag import Lag
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId

__all__ = ["StreamFigures"]


class StreamFigures:
    """The figures of streams at the last call of `look`. For use by the gateway's main thread only."""

    def __init__(
        self, working: WorkingCopy, evaluators: StreamEvaluators, offsets: Offsets, clock: Callable[[], float]
    ) -> None:
        """Begin without figures.

        Args:
            working: The working copy, with the CQs and groups, and the evaluated offsets of each stream.
            evaluators: The evaluators, with their streams and the reasons why a stream is not evaluated.
            offsets: The ends of topics.
            clock: Returns the present, in seconds of a monotonic clock.
        """
        self._working = working
        self._evaluators = evaluators
        self._offsets = offsets
        self._clock = clock
        self._lags: dict[StreamId, Lag] = {}
        self._known: dict[str, dict[str, object]] = {}

    def of(self, name: str) -> dict[str, object]:
        """Return the figures of a stream at the last call of `look`; empty for a stream that is newer.

        `behind` is the number of events that are not evaluated yet, and `seconds_behind` is how long the oldest of them
        has waited. The next three fields are left out if they do not apply. `lane` is True if the stream shares the
        Spark query of quiet streams. `evaluator` is the stream's evaluator, if there are several evaluators. `reason`
        tells why the stream is not evaluated.
        """
        return dict(self._known.get(name, {}))

    def look(self, streams: Sequence[Stream]) -> None:
        """Look up the figures of all live streams, with one request for all offsets to Redis and one to Kafka.

        Raises:
            OperationalError: A server does not answer.
        """
        forget_streams(self._known.keys() - {stream.name for stream in streams})
        evaluators = self._evaluators.of_streams(streams)
        figures: dict[str, dict[str, object]] = {}
        for stream, (behind, seconds) in zip(streams, self._behind(streams), strict=True):
            BEHIND.labels(stream.name).set(behind)
            SECONDS_BEHIND.labels(stream.name).set(seconds)
            figures[stream.name] = {
                "behind": behind,
                "seconds_behind": round(seconds, 1),
                "cqs": self._working.inventory.live_cqs[stream.stream_id],
                "groups": len(self._working.inventory.groups(stream.stream_id)),
                **evaluators.get(stream.name, {}),
            }
        self._known = figures

    def _behind(self, streams: Sequence[Stream]) -> Iterator[tuple[int, float]]:
        """Yield, for each stream, the number of unevaluated events, and how many seconds the oldest has waited."""
        self._lags = {stream.stream_id: self._lags.get(stream.stream_id, Lag()) for stream in streams}
        known = list(zip(streams, self._working.evaluator.evaluated(streams), strict=True)) if streams else []
        places = {(stream.topic, int(number)) for stream, offsets in known for number in offsets}
        ends = self._offsets.known_ends(list(places)) if places else {}
        for stream, offsets in known:
            found = {number: ends.get((stream.topic, int(number))) for number in offsets}
            last = {number: end + stream.base for number, end in found.items() if end is not None}
            seconds = self._lags[stream.stream_id].seconds(last, offsets, self._clock())
            yield sum(max(end - offsets[number], 0) for number, end in last.items()), seconds
