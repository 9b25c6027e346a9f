"""`cq demo`: thousands of CQs from several subscribers on generated quotes, everything over Kafka."""

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
"""How many CQs of each subscriber have their results shown; thousands would flicker."""
_PACE = 0.02
"""Seconds between two batches of quotes."""
_REST = 2.0
"""Seconds to wait for the last results after the last quote."""
_NEXT = "Go on by yourself: cq up --detach, cq sql 'CREATE STREAM …', cq sql 'CREATE CQ …', cq tail NAME, cq down"
_LINE_SECONDS = 5.0
"""Seconds between two printed lines where there is no terminal."""
_ENVIRONMENT = {"CQ_RESULTS_DEDICATED_LIMIT": "20"}
"""Few dedicated topics: both ways of delivery are seen, and nobody waits for hundreds of topics."""


def demo(
    data: Annotated[Path | None, typer.Option(help="Data folder; without one, a temporary one.")] = None,
    cqs: Annotated[int, typer.Option(min=3, help="CQs, of all subscribers together.")] = 3000,
    rate: Annotated[int, typer.Option(min=50, help="Quotes per second.")] = 1000,
    seconds: Annotated[float, typer.Option(min=1, help="How long quotes are streamed.")] = 60.0,
) -> None:
    """Run the product on generated quotes, and stop; no process is left running."""
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
    """Start everything as `cq up` does, and stop it whatever happens in between."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: _interrupt())
    folder = Path(tempfile.mkdtemp(prefix="cq-demo-")) if data is None else data
    try:
        console.print("Starting Kafka, Valkey, the gateway and the Spark evaluator …")
        _cq("up", folder, "--detach")
        yield bootstrap_of(folder)
    finally:
        # From here on, nothing may keep the servers from being stopped, not even a second Ctrl-C.
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
    """Run `cq` as a user does; `cq` itself prints errors."""
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
        f"{tally.events:,} quotes gave {tally.matches:,} matches and {tally.digests:,} digests that count; "
        f"latency p50 / p99: {latency_text(tally)}.",
        soft_wrap=True,
    )
    console.print(_NEXT, soft_wrap=True, markup=False)


def _declare(client: Client, market: Market) -> int:
    """Declare the stream and the table, which has a row for each company; return how many."""
    with contextlib.suppress(Conflict):  # A demo that resumes in a folder of its own finds its sources there
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
    """Publish in a thread, read in a thread per subscriber, and show in the calling thread."""
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
    """Publish at a steady rate: if a batch is late, the next batch makes up for the missing events."""
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
    """Give a function that shows the numbers: a live table in a terminal, elsewhere a line every few seconds."""
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
