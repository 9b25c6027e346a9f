"""`cq publish`: publishes records from a file, or from standard input, to a stream's topic."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from gateway.cli.client import Data, KafkaAt, SubscriberOption, client_of, publisher_of
from gateway.cli.records.csv_rows import CsvRows
from gateway.cli.records.input_lines import InputLine
from gateway.cli.records.json_lines import json_lines
from gateway.cli.records.streams import declared_stream
from gateway.sdk.publisher import DeliveryReports
from grouping.model.catalog import Stream
from grouping.model.change_format import is_change_format
from grouping.model.column_place import RecordPath
from grouping.model.errors import OperationalError
from grouping.model.explode import explode_levels
from grouping.model.wording import figure
from grouping.settings.given_settings import given_settings
from grouping.settings.kafka_options import client_options
from schemas.avro_writers import id_header

__all__ = ["publish"]

_TIMEOUT = 30.0
_DRIVER_BYTES = 1_000_000
"""The largest number of bytes of a record's key and value together that the Kafka driver takes by default."""
_STEP = 1_000
"""The number of lines between two changes of the progress bar."""
_STOPPED = 130
"""The exit code after Ctrl-C."""


class Form(StrEnum):
    """The forms of input."""

    JSON = "json"
    CSV = "csv"


def publish(
    stream: Annotated[str, typer.Argument(help="The stream; its format is json or a format of changes.")],
    file: Annotated[Path, typer.Argument(help="JSON lines, or CSV (.csv); - for standard input.")] = Path("-"),
    form: Annotated[
        Form | None, typer.Option("--format", help="The form of the input.", show_default="by the file's name")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that is the record's key.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first line that is not a record.")] = False,
    data: Data = None,
    kafka: KafkaAt = None,
    subscriber: SubscriberOption = None,
) -> None:
    """Publish records to a stream's topic. Broken lines are reported and left out; the exit code is then 1."""
    with client_of(data, kafka, subscriber) as client:
        declared = declared_stream(client, stream)
    if declared.format != "json" and not is_change_format(declared.format):
        raise OperationalError(
            f'stream "{declared.name}" has records of format {declared.format}, and cq publish writes JSON',
            hint="Publish with a Kafka client that has the schema.",
        )
    form = form or (Form.CSV if file.suffix.lower() == ".csv" else Form.JSON)
    with _opened(file) as source:
        run = _Publication(
            declared, form, key, strict=strict, size=None if source is sys.stdin.buffer else file.stat().st_size
        )
        run.publish(source, data, kafka)
    run.tell()


def _opened(file: Path) -> BinaryIO | nullcontext[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb")


class _Publication:
    """The publication of one input, with its counts."""

    def __init__(self, stream: Stream, form: Form, key: str | None, *, strict: bool, size: int | None) -> None:
        self._stream = stream
        self._form = form
        self._key = key
        self._strict = strict
        self._console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
        self._before = id_header(0) if stream.framing == "confluent" else b""
        self._broken = self._bytes = 0
        self._delivery = DeliveryReports()
        self._progress = Progress(
            TextColumn("{task.fields[records]} records"),
            BarColumn(),
            TaskProgressColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bar = self._progress.add_task("", total=size, records="0")

    def publish(self, source: BinaryIO, data: Path | None, kafka: str | None) -> None:
        """Publish the records of an input.

        Raises:
            OperationalError: The first row of CSV cannot be used, or Kafka does not take the records.
        """
        try:
            with publisher_of(data, kafka) as publisher, self._progress:
                records = self._records(self._lines(source))
                publisher.write(self._stream.topic, records, timeout=_TIMEOUT, delivery=self._delivery)
                self._show()
        except KeyboardInterrupt:
            left = self._delivery.unwritten
            self._console.print(f"stopped: {left} more records may have been written" if left else "stopped")
            self._count()
            raise typer.Exit(_STOPPED) from None
        except OperationalError:
            if self._delivery.count:
                self._count()
            raise

    def tell(self) -> None:
        """Print the counts. If lines were broken, exit with the code 1."""
        self._count()
        if self._broken:
            stopped = ", where it stopped" if self._strict else ""
            self._console.print(f"{figure(self._broken, 'broken line')} left out{stopped}", markup=False)
            raise typer.Exit(1)

    def _count(self) -> None:
        written = figure(self._delivery.written, "record")
        print(f'{written} published to topic "{self._stream.topic}"', flush=True)

    def _show(self) -> None:
        """Move the progress bar."""
        self._progress.update(self._bar, completed=self._bytes, records=f"{self._delivery.written:,}")

    def _lines(self, source: BinaryIO) -> Iterator[InputLine]:
        longest = int(client_options(given_settings().kafka).get("message.max.bytes", _DRIVER_BYTES))
        if self._form == Form.JSON:
            yield from json_lines(source, self._key_path(), longest)
            return
        if is_change_format(self._stream.format):
            raise OperationalError(
                f"a row of CSV is not a record of format {self._stream.format}",
                hint="Publish JSON lines, each of which is one change.",
            )
        if self._stream.explode:
            raise OperationalError(
                "a row of CSV is not a record of a stream with explode",
                hint=f"Publish JSON lines, each with the array at {self._stream.explode}.",
            )
        rows = CsvRows(self._stream.columns, self._stream.lenient, self._stream.timestamps, longest)
        for line in rows.read(source, self._key):
            while rows.warnings:
                self._console.print(f"warning: {rows.warnings.pop(0)}", markup=False)
            yield line

    def _key_path(self) -> RecordPath | None:
        """Return the path of the key in a record: the path of the declared column, or else a field of this name."""
        if self._key is None:
            return None
        levels = len(explode_levels(self._stream.explode)) if self._stream.explode else 0
        for column in self._stream.columns:
            in_record = column.place.kind in ("value", "outer") and column.place.level == levels
            if column.name.casefold() == self._key.casefold() and in_record:
                return column.place.path
        return (self._key,)

    def _records(self, lines: Iterator[InputLine]) -> Iterator[tuple[bytes | None, bytes | None]]:
        for count, line in enumerate(lines):
            self._bytes += line.size
            if count % _STEP == 0:
                self._show()
            if not line.fault:
                yield line.key, line.value if line.value is None else self._before + line.value
                continue
            self._broken += 1
            self._console.print(f"line {line.number}: {line.fault}", markup=False)
            if self._strict:
                return
