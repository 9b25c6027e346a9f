"""Keys for tokens that cannot be read: the reason is logged, and other keys stay in use."""

from __future__ import annotations

import logging
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from gateway.access.key_url import KeyUrl


class _BrokenIssuer(BaseHTTPRequestHandler):
    """An issuer whose answers are given byte by byte."""

    answers: ClassVar[list[bytes]] = [
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"keys"',
        b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"keys"',
        b"\x1b[2J\xff\r\n\r\n",
        b'HTTP/1.1 200 OK\r\n\r\n{"keys": ' + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\n\r\n\xff",
        b"",
    ]

    def do_GET(self) -> None:
        """Write the next answer."""
        self.wfile.write(self.answers.pop(0))

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


def test_no_answer_of_an_issuer_ends_the_reading(caplog: pytest.LogCaptureFixture) -> None:
    """The reason is logged without control characters, and the keys are read again ten seconds later."""
    count = len(_BrokenIssuer.answers)
    with HTTPServer(("127.0.0.1", 0), _BrokenIssuer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        keys = KeyUrl(f"http://127.0.0.1:{server.server_port}/jwks", "https://issuer")
        with caplog.at_level(logging.WARNING, "gateway.access.key_url"):
            assert [10.0] * count == [keys.read_or_log() for _ in range(count)]
        server.shutdown()
    assert count == len(caplog.records)
    assert all(str(vars(record)["reason"]).isprintable() for record in caplog.records)
