"""For processes other than the gateway: read ends, secrets, lists of timer-based CQs and match counts from Redis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gateway.model.end_notice import EndNotice
from gateway.state.connection import Connection
from grouping.model.ids import StreamId, Subscriber
from grouping.settings.settings import Settings
from grouping.store.connection import mapped
from grouping.store.notes import Output

__all__ = ["StoredNotes"]

_decode_ends = msgspec.json.Decoder(list[EndNotice]).decode


class StoredNotes:
    """Reads the gateway's notes; every method raises `StoreUnavailable` if Redis does not answer."""

    def __init__(self, settings: Settings) -> None:
        """Prepare to connect; the connection is made at the first use."""
        connection = Connection(settings)
        self._redis, self._keys = connection.redis, connection.keys

    def ends(self) -> dict[str, list[EndNotice]]:
        """Return the notices of ends under way, by batch; raises `msgspec.MsgspecError` if a value is not a notice."""
        with mapped():
            bodies = self._redis.hgetall(self._keys.ends)
        return {batch.decode(): _decode_ends(body) for batch, body in bodies.items()}

    def secrets(self) -> dict[str, bytes]:
        """Return the secrets by name."""
        with mapped():
            found: Mapping[bytes, bytes] = self._redis.hgetall(self._keys.secrets)
        return {name.decode(): secret for name, secret in found.items()}

    def timed_names(self, subscribers: Sequence[Subscriber]) -> dict[Subscriber, set[str]]:
        """Return the folded names in each subscriber's list of timer-based CQs."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for subscriber in subscribers:
                pipeline.zrange(self._keys.timed(subscriber), 0, -1)
            answers: list[list[bytes]] = pipeline.execute() if subscribers else []
        names = [{name.decode("utf-8", "surrogatepass") for name in answer} for answer in answers]
        return dict(zip(subscribers, names, strict=True))

    def streams_without_totals(self, stream_ids: Iterable[StreamId]) -> set[StreamId]:
        """Return the streams whose tasks found matches, but that have no match counts: neither totals nor tallies."""
        ordered = list(stream_ids)
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for stream_id in ordered:
                pipeline.hgetall(self._keys.output(stream_id))
                pipeline.exists(self._keys.match_totals(stream_id), self._keys.matches(stream_id))
            answers = pipeline.execute() if ordered else []
        pairs = zip(ordered, answers[::2], answers[1::2], strict=True)
        return {name for name, output, there in pairs if Output.unpack(output).matches and not there}
