"""The roles of a prefix and their servers, as one sees them from anywhere: by what they note in Redis."""

from __future__ import annotations

from typing import Any

from gateway.kafka import Topics
from gateway.local.launch import masked
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.keys import Role
from grouping.store.lease import Lease
from grouping.store.role_notes import RoleNote, RoleNotes

__all__ = ["told_roles"]

_ROLES: tuple[Role, ...] = ("gateway", "evaluator")


def told_roles(settings: Settings) -> dict[str, Any]:
    """Return the state of all roles (``state``, ``roles``), ``addresses``, and what the roles told of their work.

    A server that does not answer is `silent`; without Redis nobody knows of gateway and evaluator.
    """
    roles: dict[str, dict[str, Any]] = {"kafka": {"state": "ready"}, "redis": {"state": "ready"}}
    notes: dict[str, RoleNote | None] = dict.fromkeys(_ROLES)
    try:
        Topics(settings).names()
    except OperationalError:
        roles["kafka"]["state"] = "silent"
    try:
        for role in _ROLES:
            notes[role] = note = RoleNotes(settings).told(role)
            roles[role] = _role(note, held=Lease(settings, role).holder() is not None)
    except OperationalError:
        roles["redis"]["state"] = "silent"
    states = {each["state"] for each in roles.values()}
    down = all(roles.get(role, {}).get("state") == "stopped" for role in _ROLES)
    gateway, evaluator = ({} if note is None else note.more for note in notes.values())
    urls = {"metrics_url": gateway.get("metrics_url"), "evaluator_metrics_url": evaluator.get("metrics_url")}
    servers = {"bootstrap": settings.kafka.bootstrap, "redis_url": masked(settings.redis.url.get_secret_value())}
    return {
        "state": "ready" if states == {"ready"} else "stopped" if down else "degraded",
        "roles": roles,
        "addresses": servers | {name: url for name, url in urls.items() if url},
        "gateway": gateway,
        "evaluated": evaluator.get("streams", {}),
    }


def _role(note: RoleNote | None, *, held: bool) -> dict[str, Any]:
    """Return a role's state; one that holds its lease and tells nothing hangs, starts, or waits for a server."""
    if note is None or not held:
        return {"state": "silent" if held else "stopped", "pid": None}
    return {
        "state": note.state,
        "pid": note.pid,
        "host": note.host,
        "uptime_seconds": (note.told_ms - note.since_ms) // 1000,
        "last_error": note.last_error,
    }
