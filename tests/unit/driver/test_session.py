"""The Spark session, as far as no JVM is needed."""

from __future__ import annotations

import logging
import socket
import socketserver
import threading

import pytest

from spark_jobs.runtime.application.session import say_lost_connections_once


class _Reader(socketserver.StreamRequestHandler):
    """Reads a number, as the server of Spark's accumulators does."""

    def handle(self) -> None:
        if not self.rfile.read(4):
            raise EOFError


def test_a_jvm_that_dies_costs_a_line(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """A connection that ends in the middle is told in the log, and no stack trace is printed."""
    with socketserver.TCPServer(("127.0.0.1", 0), _Reader) as server, caplog.at_level(logging.WARNING):
        say_lost_connections_once(server)
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        socket.create_connection(server.server_address).close()  # type: ignore[arg-type]  # of IPv4
        serving.join()
    assert [record.message for record in caplog.records] == ["the JVM has left a connection"]
    assert capfd.readouterr().err == ""
