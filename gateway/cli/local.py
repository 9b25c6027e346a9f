"""`cq up` and `cq down`: start and stop everything on this machine, for one data folder."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import psutil
import typer

from gateway.cli.errors import TELLABLE, checked_address, error_line
from gateway.local.detach import detached
from gateway.local.launch import Launch
from gateway.local.run_folder import RunFolder
from gateway.local.sessions import supervised
from gateway.local.supervisor import Supervisor
from grouping.process.log_lines import log_to
from grouping.settings.addresses import check_redis_url, check_servers
from grouping.settings.given_settings import given_settings
from grouping.settings.settings import Settings

__all__ = ["Data", "down", "up"]

STOP_SECONDS = 90.0

Data = Annotated[Path | None, typer.Option("--data", help="Data folder.", show_default="cq-data")]


def up(
    data: Data = None,
    kafka: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="A Kafka that runs already.")] = None,
    redis: Annotated[str | None, typer.Option(metavar="URL", help="A Redis that runs already.")] = None,
    kafka_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the embedded Kafka; 0 for any.")] = 0,
    redis_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the embedded Valkey; 0 for any.")] = 0,
    detach: Annotated[bool, typer.Option("--detach", help="Return once everything is ready.")] = False,
) -> None:
    """Start the roles, and the servers that are not given, and keep them running."""
    settings = given_settings()
    run = _folder(data, settings)
    for address, check in ((kafka, check_servers), (redis, check_redis_url)):
        if address:
            checked_address(address, check)
    given = settings.redis.url.get_secret_value() if "url" in settings.redis.model_fields_set else None
    launch = Launch(
        settings=settings,
        kafka=kafka or (settings.kafka.bootstrap if "bootstrap" in settings.kafka.model_fields_set else None),
        redis=redis or given,
        kafka_port=kafka_port,
        redis_port=redis_port,
    )
    os.umask(0o077)  # roles and servers inherit this umask, so only this user can read their files
    run.prepare()
    # The download may take long and shows its progress, so it comes before the process goes to the background.
    launch.fetch()
    if detach:
        raise typer.Exit(detached(lambda tell: _supervise(launch, run, tell), run.log("supervisor"), _show))
    raise typer.Exit(_supervise(launch, run, _show))


def down(data: Data = None) -> None:
    """Stop the roles and servers that `cq up` has started for the data folder."""
    run = _folder(data, given_settings())
    pid = run.holder()
    if pid is None:
        print(f'nothing runs on "{run.data}"')
    else:
        supervisor = psutil.Process(pid)
        os.kill(pid, signal.SIGTERM)
        try:
            supervisor.wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            supervisor.kill()
        print("stopped")
    for process in supervised(run.data):  # a supervisor that was killed may have left processes
        process.kill()


def _supervise(launch: Launch, run: RunFolder, tell: Callable[[str], None]) -> int:
    """Run everything until a signal to stop comes, and return the exit code. An error is reported as one line."""
    log_to(sys.stderr, logging.WARNING, launch.settings.logs.form)
    try:
        with run.taken():
            stages, addresses = launch.stages(run)
            Supervisor(run, stages, addresses, tell, launch.settings).run()
    except TELLABLE as error:
        tell(error_line(error))
        return 1
    return 0


def _show(line: str) -> None:
    """Print a line: the line with the addresses to standard output, and all other lines to standard error."""
    print(line, file=sys.stdout if line.startswith("ready") else sys.stderr, flush=True)


def _folder(data: Path | None, settings: Settings) -> RunFolder:
    return RunFolder((data or settings.data).absolute())
