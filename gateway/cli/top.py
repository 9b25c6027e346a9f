"""`cq top`: shows rates, lag, the groups that cost most, and the subscribers with the most CQs."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
import typer

from gateway.cli.running import Data, Kafka, Redis, settings_of

__all__ = ["top"]


def top(
    data: Data = None,
    kafka: Kafka = None,
    redis: Redis = None,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two refreshes.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show one table, and end.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON at each refresh, for programs.")
    ] = False,
) -> None:
    """Show rates, lag, the groups that cost most, and the subscribers with the most CQs, until Ctrl-C."""
    from rich.console import Console
    from rich.live import Live

    from gateway.top.activity import Activity, Watch
    from gateway.top.sample import TopSampler
    from gateway.top.table import tables

    sampler, watch = TopSampler(settings_of(data, kafka, redis)), Watch()
    watch.take(sampler.take())

    def next_one() -> Activity:
        time.sleep(every)
        return watch.take(sampler.take())

    console = Console()
    if as_json or once or not console.is_terminal:
        while True:
            activity = next_one()
            if as_json:
                print(msgspec.json.encode(activity).decode(), flush=True)
            else:
                console.print(tables(activity))
            if once:
                return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(tables(next_one()), refresh=True)
