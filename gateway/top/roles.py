"""The states of a prefix's roles and servers, from the notes of the roles in Redis."""

from __future__ import annotations

from typing import Any

from gateway.kafka import Topics
from gateway.local.launch import masked
from grouping.model.errors import OperationalError
from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.store.keys import LeaseTaker, role_title
from grouping.store.lease import Lease
from grouping.store.role_notes import RoleNote, RoleNotes

__all__ = ["running_roles"]


def running_roles(settings: Settings) -> dict[str, Any]:
    """Return the states of all roles and servers, and the figures that the roles report.

    The keys of the result are ``state``, ``roles``, ``addresses``, ``gateway`` and ``evaluated``. A server that does
    not answer is `silent`. If Redis does not answer, the gateway and the evaluator are missing in ``roles``.
    """
    roles: dict[str, dict[str, Any]] = {"kafka": {"state": "ready"}, "redis": {"state": "ready"}}
    reports: dict[str, dict[str, Any]] = {}
    try:
        Topics(settings).names()
    except OperationalError:
        roles["kafka"]["state"] = "silent"
    try:
        for role, name in _roles(settings):
            note, title = RoleNotes(settings).read(role, name), role_title(role, name)
            roles[title] = _role(note, held=Lease(settings, role, name).holder() is not None)
            reports[title] = {} if note is None else note.more
    except OperationalError:
        roles["redis"]["state"] = "silent"
    states = {each["state"] for each in roles.values()}
    ours = [each["state"] for title, each in roles.items() if title not in ("kafka", "redis")]
    down = bool(ours) and set(ours) == {"stopped"}
    gateway = reports.pop("gateway", {})
    urls = {"metrics_url": gateway.get("metrics_url")}
    urls |= {f"{title}_metrics_url": each.get("metrics_url") for title, each in reports.items()}
    servers = {"bootstrap": settings.kafka.bootstrap, "redis_url": masked(settings.redis.url.get_secret_value())}
    return {
        "state": "ready" if states == {"ready"} else "stopped" if down else "degraded",
        "roles": roles,
        "addresses": servers | {name: url for name, url in urls.items() if url},
        "gateway": gateway,
        "evaluated": reports.get("evaluator", {}).get("streams", {}),
    }


def _roles(settings: Settings) -> list[tuple[LeaseTaker, str]]:
    """Return the gateway and all evaluators. The gateway's note or, without it, the settings name the evaluators."""
    note = RoleNotes(settings).read("gateway")
    names = () if note is None else note.more.get("evaluators", ())
    return [("gateway", ""), *(("evaluator", name) for name in names or Assignment.of(settings).names)]


def _role(note: RoleNote | None, *, held: bool) -> dict[str, Any]:
    """Return a role's state.

    A role without a note that still holds its lease is `silent`: it hangs, starts, or waits for a server.
    """
    if note is None or not held:
        return {"state": "silent" if held else "stopped", "pid": None}
    return {
        "state": note.state,
        "pid": note.pid,
        "host": note.host,
        "uptime_seconds": (note.noted_ms - note.since_ms) // 1000,
        "last_error": note.last_error,
    }
