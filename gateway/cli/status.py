"""`cq status`: shows the roles of a data folder, or the roles that use given servers, and their progress."""

from __future__ import annotations

import importlib.metadata
import json
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

import psutil
import typer

from gateway.cli.local import Data
from gateway.cli.running import Kafka, Redis, settings_of
from gateway.local.run_folder import RunFolder
from gateway.local.status_file import recovery_line
from gateway.local.supervisor import supervised_state
from grouping.model.wording import counted
from grouping.settings.given_settings import given_settings
from grouping.settings.settings import Settings

__all__ = ["local_answer", "servers_are_elsewhere", "status", "version"]


def status(
    data: Data = None,
    kafka: Kafka = None,
    redis: Redis = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the roles of a data folder or of given servers. The exit code is 0 only if all roles are ready."""
    settings = given_settings()
    run = RunFolder((data or settings.data).absolute())
    if kafka or redis or (data is None and servers_are_elsewhere(settings, run)):
        from gateway.top.roles import running_roles  # imported here, so that other commands start faster

        answer = _answer(**running_roles(settings_of(data, kafka, redis)))
    else:
        answer = local_answer(run)
        if not as_json and not run.data.is_dir():
            print(f'there is no data folder "{run.data}"')
            raise typer.Exit(1)
    if as_json:
        print(json.dumps(answer))
    else:
        _show(answer)
    raise typer.Exit(0 if answer["state"] == "ready" else 1)


def servers_are_elsewhere(settings: Settings, run: RunFolder) -> bool:
    """Tell whether the environment names a Kafka, and no supervisor ever ran on the folder, as in a container."""
    return "bootstrap" in settings.kafka.model_fields_set and not run.state.exists()


def version() -> str:
    """Return the installed version of the product."""
    return importlib.metadata.version("cq-gateway")


def local_answer(run: RunFolder) -> dict[str, Any]:
    """Return the roles of a data folder, in the form that ``--json`` prints."""
    report, holder = run.read(run.state), run.holder()
    known = {name: run.read(run.status(name)) for name in ("gateway", "evaluator")}
    if holder is None:
        roles: dict[str, dict[str, Any]] = report.get("roles", {})
        gone = {name: {**role, "state": "stopped", "pid": None} for name, role in roles.items()}
        return _answer("stopped", gone, {}, {}, {})
    state = supervised_state(report, holder, time.monotonic())
    roles = {
        name: {**role, "uptime_seconds": _uptime(role["pid"]), **_role_fields(known.get(name, {}))}
        for name, role in state["roles"].items()
    }
    addresses = {name: each for name, each in run.read(run.endpoints).items() if name != "pids" and each}
    return _answer(state["state"], roles, addresses, known["gateway"], known["evaluator"].get("streams", {}))


def _role_fields(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields from a role's report that `cq status` shows in addition to the role's state."""
    recovery = {"recovery": report["recovery"]} if "recovery" in report else {}
    return {"last_error": report.get("last_error"), **recovery}


def _answer(
    state: str,
    roles: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    gateway: Mapping[str, Any],
    evaluated: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the answer. Its state is ``ready`` only if all roles are ready and all streams are evaluated.

    Args:
        state: The state of all roles together.
        roles: Name of a role → its fields.
        addresses: Name → address.
        gateway: The gateway's report on streams and tables.
        evaluated: The evaluator's report on streams.
    """
    streams: dict[str, dict[str, Any]] = gateway.get("streams", {})
    tables: dict[str, dict[str, Any]] = gateway.get("tables", {})
    for name, stream in streams.items():
        reason = evaluated.get(name, {}).get("reason")
        if reason is not None:
            stream["reason"] = reason
        if "reason" in stream:
            state = "degraded" if state == "ready" else state
    totals = {name: sum(stream.get(name, 0) for stream in streams.values()) for name in ("cqs", "groups")}
    return {
        "state": state,
        "version": version(),
        "roles": roles,
        "addresses": addresses,
        "totals": {**totals, "streams": len(streams), "tables": len(tables)},
        "streams": streams,
        "tables": tables,
    }


def _uptime(pid: int | None) -> int | None:
    """Return for how many seconds a process has run; None if there is no process."""
    try:
        return None if pid is None else round(time.time() - psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return None


def _show(answer: Mapping[str, Any]) -> None:
    totals = answer["totals"]
    print(f"{answer['state']}  (version {answer['version']})")
    width = max([10, *map(len, answer["roles"])])
    for name, role in answer["roles"].items():
        print(f"  {name:<{width}} {role['state']:<10} {_process(role)}")
        if line := recovery_line(role):
            print(f"    {line}")
        if error := role.get("last_error"):
            print(f"    {error['level'].lower()} at {error['at']}: {error['message']}")
    for name, address in answer["addresses"].items():
        print(f"  {name} {address}")
    if totals["streams"]:
        where = f"{counted(totals['streams'], 'stream')}, {counted(totals['tables'], 'table')}"
        print(f"  {counted(totals['cqs'], 'CQ')} in {counted(totals['groups'], 'group')} over {where}")
    for name, stream in answer["streams"].items():
        waiting = (
            f", {counted(count, 'digest')} waiting for disk space" if (count := stream.get("digests_waiting")) else ""
        )
        cqs = "" if "cqs" not in stream else f"{counted(stream['cqs'], 'CQ')}, "
        since = f" ({seconds} s)" if (seconds := stream.get("seconds_behind")) else ""
        who = f", by {evaluator}" if (evaluator := stream.get("evaluator")) else ""
        lane = ", in the lane" if stream.get("lane") else ""
        print(f"  stream {name}: {cqs}{counted(stream['behind'], 'event')} behind{since}{waiting}{who}{lane}")
        if "reason" in stream:
            print(f"    not evaluated: {stream['reason']}")
        for warning in stream.get("warnings", ()):
            print(f"    {warning}")
        for share, why in stream.get("quarantined", {}).items():
            print(f"    {share} has not been evaluated since {why['since']}: {why['reason']}")
    for name, table in answer["tables"].items():
        print(f"  table {name}: {_table_line(table)}")
        for warning in table.get("warnings", ()):
            print(f"    {warning}")


def _process(role: Mapping[str, Any]) -> str:
    """Return the line about a role's process, with the known fields. With given servers, few fields are known."""
    shown = []
    if "pid" in role:
        shown.append(f"pid {role['pid'] or '-'}")
    if "host" in role:
        shown.append(f"on {role['host']}")
    if "restarts" in role:
        shown.append(f"restarts {role['restarts']}")
    if role.get("uptime_seconds") is not None:
        shown.append(f"up {timedelta(seconds=role['uptime_seconds'])}")
    return "  ".join(shown)


def _table_line(table: Mapping[str, Any]) -> str:
    """Return the line about a table: its state and, if a worker has its rows in memory, its size."""
    if table["rows"] is None:
        return str(table["state"])
    changes = "" if table["lag"] is None else f", {counted(table['lag'], 'change')} to be read"
    return f"{table['state']}, {counted(table['rows'], 'row')} ({table['bytes'] / 1e6:,.1f} MB in each worker){changes}"
