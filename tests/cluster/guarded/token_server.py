"""An OAuth 2 server of one client: its tokens, and the keys by which brokers check them."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.cluster.guarded.certificates import openssl

__all__ = ["token_server"]


@contextmanager
def token_server(folder: Path, client: str, secret: str) -> Iterator[str]:
    """Serve ``/token`` and ``/keys``; gives the address."""
    openssl(folder, "genrsa", "-out", "token.key", "2048")
    modulus = openssl(folder, "rsa", "-in", "token.key", "-noout", "-modulus").decode().strip().partition("=")[2]
    keys = {"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "e": "AQAB", "n": _url_text(bytes.fromhex(modulus))}]}
    who = ":".join(map(urllib.parse.quote_plus, (client, secret)))
    allowed = "Basic " + base64.b64encode(who.encode()).decode()

    def token() -> str:
        now = int(time.time())
        claims = {"sub": client, "aud": "kafka", "iss": "test", "scope": "kafka", "iat": now, "exp": now + 600}
        parts = ({"alg": "RS256", "kid": "1", "typ": "JWT"}, claims)
        text = ".".join(_url_text(json.dumps(part).encode()) for part in parts)
        return f"{text}.{_url_text(openssl(folder, 'dgst', '-sha256', '-sign', 'token.key', data=text.encode()))}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, keys)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Authorization"] == allowed:
                self._answer(200, {"access_token": token(), "token_type": "bearer", "expires_in": 600})
            else:
                self._answer(401, {"error": "invalid_client"})

        def _answer(self, status: int, answer: object) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _url_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
