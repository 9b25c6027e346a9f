"""Answers of a registry of schemas that are broken in any byte, or hold a hostile schema."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from grouping.process.schema_registry import SchemaAway, SchemaRegistry
from tests.fuzz.declarations import hostile_schema
from tests.fuzz.mutations import broken_bytes
from tests.fuzz.record_kinds import record_kinds
from tests.fuzz.record_mutations import broken_json
from tests.fuzz.record_outcomes import mixed_records, outcomes, records_batch
from tests.unit.schemas.test_schema_ids import FIRST
from tests.unit.worker.avro_records import record_schema

__all__ = ["registry_refusal"]

_ID = 1
_HEADERS = (
    b"Content-Type: application/vnd.schemaregistry.v1+json", b"Content-Type: text/html", b"Content-Encoding: gzip",
    b"Transfer-Encoding: chunked", b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Location: http://x/",
    b"X: " + b"x" * 70_000, b"\xff: \xff", b"no colon", b" folded", b"Connection: keep-alive",
)  # fmt: skip
_STATUS = (b"200 OK", b"200", b"404 Not Found", b"301 Moved", b"500 Error", b"100 Continue", b"999 ?", b"-1 ?", b"")


def registry_refusal(rng: random.Random) -> str | None:
    """Ask a registry that answers nonsense. Return the refusal; None if records were decoded with its schema."""
    with _served(_answer(rng)) as url:
        try:
            found = SchemaRegistry(url).schema(_ID)
        except SchemaAway as error:
            return error.message.replace(url, "")
    kind = record_kinds()["avro writers"]
    schemas = msgspec.UNSET if found is None else f'{{"{_ID}": {found}}}'
    stream = msgspec.structs.replace(kind.source, schemas=schemas, registry="http://registry")
    outcomes(stream, records_batch([*kind.records, *mixed_records(rng, kind, 2)]))
    return None


def _answer(rng: random.Random) -> bytes:
    """Return the bytes of an answer: half of them are well-formed HTTP."""
    schema = record_schema(FIRST)
    if rng.random() < 0.7:
        schema = rng.choice((hostile_schema(rng), broken_json(rng, schema.encode()).decode("utf-8", "replace")))
    body = json.dumps({"schema": schema}).encode()
    roll = rng.random()
    if roll < 0.3:
        body = broken_json(rng, body)
    elif roll < 0.4:
        body = broken_json(rng, b'{"error_code": 40403, "message": "", "schemaType": "AVRO", "references": []}')
    elif roll < 0.5:
        body = broken_bytes(rng, body)
    if rng.random() < 0.5:
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    headers = b"".join(rng.choice(_HEADERS) + b"\r\n" for _ in range(rng.choice((0, 1, 2, 150))))
    answer = b"HTTP/1.1 " + rng.choice(_STATUS) + b"\r\n" + headers + b"\r\n" + body
    return broken_bytes(rng, answer) if rng.random() < 0.5 else answer


@contextmanager
def _served(answer: bytes) -> Iterator[str]:
    """Serve one request with these bytes, and close the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    connection.recv(65_536)
                    connection.sendall(answer)
                except OSError:
                    pass  # the client has left

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join()
