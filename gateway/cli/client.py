"""`cq sql` and `cq tail`: send statements and read results in a shell, through the SDK like any other client."""

from __future__ import annotations

import contextlib
import getpass
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.errors import checked_address
from gateway.cli.scripts.script import statements_of
from gateway.cli.scripts.subscriber_change import by_subscriber
from gateway.sdk import Client, CommandRejection, Digest, GatewayError, Match, Reply, SigningKey, connect
from gateway.sdk.publisher import Publisher
from gateway.sdk.statements import text_literal
from grouping.model.errors import PLACE, InputError, OperationalError
from grouping.model.wording import counted
from grouping.settings.addresses import check_servers
from grouping.settings.given_settings import given_settings
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings

__all__ = [
    "AsJson",
    "Data",
    "KafkaAt",
    "SubscriberOption",
    "bootstrap_of",
    "client_of",
    "publisher_of",
    "show_result",
    "sql",
    "tail",
]

Data = Annotated[Path | None, typer.Option("--data", help="Data folder of a `cq up`.", show_default="cq-data")]
KafkaAt = Annotated[str | None, typer.Option("--kafka", metavar="HOST:PORT", help="Kafka, instead of a data folder.")]
SubscriberOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The subscriber who sends statements and has the CQs.", show_default="the user's name"
    ),
]
_AT_ONCE = 1_000
"""The largest number of statements that are sent before their replies are shown."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def sql(
    statement: Annotated[str | None, typer.Argument(help='Statements separated by ";", such as "SHOW CQS".')] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="File of statements; - for standard input.")] = None,
    data: Data = None,
    kafka: KafkaAt = None,
    subscriber: SubscriberOption = None,
    as_json: AsJson = False,
) -> None:
    """Carry out statements and print each reply. The exit code is 1 if a statement is rejected."""
    rejected = False
    for who, texts in by_subscriber(_statements(statement, file), subscriber):
        with client_of(data, kafka, who) as client:
            for begin in range(0, len(texts), _AT_ONCE):
                some = texts[begin : begin + _AT_ONCE]
                for text, outcome in zip(some, client.create_many(some, check=False), strict=True):
                    rejected |= isinstance(outcome, CommandRejection)
                    _print_outcome(text, outcome, as_json=as_json)
    if rejected:
        raise typer.Exit(1)


def _statements(text: str | None, file: Path | None) -> list[str]:
    """Return the given statements. A text that cannot be split is a single statement, which the gateway then refuses.

    Raises:
        BadParameter: Neither a text nor a file is given, or both are, or the file cannot be read.
    """
    if (text is None) == (file is None):
        raise typer.BadParameter('give either a statement, such as "SHOW CQS", or --file')
    if file is not None:
        try:
            raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
            # The file is read as bytes, since reading it as text would convert carriage returns.
            text = raw.decode("utf-8-sig")
        except (OSError, UnicodeError) as error:
            raise typer.BadParameter(f"the file cannot be read: {error}") from error
    assert text is not None, "one of both is given"

    try:
        return statements_of(text) or [text]
    except InputError:
        return [text]


def _print_outcome(text: str, outcome: Reply | CommandRejection, *, as_json: bool) -> None:
    if isinstance(outcome, CommandRejection):
        if as_json:
            print(msgspec.json.encode(outcome.reply).decode())
        else:
            _print_rejection(outcome, text)
    elif as_json:
        print(msgspec.json.encode(outcome).decode())
    else:
        show_result(outcome.message, outcome.result or {})


def tail(
    name: Annotated[str, typer.Argument(help="The CQ to follow.")],
    data: Data = None,
    kafka: KafkaAt = None,
    subscriber: SubscriberOption = None,
    as_json: AsJson = False,
    from_cursor: Annotated[str | None, typer.Option(metavar="TEXT", help="Go on after this cursor.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this number of results.")] = None,
) -> None:
    """Print a CQ's results, from the first one until the CQ ends. Ctrl-C stops."""
    with (
        client_of(data, kafka, subscriber) as client,
        client.subscribe(name, cursor=from_cursor) as results,
        contextlib.suppress(KeyboardInterrupt),
    ):
        for count, result in enumerate(results, 1):
            if as_json:
                print(json.dumps(_fields(result, results.cursor), ensure_ascii=False), flush=True)
            else:
                _print_one(result)
            if count == limit:
                return
        for end in results.ends.values():
            print(f'CQ "{end.cq}" has ended ({end.reason}) at {end.ended_at.isoformat()}', file=sys.stderr)


