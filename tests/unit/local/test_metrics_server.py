"""Metrics and health of a role over HTTP."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, Counter

from grouping.model.errors import OperationalError
from grouping.process.metrics_server import SILENT_SECONDS, MetricsServer, RoleState

_now = [100.0]


@pytest.fixture
def state() -> RoleState:
    """A role whose clock stands."""
    _now[0] = 100.0
    return RoleState(lambda: _now[0])


@pytest.fixture
def server(state: RoleState) -> Iterator[MetricsServer]:
    """A server with one metric."""
    registry = CollectorRegistry()
    Counter("cq_things", "things", registry=registry).inc(3)
    server = MetricsServer("127.0.0.1", 0, state, registry)
    yield server
    server.close()


def _get(server: MetricsServer, path: str) -> tuple[int, str]:
    try:
        with urlopen(server.url.replace("/metrics", path)) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def _probe(server: MetricsServer, path: str) -> tuple[int, dict[str, Any]]:
    code, body = _get(server, path)
    return code, json.loads(body)


def test_metrics_are_served(server: MetricsServer) -> None:
    """At their path alone."""
    code, body = _get(server, "/metrics")
    assert code == 200
    assert "cq_things_total 3.0" in body
    assert 404 == _get(server, "/")[0]


def test_a_role_that_starts_lives_and_is_not_ready(server: MetricsServer, state: RoleState) -> None:
    """Readiness follows the state that the role tells."""
    assert (200, {"state": "starting", "told_seconds_ago": 0.0}) == _probe(server, "/healthz")
    assert 503 == _probe(server, "/readyz")[0]
    state.tell("ready")
    assert 200 == _probe(server, "/readyz")[0]
    state.tell("waiting")
    assert (503, "waiting") == (_probe(server, "/readyz")[0], _probe(server, "/readyz")[1]["state"])
    assert 200 == _probe(server, "/healthz")[0]


def test_a_standby_is_ready_for_who_asks_so(server: MetricsServer, state: RoleState) -> None:
    """A rollout of two gateways waits for an active or standby gateway, not for a starting one."""
    for name, codes in {
        "starting": (503, 503),
        "standby": (503, 200),
        "ready": (200, 200),
        "waiting": (503, 503),
    }.items():
        state.tell(name)
        assert codes == (_probe(server, "/readyz")[0], _probe(server, "/readyz?standby")[0]), name
    state.tell("standby")
    _now[0] += SILENT_SECONDS + 1
    assert 503 == _probe(server, "/readyz?standby")[0]


def test_a_role_that_tells_nothing_any_more_is_not_alive(server: MetricsServer, state: RoleState) -> None:
    """The role may hang; a sign of life restores its state."""
    state.tell("ready")
    _now[0] += SILENT_SECONDS + 1
    assert (503, {"state": "ready", "told_seconds_ago": 11.0}) == _probe(server, "/healthz")
    assert 503 == _probe(server, "/readyz")[0]
    state.still()
    assert 200 == _probe(server, "/readyz")[0]


def test_the_kind_of_a_role_is_a_metric(state: RoleState) -> None:
    """Alerts use `cq_role`, with one kind per role at a time; a role that hangs is waiting."""
    server = MetricsServer("127.0.0.1", 0, state, CollectorRegistry(), role="gateway")
    kinds = ("active", "standby", "waiting")

    def active() -> list[str]:
        lines = _get(server, "/metrics")[1].splitlines()
        values = {kind: f'cq_role{{role="gateway",state="{kind}"}}' for kind in kinds}
        return [kind for kind, name in values.items() if f"{name} 1.0" in lines and len(lines) >= len(kinds)]

    for name, kind in {"starting": "waiting", "standby": "standby", "ready": "active", "waiting": "waiting"}.items():
        state.tell(name)
        assert [kind] == active(), name
    state.tell("ready")
    _now[0] += SILENT_SECONDS + 1
    assert ["waiting"] == active()
    server.close()


def test_a_port_that_is_taken_is_one_line(server: MetricsServer, state: RoleState) -> None:
    """The error for two roles on the same port names the settings to change."""
    port = int(server.url.split(":")[2].split("/")[0])
    with pytest.raises(OperationalError, match="cannot be served") as refused:
        MetricsServer("127.0.0.1", port, state)
    assert "CQ_METRICS_PORT" in (refused.value.hint or "")


def test_slow_clients_take_few_threads(state: RoleState) -> None:
    """Sixteen connections are open at one time, and each is cut off after a while; then others are answered again."""
    server = MetricsServer("127.0.0.1", 0, state, CollectorRegistry(), connection_seconds=0.5)
    port = int(urlsplit(server.url).port or 0)
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for each in slow:
        each.settimeout(10)
    assert [b""] * 20 == [each.recv(1) for each in slow], "the gateway ended all of them"
    for each in slow:
        each.close()
    assert 200 == _get(server, "/metrics")[0]
    server.close()
