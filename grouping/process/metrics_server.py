"""The HTTP endpoints of a role: metrics (`/metrics`), liveness (`/healthz`) and readiness (`/readyz`)."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import REGISTRY, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from grouping.model.errors import OperationalError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["SILENT_SECONDS", "MetricsServer", "RoleMetric", "RoleState"]

SILENT_SECONDS = 10.0
"""A role that has reported nothing for this number of seconds is considered to be hanging or ended."""
_ROLE_TEXT = "1 for the state that the role has (`active`, `standby`, `waiting`), else 0"
_KINDS = ("active", "standby", "waiting")
_CONNECTIONS = 16
"""The largest number of simultaneous connections. Each connection takes a thread of the role."""
_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - the operator's choice, recognised here


class RoleState:
    """The last reported state of a role, and the time of the report."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin as `starting`.

        Args:
            clock: Monotonic seconds.
        """
        self._clock = clock
        self.tell("starting")

    def tell(self, state: str) -> None:
        """Note the state of the role, which is reported now."""
        self.state = state
        self.still()

    def still(self) -> None:
        """Note that the role still has the state, so that the report is not too old."""
        self._reported_at = self._clock()

    @property
    def kind(self) -> str:
        """``active``, ``standby``, or ``waiting``: the role starts, waits for a server or for the lease, or hangs."""
        fine, report = self.probe()
        return {"ready": "active", "standby": "standby"}.get(report["state"], "waiting") if fine else "waiting"

    def probe(self, states: Collection[str] = ()) -> tuple[bool, dict[str, Any]]:
        """Return whether the role is alive (and in one of the given states, if any), and the body of the answer.

        Example:
            >>> RoleState(lambda: 7.0).probe(["ready"])
            (False, {'state': 'starting', 'told_seconds_ago': 0.0})
        """
        age = self._clock() - self._reported_at
        fine = age <= SILENT_SECONDS and (self.state in states or not states)
        return fine, {"state": self.state, "told_seconds_ago": round(age, 1)}


class MetricsServer:
    """An HTTP server. The server runs in threads of its own until it is closed."""

    def __init__(
        self,
        address: str,
        port: int,
        state: RoleState,
        registry: CollectorRegistry = REGISTRY,
        *,
        role: str = "",
        connection_seconds: float = 5.0,
    ) -> None:
        """Listen.

        Args:
            address: The address to listen on; empty or 0.0.0.0 for every address of the machine.
            port: The port; 0 for any free port.
            state: The state for the probes.
            registry: The metrics.
            role: The label of the metric ``cq_role``. Without a role, the server has no metric ``cq_role``.
            connection_seconds: The longest duration of a connection. A slower client is cut off.

        Raises:
            OperationalError: The machine does not have the address, or the port is taken.
        """
        self._state = state
        served = CollectorRegistry(auto_describe=False)
        if role:
            served.register(RoleMetric(state, role))
        served.register(registry)
        self._metrics = make_wsgi_app(served)
        try:
            self._server = make_server(address, port, self._answer, _Server, _Handler)
        except OSError as error:
            raise OperationalError(
                f"metrics cannot be served at {address}:{port}: {(error.strerror or str(error)).lower()}",
                hint="Give another address or port: CQ_METRICS_ADDRESS, CQ_METRICS_PORT, CQ_METRICS_EVALUATOR_PORT.",
            ) from error
        self._server.connection_seconds = connection_seconds
        host = "127.0.0.1" if address in _EVERY_ADDRESS else address
        self.url = f"http://{host}:{self._server.server_port}/metrics"
        """The address of the metrics on this machine."""
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            body: Iterable[bytes] = self._metrics(environ, start_response)
            return body
        if path not in ("/healthz", "/readyz"):
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"/metrics, /healthz, /readyz, /readyz?standby\n"]
        standby = environ.get("QUERY_STRING") == "standby"
        fine, report = self._state.probe(() if path == "/healthz" else ("ready", "standby") if standby else ("ready",))
        start_response("200 OK" if fine else "503 Service Unavailable", [("Content-Type", "application/json")])
        return [json.dumps(report).encode() + b"\n"]

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class RoleMetric(Collector):
    """``cq_role``: 1 for the present state of a role, 0 for its other states."""

    def __init__(self, state: RoleState, role: str) -> None:
        """Serve the state of a role, with the label ``role``."""
        self._state = state
        self._role = role

    def collect(self) -> Iterable[Metric]:
        """Return the present values of the metric."""
        gauge = GaugeMetricFamily("cq_role", _ROLE_TEXT, labels=["role", "state"])
        present = self._state.kind
        for kind in _KINDS:
            gauge.add_metric([self._role, kind], float(kind == present))
        yield gauge


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    connection_seconds = 5.0

    def __init__(self, *arguments: Any) -> None:
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread, or close the connection at once if there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, and cut the connection off if it lasts too long."""
        limit = threading.Timer(self.connection_seconds, _cut_off, [request])
        limit.daemon = True
        limit.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            limit.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write nothing, since a closed connection is no error of the role."""


def _cut_off(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Write nothing, since requests come every few seconds."""
