"""`cq up`, `cq down` and `cq status`: everything on this machine, on one data folder."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from gateway.cli.errors import TELLABLE, error_line
from gateway.local.detach import detached
from gateway.local.launch import Launch
from gateway.local.run_folder import RunFolder
from gateway.local.sessions import supervised
from gateway.local.supervisor import Supervisor, told_state
from grouping.given_settings import given_settings
from grouping.log_lines import log_to
from grouping.model.wording import counted
from grouping.settings import Settings

__all__ = ["Data", "down", "status", "up"]

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
    """Start everything that is not given, and keep it running."""
    settings = given_settings()
    run = _folder(data, settings)
    given = settings.redis.url.get_secret_value() if "url" in settings.redis.model_fields_set else None
    launch = Launch(
        settings=settings,
        kafka=kafka or (settings.kafka.bootstrap if "bootstrap" in settings.kafka.model_fields_set else None),
        redis=redis or given,
        kafka_port=kafka_port,
        redis_port=redis_port,
    )
    run.prepare()
    launch.fetch()  # before going to the background: it may take a while, and shows how far it is
    if detach:
        raise typer.Exit(detached(lambda tell: _supervise(launch, run, tell), run.log("supervisor"), _show))
    raise typer.Exit(_supervise(launch, run, _show))


def down(data: Data = None) -> None:
    """Stop what `cq up` has started on the folder."""
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
    for process in supervised(run.data):  # of a supervisor that could not see to it
        process.kill()


def status(data: Data = None, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Tell what runs on the folder; the exit code is 0 only when everything is ready."""
    run = _folder(data, given_settings())
    answer = _status(run)
    if as_json:
        print(json.dumps(answer))
    elif not run.data.is_dir():
        print(f'there is no data folder "{run.data}"')
    else:
        print(f"{answer['state']}  (version {answer['version']})")
        for name, role in answer["roles"].items():
            up = "" if role.get("uptime_seconds") is None else f"  up {timedelta(seconds=role['uptime_seconds'])}"
            print(f"  {name:<10} {role['state']:<10} pid {role['pid'] or '-'}  restarts {role['restarts']}{up}")
        for name, address in answer["addresses"].items():
            print(f"  {name} {address}")
        for name, stream in answer["streams"].items():
            waiting = (
                f", {counted(count, 'digest')} waiting for room" if (count := stream.get("digests_waiting")) else ""
            )
            cqs = "" if "cqs" not in stream else f"{counted(stream['cqs'], 'CQ')}, "
            since = f" ({seconds} s)" if (seconds := stream.get("seconds_behind")) else ""
            print(f"  stream {name}: {cqs}{counted(stream['behind'], 'event')} behind{since}{waiting}")
            if "reason" in stream:
                print(f"    does not go on: {stream['reason']}")
            for share, why in stream.get("quarantined", {}).items():
                print(f"    {share} is not evaluated since {why['since']}: {why['reason']}")
        for name, table in answer["tables"].items():
            print(f"  table {name}: {_table_line(table)}")
    raise typer.Exit(0 if answer["state"] == "ready" else 1)


def _status(run: RunFolder) -> dict[str, Any]:
    told = run.read(run.state)
    holder = run.holder()
    if holder is None:
        roles: dict[str, dict[str, Any]] = told.get("roles", {})
        gone = {name: {**role, "state": "stopped", "pid": None} for name, role in roles.items()}
        return {"state": "stopped", "version": version(), "roles": gone, "addresses": {}, "streams": {}, "tables": {}}
    gateway = run.read(run.status("gateway"))
    state = told_state(told, holder, time.monotonic())
    answer = {
        "state": state["state"],
        "version": version(),
        "roles": {name: {**role, "uptime_seconds": _uptime(role["pid"])} for name, role in state["roles"].items()},
        "addresses": {name: each for name, each in run.read(run.endpoints).items() if name != "pids" and each},
        "streams": gateway.get("streams", {}),
        "tables": gateway.get("tables", {}),
    }
    return _with_failures(answer, run.read(run.status("evaluator")).get("streams", {}))


def version() -> str:
    """Return the version that is installed."""
    return importlib.metadata.version("cq-gateway")


def _uptime(pid: int | None) -> int | None:
    """Return how many seconds a process has run, None where there is none."""
    try:
        return None if pid is None else round(time.time() - psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return None


def _with_failures(answer: dict[str, Any], evaluated: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Add why streams are not evaluated, as the evaluator tells it; while one is not, not everything is ready."""
    for name, stream in answer["streams"].items():
        reason = evaluated.get(name, {}).get("reason")
        if reason is not None:
            stream["reason"] = reason
            answer["state"] = "degraded" if answer["state"] == "ready" else answer["state"]
    return answer


def _table_line(table: dict[str, Any]) -> str:
    """Return a table's state, and its size where a worker holds it."""
    if table["rows"] is None:
        return str(table["state"])
    changes = "" if table["lag"] is None else f", {counted(table['lag'], 'change')} to be read"
    return f"{table['state']}, {counted(table['rows'], 'row')} ({table['bytes'] / 1e6:,.1f} MB in each worker){changes}"


def _supervise(launch: Launch, run: RunFolder, tell: Callable[[str], None]) -> int:
    """Run until told to stop; return the exit code, after telling in one line what was wrong."""
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
    """Show a line: the one with the addresses is the answer, all others are beside it."""
    print(line, file=sys.stdout if line.startswith("ready") else sys.stderr, flush=True)


def _folder(data: Path | None, settings: Settings) -> RunFolder:
    return RunFolder((data or settings.data).absolute())