def bootstrap_of(data: Path) -> str:
    """Return the address of the Kafka of a `cq up` on this data folder.

    Raises:
        OperationalError: No `cq up` runs on this folder.
    """
    try:
        endpoints: Mapping[str, Any] = json.loads((data / "endpoints.json").read_text())
        return str(endpoints["bootstrap"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OperationalError(
            f'nothing has been started on the data folder "{data}"',
            hint=f"Start it (cq up --data {data}), or give Kafka's address: --kafka HOST:PORT.",
        ) from error


@contextlib.contextmanager
def client_of(data: Path | None, kafka: str | None, subscriber: str | None) -> Iterator[Client]:
    """Connect a client for the block. Errors of the SDK become errors of the command line, of one line each."""
    settings = given_settings()
    bootstrap = _bootstrap(data, kafka, settings)
    with _one_line():
        text, audience = settings.auth.signing_key.get_secret_value(), settings.auth.audience or None
        signing_key = SigningKey(text, audience=audience) if text else None
        with connect(
            bootstrap,
            subscriber or getpass.getuser(),
            prefix=settings.prefix,
            extra=client_options(settings.kafka),
            signing_key=signing_key,
        ) as client:
            yield client


@contextlib.contextmanager
def publisher_of(data: Path | None, kafka: str | None) -> Iterator[Publisher]:
    """Make a publisher of records for the block. Errors of the SDK become errors of the command line."""
    settings = given_settings()
    publisher = Publisher(_bootstrap(data, kafka, settings), client_options(settings.kafka))
    with _one_line(), contextlib.closing(publisher):
        yield publisher


def _bootstrap(data: Path | None, kafka: str | None, settings: Settings) -> str:
    return checked_address(kafka, check_servers) if kafka else bootstrap_of(data or settings.data)


@contextlib.contextmanager
def _one_line() -> Iterator[None]:
    """Turn errors of the SDK into errors of the command line; print a rejection, and exit with the code 1."""
    try:
        yield
    except CommandRejection as error:
        _print_rejection(error)
        raise typer.Exit(1) from None
    except GatewayError as error:
        raise OperationalError(error.message, detail=error.detail, hint=error.hint) from error
    except UnicodeEncodeError as error:  # the shell gave bytes that are not UTF-8
        raise typer.BadParameter("an argument is not valid UTF-8") from error


def place_shown(statement: str, detail: str | None) -> str:
    r"""Return the line of a statement that an error's detail names, and a second line with a caret below the column.

    The result is empty if the detail names no line of the statement.

    Example:
        >>> print(place_shown("CREATE CQ a AS\n SELECT FROM q", "Line 2, column 9: there should be a column."))
         SELECT FROM q
                ^
    """
    found = PLACE.match(detail or "")
    lines = statement.split("\n")
    if found is None or int(found[1]) > len(lines):
        return ""
    line, column = lines[int(found[1]) - 1], int(found[2])
    indent = re.sub(r"[^\t]", " ", line[: column - 1]).ljust(column - 1)
    return f"{line}\n{indent}^"


def _print_rejection(error: CommandRejection, statement: str = "") -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    console.print(f"[red]{error.code}[/red]: ", end="")
    console.print(error.message, markup=False)
    if shown := place_shown(statement, error.detail):
        console.print(shown, markup=False)
    for name, text in (("detail", error.detail), ("hint", error.hint)):
        if text is not None:
            console.print(f"  {name}: {text}", markup=False)


def show_result(message: str, result: Mapping[str, Any]) -> None:
    """Print the message and the result of an accepted statement, for a person."""
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    console.print(message, markup=False)
    listed = next((value for value in result.values() if isinstance(value, list)), None)
    if "text" in result and "plan" in result:
        console.print(result["text"], markup=False)
    elif "next" in result and listed:
        console.print(_table(listed))
        if result["next"] is not None:
            console.print(f"more: AFTER {text_literal(result['next'])}", markup=False)
    elif "next" in result:
        console.print("  none", markup=False)
    else:
        for name, value in result.items():
            console.print(f"  {name:<12} {_shown(value)}", markup=False)


def _table(items: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in items[0]:
        table.add_column(column, overflow="fold")
    for item in items:
        table.add_row(*(Text(_shown(item.get(column))) for column in items[0]))
    return table


def _shown(value: Any) -> str:
    """Return a value of a result as a text for a person.

    Example:
        >>> _shown({"kind": "timer", "every": "PT5M", "cron": None})
        'kind timer, every PT5M'
        >>> _shown([{"name": "price", "type": "DOUBLE"}]), _shown(["tech", 100]), _shown(None)
        ('price DOUBLE', 'tech, 100', '–')
    """
    match value:
        case None:
            return "–"
        case str():
            return value
        case [{"name": _, "type": _}, *_]:
            return ", ".join(f"{column['name']} {column['type']}" for column in value)
        case [*_] if value:
            return ", ".join(map(_shown, value))
        case dict() if value:
            return ", ".join(f"{name} {_shown(each)}" for name, each in value.items() if each is not None)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _print_one(result: Match | Digest) -> None:
    if isinstance(result, Match):
        edge = f"{result.edge:<5}  " if result.edge else f"{result.op:<6}  " if result.op else ""
        left_out = f"  {result.suppressed} suppressed before" if result.suppressed else ""
        before = "" if result.before is None else f"  before {json.dumps(result.before, ensure_ascii=False)}"
        print(
            f"{result.time.isoformat()}  {edge}{json.dumps(result.row, ensure_ascii=False)}{before}{left_out}",
            flush=True,
        )
        return
    print(f"{result.since.isoformat()} to {result.until.isoformat()}: {counted(result.count, 'match')}", flush=True)
    for row in result.rows:
        print(f"  {json.dumps(row, ensure_ascii=False)}", flush=True)


def _fields(result: Match | Digest, cursor: str) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(result)
    kind = "match" if isinstance(result, Match) else "digest"
    return {"type": kind, **fields, "cursor": cursor}
