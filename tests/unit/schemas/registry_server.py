"""A small registry of schemas for tests, on a free port of the loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Answer", "NOT_FOUND", "Registry", "registry", "schema_answer"]

Answer = Callable[[BaseHTTPRequestHandler], None]
"""Answers a request by itself: slowly, wrongly, or not at all."""


def schema_answer(schema: object, **more: object) -> tuple[int, bytes]:
    """Return the answer of a registry that has a schema."""
    return 200, json.dumps({"schema": json.dumps(schema), **more}).encode()


NOT_FOUND = 404, b'{"error_code": 40403, "message": "Schema not found"}'


class Registry:
    """The answers of a registry, and the requests that it got."""

    def __init__(self) -> None:
        """Begin without schemas."""
        self.url = ""
        self.answers: dict[str, tuple[int, bytes] | Answer] = {}
        """By path; a further path is that of an unknown id."""
        self.requests: list[tuple[str, str | None]] = []
        """Paths, with the header Authorization."""

    def put(self, schema_id: int, answer: tuple[int, bytes] | Answer) -> None:
        """Set the answer for an id."""
        self.answers[f"/schemas/ids/{schema_id}"] = answer


@contextmanager
def registry() -> Iterator[Registry]:
    """Serve a registry."""
    known = Registry()

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.requests.append((self.path, self.headers.get("Authorization")))
            answer = known.answers.get(self.path, NOT_FOUND)
            if callable(answer):
                answer(self)
                return
            status, body = answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    known.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield known
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
