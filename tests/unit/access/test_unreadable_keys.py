"""Unreadable keys for tokens: the gateway logs the reason, and the readable keys stay in use."""

from __future__ import annotations

import logging
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from gateway.access.key_url import KeyUrl
from gateway.access.keys import KeyFile
from grouping.model.errors import OperationalError

_ED25519 = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----
"""
_SECT113R1 = """-----BEGIN PUBLIC KEY-----
MDQwEAYHKoZIzj0CAQYFK4EEAAQDIAAEAXGRQhMDPz316BHwdPOhAaLC197ZASu1
3BBLqDIt
-----END PUBLIC KEY-----
"""
"""A key of a curve unknown to the library."""


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


@pytest.mark.parametrize("text", [_SECT113R1, "rubbish"])
def test_an_unreadable_file_of_a_folder(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """While the gateway runs, the readable keys of the folder stay; at the start, the refusal names the file."""
    (tmp_path / "alice.pem").write_text(_ED25519)
    file = KeyFile(tmp_path)
    (tmp_path / "bob.pem").write_text(text)
    (tmp_path / "carol.pem").write_text(_ED25519)
    with caplog.at_level(logging.ERROR, "gateway.access.keys"):
        file.refresh(1000)
    assert ["alice", "carol"] == list(file.keys)
    assert ['"bob.pem" is not a public key'] == [vars(record)["reason"] for record in caplog.records]
    with pytest.raises(OperationalError) as raised:
        KeyFile(tmp_path)
    assert '"bob.pem" is not a public key' == raised.value.detail


def test_a_key_set_that_is_nested_too_deeply(tmp_path: Path) -> None:
    """The gateway does not start with a key set nested too deeply for the JSON reader."""
    file = tmp_path / "keys.json"
    file.write_text('{"keys": [{"k": ' + "[" * 100_000)
    with pytest.raises(OperationalError, match="cannot be read"):
        KeyFile(file)
