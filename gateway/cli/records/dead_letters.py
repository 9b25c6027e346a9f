"""`cq dead-letters`: lists the dead letters of a stream, and publishes their records again."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.client import Data, KafkaAt, SubscriberOption, client_of, publisher_of
from gateway.cli.records.streams import declared_stream
from gateway.cli.running import settings_of
from gateway.sdk.publisher import DeliveryReports
from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.model.wording import figure
from grouping.settings.settings import Settings

if TYPE_CHECKING:
    from gateway.cli.records.letter import DeadLetter

__all__ = ["dead_letters"]

_TIMEOUT = 30.0


def dead_letters(
    stream: Annotated[str | None, typer.Argument(help="The stream; all dead letters without one.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with new dead letters; Ctrl-C stops.")] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Publish again the records that fit the stream as it is declared now.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Replay without asking.")] = False,
    data: Data = None,
    kafka: KafkaAt = None,
    subscriber: SubscriberOption = None,
) -> None:
    """List dead letters: time, code, place of the record, reason. With --replay, publish their records again."""
    if replay and (stream is None or follow):
        raise typer.BadParameter("--replay needs a stream, and cannot be combined with --follow")
    settings, declared = settings_of(data, kafka, None), None
    if stream is not None:
        with client_of(data, kafka, subscriber) as client:
            declared = declared_stream(client, stream)
    if replay:
        assert declared is not None, "a stream was given"
        _replay(declared, settings, data, kafka, yes=yes)
        return
    empty = True
    with contextlib.suppress(KeyboardInterrupt):
        for letter in _letters(settings, declared, follow=follow):
            empty = False
            print(letter.line, flush=follow)
    if empty and not follow:
        print("no dead letters")


def _letters(settings: Settings, stream: Stream | None, *, follow: bool) -> Iterator[DeadLetter]:
    """Yield the dead letters of a stream, or all. A letter that was written twice after a crash is yielded once."""
    # The Kafka driver and the engine are imported here, so that other commands start faster.
    from gateway.cli.records.letter import DeadLetter
    from gateway.kafka import LogReader, Topics

    topic, topics = settings.topics.deadletters, Topics(settings)
    partitions = topics.partitions(topic)
    if partitions is None:
        raise OperationalError(f'topic "{topic}" does not exist', hint="Start the gateway, or give its topic prefix.")
    beginnings = topics.offsets.beginnings([(topic, number) for number in range(partitions)])
    offsets = {number: offset for (_, number), offset in beginnings.items()}
    seen: set[tuple[str, ...]] = set()
    with contextlib.closing(LogReader(settings)) as log:
        while True:
            for record in log.since(topic, offsets):
                offsets[record.partition] = record.offset + 1
                letter = DeadLetter.of(record)
                same = letter.source, letter.code, letter.detail
                if same not in seen and (stream is None or letter.concerns(stream)):
                    seen.add(same)
                    yield letter
            if not follow:
                return


def _replay(stream: Stream, settings: Settings, data: Path | None, kafka: str | None, *, yes: bool) -> None:
    """Publish the records of dead letters again, after the user has agreed.

    The letters are read twice, once to count and once to publish, so that they need not be kept in memory.
    """
    from gateway.cli.records.letter import printable, why_not_replayed

    places: dict[str, str] = {}
    left, reasons = set[str](), Counter[str]()
    for letter in _letters(settings, stream, follow=False):
        reason = why_not_replayed(letter, stream, settings)
        if reason is None:
            places.setdefault(letter.source, letter.place)
        elif letter.source not in left:
            left.add(letter.source)
            reasons[reason] += 1
    for reason, count in reasons.most_common():
        print(f"{figure(count, 'dead letter')} left: {printable(reason)}")
    if not places:
        print("nothing to replay")
        return
    again = f'{figure(len(places), "record")} to topic "{stream.topic}"'
    if not yes and not typer.confirm(f"Publish {again} again, as new events?"):
        raise typer.Exit(1)
    wanted, delivery = set(places.values()), DeliveryReports()
    letters = (each for each in _letters(settings, stream, follow=False) if each.place in wanted)
    try:
        with publisher_of(data, kafka) as publisher:
            records = ((each.key, each.value) for each in letters)
            publisher.write(stream.topic, records, timeout=_TIMEOUT, delivery=delivery)
    finally:
        print(f'{figure(delivery.written, "record")} published to topic "{stream.topic}"')
