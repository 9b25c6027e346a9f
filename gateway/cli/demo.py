"""`cq demo`: runs everything, with thousands of CQs of several subscribers over generated quotes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from gateway.cli.client import bootstrap_of
from gateway.cli.demo_market import (
    COLUMNS,
    COMPANY_COLUMNS,
    COMPANY_KEY,
    STREAM,
    SUBSCRIBERS,
    TABLE,
    Market,
    queries,
)
from gateway.cli.demo_view import DemoTally, latency_text, line_view, live_view, print_sharing
from gateway.sdk import Client, Conflict, ContinuousQuery, Digest, GatewayError, Match, Reply, Subscription, connect
from grouping.model.errors import OperationalError
from grouping.settings.given_settings import given_settings
from grouping.settings.kafka_options import client_options

__all__ = ["demo"]

_SEED = 2026
_SHOWN = 12
"""The number of CQs of each subscriber whose results are shown. The results of thousands of CQs would flicker."""
_PACE = 0.02
"""The time between two batches of quotes, in seconds."""
_REST = 2.0
"""How long the demo waits for the last results after the last quote, in seconds."""
_NEXT = "Go on by yourself: cq up --detach, cq sql 'CREATE STREAM …', cq sql 'CREATE CQ …', cq tail NAME, cq down"
_LINE_SECONDS = 5.0
"""The time between two printed lines, in seconds, if the output is not a terminal."""
_ENVIRONMENT = {"CQ_RESULTS_DEDICATED_LIMIT": "20"}
"""The environment limits the number of dedicated topics. So the demo shows both dedicated and shared destinations, and
nobody waits until hundreds of topics are made."""


def demo(
    data: Annotated[Path | None, typer.Option(help="Data folder; without one, a temporary one.")] = None,
    cqs: Annotated[int, typer.Option(min=3, help="CQs, of all subscribers together.")] = 3000,
    rate: Annotated[int, typer.Option(min=50, help="Quotes per second.")] = 1000,
    seconds: Annotated[float, typer.Option(min=1, help="How long quotes are streamed.")] = 60.0,
) -> None:
    """Start everything, run thousands of CQs over generated quotes, and stop everything."""
    console = Console(highlight=False)
    try:
        with _servers(console, data) as bootstrap:
            _play(console, bootstrap, cqs=cqs, rate=rate, seconds=seconds)
    except KeyboardInterrupt:
        console.print("stopped by hand")
        raise typer.Exit(130) from None
    except GatewayError as error:
        raise OperationalError(error.message, detail=error.detail, hint=error.hint) from error


@contextlib.contextmanager
def _servers(console: Console, data: Path | None) -> Iterator[str]:
    """Start everything as `cq up` does, and stop everything after the block, even after an error or a signal."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: _interrupt())
    folder = Path(tempfile.mkdtemp(prefix="cq-demo-")) if data is None else data
    try:
        console.print("Starting Kafka, Valkey, the gateway and the Spark evaluator …")
        _cq("up", folder, "--detach")
        yield bootstrap_of(folder)
    finally:
        # From here on, signals are ignored, so that not even a second Ctrl-C keeps the servers running.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        console.print("Stopping everything …")
        try:
            _cq("down", folder)
        finally:
            if data is None:
                shutil.rmtree(folder, ignore_errors=True)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _cq(command: str, folder: Path, *options: str) -> None:
    """Run a `cq` command in a process of its own, which prints its own errors."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", command, "--data", str(folder), *options],
        env={**os.environ, **_ENVIRONMENT},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise OperationalError(f'"cq {command}" failed', hint="See the line before this one.")


def _play(console: Console, bootstrap: str, *, cqs: int, rate: int, seconds: float) -> None:
    settings = given_settings()
    options = client_options(settings.kafka)
    market = Market(_SEED)
    with contextlib.ExitStack() as closing:
        clients = [
            closing.enter_context(connect(bootstrap, name, prefix=settings.prefix, extra=options))
            for name in SUBSCRIBERS
        ]
        companies = _declare(clients[0], market)
        console.print(
            f'Stream "{STREAM}" and table "{TABLE}" ({companies} rows) are declared. '
            f"Registering {cqs:,} CQs of {', '.join(SUBSCRIBERS)} over Kafka …"
        )
        began = time.monotonic()
        registered = [_register(client, market, cqs // len(clients)) for client in clients]
        took = time.monotonic() - began
        everything = [query for each in registered for query in each]
        tally = DemoTally(
            subscribers=len(clients),
            cqs=len(everything),
            groups=len({query.group for query in everything}),
            destinations=len({query.destination.id for query in everything}),
        )
        console.print(
            f"{tally.cqs:,} CQs accepted in {took:.1f} s. Streaming {rate:,} quotes a second for {seconds:g} s."
        )
        followed = [
            closing.enter_context(client.subscribe(*each)) for client, each in zip(clients, registered, strict=True)
        ]
        _stream(console, clients[0], followed, market, tally, rate=rate, seconds=seconds)
        print_sharing(console, clients[0].listing("GROUPS"), everything)
    console.print(
        f"{tally.events:,} quotes gave {tally.matches:,} matches and {tally.digests:,} digests of counts; "
        f"latency p50 / p99: {latency_text(tally)}.",
        soft_wrap=True,
    )
    console.print(_NEXT, soft_wrap=True, markup=False)


def _declare(client: Client, market: Market) -> int:
    """Declare the stream and the table, fill the table with a row for each company, and return the number of rows."""
    with contextlib.suppress(Conflict):  # an earlier demo on the same data folder has declared the sources
        client.create_stream(STREAM, COLUMNS, partitions=2)
    with contextlib.suppress(Conflict):
        client.create_table(TABLE, COMPANY_COLUMNS, COMPANY_KEY, partitions=2)
    return client.table(TABLE).put(market.companies())


def _register(client: Client, market: Market, count: int) -> list[ContinuousQuery]:
    outcomes = client.create_many(queries(market, client.subscriber, count, _SEED))
    return [outcome.query for outcome in outcomes if isinstance(outcome, Reply)]


def _stream(
    console: Console,
    publisher: Client,
    followed: Sequence[Subscription],
    market: Market,
    tally: DemoTally,
    *,
    rate: int,
    seconds: float,
) -> None:
    """Publish quotes in one thread, read results in one thread for each subscriber, and show counts in this thread."""
    done, read = threading.Event(), threading.Event()
    began = time.monotonic()
    with ThreadPoolExecutor(1 + len(followed)) as threads:
        try:
            publishing = threads.submit(_publish, publisher, market, tally, rate, done)
            reading = [threads.submit(_follow, each, tally, read) for each in followed]
            with _shown(console, tally) as show:
                while (left := began + seconds - time.monotonic()) > 0 and not publishing.done():
                    show(left)
                    done.wait(min(0.25, left))
                done.set()
                read.wait(_REST)
                show(0)
        finally:
            done.set()
            read.set()
        for thread in (publishing, *reading):
            thread.result()


def _publish(client: Client, market: Market, tally: DemoTally, rate: int, done: threading.Event) -> None:
    """Publish quotes at a steady rate. If a batch is late, the next batch is larger."""
    began = time.monotonic()
    while not done.wait(_PACE):
        due = int((time.monotonic() - began) * rate) - tally.events
        tally.events += client.publish(STREAM, market.quotes(due), key="symbol")


def _follow(results: Subscription, tally: DemoTally, done: threading.Event) -> None:
    shown = {query.cq for query in results.queries[:_SHOWN]}
    while not done.is_set():
        result = results.next(timeout=0.25)
        if isinstance(result, Match):
            tally.add(result, time.time())
            if result.cq in shown:
                tally.latest.append(result)
        elif isinstance(result, Digest):
            tally.add_digest(result)


@contextlib.contextmanager
def _shown(console: Console, tally: DemoTally) -> Iterator[Callable[[float], None]]:
    """Give the block a function that shows the numbers: in a live table on a terminal, else in a line now and then."""
    if console.is_terminal:
        with Live(live_view(tally, 0), console=console, auto_refresh=False) as live:
            yield lambda left: live.update(live_view(tally, left), refresh=True)
        return
    next_line_at = time.monotonic() + _LINE_SECONDS

    def line(left: float) -> None:
        nonlocal next_line_at
        if left == 0 or time.monotonic() >= next_line_at:
            next_line_at += _LINE_SECONDS
            console.print(line_view(tally), soft_wrap=True, markup=False)

    yield line
