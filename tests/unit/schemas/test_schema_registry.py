"""Schemas of a registry: its answers, hanging and lying registries, and replays."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from threading import Event

import msgspec
import pytest

from gateway.topics.source_policy import check_registry
from grouping.model.errors import InputError
from grouping.process.schema_registry import SchemaAway, SchemaRegistry
from grouping.settings.registries import allowed_registries, registry_url
from grouping.settings.settings import Settings, StreamSettings
from grouping.statements.command import parse
from grouping.store.task_notes import UnknownIds
from spark_jobs.runtime.streams.worker_deaths import failure_reason
from tests.unit.schemas.decoding_worker import DecodingWorker, MemoryNotes
from tests.unit.schemas.registry_server import Registry, registry, schema_answer
from tests.unit.schemas.test_schema_ids import FIRST, SECOND, written

SCHEMA = {"type": "record", "name": "Q", "fields": [{"name": "symbol", "type": "string"}]}


@pytest.fixture
def server() -> Iterator[Registry]:
    """A registry that runs."""
    with registry() as known:
        yield known


def test_answers(server: Registry) -> None:
    """A schema, a reason why it cannot be used, or nothing for an unknown id."""
    server.put(1, schema_answer(SCHEMA))
    server.put(2, schema_answer("message M {}", schemaType="PROTOBUF"))
    server.put(3, schema_answer(SCHEMA, references=[{"name": "x"}]))
    server.put(4, (200, b'{"schema": "{"}'))
    server.put(5, (200, b'{"schema": "{\\"a\\": 1, \\"a\\": 2}"}'))
    known = SchemaRegistry(server.url)
    assert SCHEMA == msgspec.json.decode(known.schema(1) or "")
    assert "The schema with id 2 is not of Avro: the registry has it as PROTOBUF." in (known.schema(2) or "")
    assert "refers to other schemas" in (known.schema(3) or "")
    assert "cannot be read: The JSON does not parse" in (known.schema(4) or "")
    assert "a name is given twice" in (known.schema(5) or "")
    assert known.schema(6) is None
    assert ("/schemas/ids/6", None) == server.requests[-1]


def test_login(server: Registry) -> None:
    """The login goes to the registry, and into no message."""
    server.put(1, (401, b"{}"))
    with pytest.raises(SchemaAway) as away:
        SchemaRegistry(server.url, "ann:h%40sh").schema(1)
    assert "its answer has the status 401" in away.value.line
    assert "h@sh" not in away.value.line and "h%40sh" not in away.value.line
    assert ("/schemas/ids/1", "Basic YW5uOmhAc2g=") == server.requests[-1]


def _redirect(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(302)
    handler.send_header("Location", "/schemas/ids/1")
    handler.end_headers()


def _drip(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    ended = Event()
    while not ended.wait(0.05):
        try:
            handler.wfile.write(b" ")
        except OSError:
            ended.set()


def _drip_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    ended = Event()
    while not ended.wait(0.05):
        try:
            handler.wfile.write(b"x")
        except OSError:
            ended.set()


def _escape(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"\x1b[31m" + str(handler.headers["Authorization"]).encode() + b"\r\n\r\n")


def _silent(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.settimeout(30)
    handler.connection.recv(1)  # returns when the client has left


def _endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    ended = False
    while not ended:
        try:
            handler.wfile.write(b" " * 65_536)
        except OSError:
            ended = True


def _drop(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((500, b"{}"), "status 500"),
        ((404, b"<html>"), "status 404 and no JSON"),
        ((404, b'{"error_code": 404}'), "status 404"),
        ((200, b"[]"), "no JSON of a schema"),
        ((200, b"{}"), "no JSON of a schema"),
        ((200, b'{"schema": 7}'), "no JSON of a schema"),
        ((200, b"[" * 100_000), "no JSON of a schema"),
        ((200, b'"' + b"x" * (1 << 19)), "is longer than"),
        (_redirect, "status 302"),
        (_drip, "no complete answer within 2 seconds"),
        (_drip_headers, "no complete answer within 2 seconds"),
        (_escape, "its answer is not complete HTTP .BadStatusLine.$"),
        (_silent, "no complete answer within 2 seconds|timed out"),
        (_endless, "is longer than"),
        (_drop, "does not give schema 7: "),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)[:20]),
)
def test_a_registry_that_lies_or_hangs(server: Registry, answer: object, words: str) -> None:
    """Each answer that is no registry's is refused within a bounded time, and names the registry."""
    server.put(1, schema_answer(SCHEMA))
    server.put(7, answer)  # type: ignore[arg-type]
    began = time.monotonic()
    with pytest.raises(SchemaAway, match=words) as away:
        SchemaRegistry(server.url).schema(7)
    assert time.monotonic() - began < 4
    assert away.value.message.startswith(f'registry "{server.url}" does not give schema 7: ')
    assert failure_reason(f"x.SchemaAway: {away.value.message}") == away.value.message
    assert 1 == len(server.requests)


A = written(1, {"symbol": "a", "price": 0.5, "n": 7})
B = written(2, {"symbol": None, "n": 8, "more": []})


def record(fields: Mapping[str, object]) -> dict[str, object]:
    """Return a record schema as JSON has it."""
    named = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "Q", "fields": named}


def test_each_id_is_asked_for_once(server: Registry) -> None:
    """Another worker, and the next batch, read the notes."""
    notes = MemoryNotes()
    server.put(1, schema_answer(record(FIRST)))
    server.put(2, schema_answer(record(SECOND)))
    worker = DecodingWorker(server, notes)
    assert ([7, 8, 7], []) == worker.task([A, B, A])
    assert ([7, 8], []) == worker.task([A], [B])
    assert ([8], []) == DecodingWorker(server, notes).task([B])
    assert 2 == len(server.requests)


def test_an_unknown_id_is_a_dead_letter_in_each_replay(server: Registry) -> None:
    """A replay finds what the first attempt found, also where the registry has the schema by then."""
    notes = MemoryNotes()
    server.put(1, schema_answer(record(FIRST)))
    unknown = ["The registry has no schema with the id 2."]
    assert ([7], unknown) == DecodingWorker(server, notes).task([A, B])
    server.put(2, schema_answer(record(SECOND)))
    worker = DecodingWorker(server, notes)
    assert ([7, 8], unknown) == worker.task([A, B, B]), "the third record was not in the first attempt"
    assert ([7], unknown) == worker.task([A], [B])
    assert ([8, 8], []) == worker.task([B, B], first=103)


def test_ids_of_one_task_add_up(server: Registry) -> None:
    """The notes of a task's batches hold for the replay of the task; those of an earlier task go."""
    notes = MemoryNotes()
    nine, ten = (bytes([0, 0, 0, 0, each]) + A[5:] for each in (9, 10))
    found, details = DecodingWorker(server, notes).task([nine], [ten])
    assert ([], 2) == (found, len(details))
    assert UnknownIds(101, frozenset((9, 10))) == notes.unknown[3]
    server.put(9, schema_answer(record(FIRST)))
    assert [] == DecodingWorker(server, notes).task([nine, ten])[0]
    assert [7] == DecodingWorker(server, notes).task([nine, ten], first=102)[0]
    assert UnknownIds(103, frozenset((10,))) == notes.unknown[3]


def test_the_registry_is_asked_again_after_a_time(server: Registry) -> None:
    """An id that was unknown becomes known."""
    worker = DecodingWorker(server, MemoryNotes())
    assert [] == worker.task([B])[0]
    server.put(2, schema_answer(record(SECOND)))
    worker.now = 59.0
    assert [] == worker.task([B], first=101)[0]
    worker.now = 60.0
    assert [8] == worker.task([B], first=102)[0]


def test_records_wait_while_the_registry_is_away(server: Registry) -> None:
    """Nothing is decided; what the registry did give is kept."""
    notes = MemoryNotes()
    server.put(1, schema_answer(record(FIRST)))
    server.put(2, (503, b""))
    worker = DecodingWorker(server, notes)
    with pytest.raises(SchemaAway, match="status 503"):
        worker.task([A, B])
    assert ([1], {}) == (list(notes.kept), notes.unknown)
    server.put(2, schema_answer(record(SECOND)))
    assert ([7, 8], []) == worker.task([A, B])


def test_many_unknown_ids_ask_a_bounded_number_of_times(server: Registry) -> None:
    """A producer of nonsense costs the registry a hundred questions a batch."""
    worker = DecodingWorker(server, MemoryNotes())
    values = [each.to_bytes(5, "big") + A[5:] for each in range(1_000, 6_000)]
    found, details = worker.task(values)
    assert ([], 5_000, 100) == (found, len(details), len(server.requests))


def test_a_schema_that_does_not_fit_names_the_column(server: Registry) -> None:
    """The records of the schema are dead letters, the others are events."""
    server.put(1, schema_answer(record(FIRST | {"n": "string"})))
    server.put(2, schema_answer(record(SECOND)))
    found, details = DecodingWorker(server, MemoryNotes()).task([A, B])
    assert [8] == found
    assert details[0].startswith('The schema with id 1 does not fit the stream: column "n" is not a BIGINT')


def test_a_registry_that_is_allowed_no_more(server: Registry) -> None:
    """The evaluator asks only registries in its setting."""
    worker = DecodingWorker(server, MemoryNotes())
    worker.stream = msgspec.structs.replace(worker.stream, registry="http://elsewhere:1")
    with pytest.raises(SchemaAway, match="is not in the setting CQ_STREAMS_REGISTRIES any more"):
        worker.task([A])


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:hush@r:1",
        "ftp://r",
        "r:8081",
        "",
        "http://",
        "http://r?x=1",
        "http://r#x",
        "http://r:x",
        "http://r /",
    ]
    + ["http://r\n", "http://ré", "http://[::1"],
)
def test_urls_that_no_stream_can_have(url: str) -> None:
    """The refusal quotes no part of the URL."""
    text = f"CREATE STREAM q (a INT) WITH (topic = 't', format = 'avro', framing = 'confluent', registry = '{url}')"
    with pytest.raises(InputError, match="the registry's URL cannot be used") as refused:
        parse(text)
    assert "hush" not in refused.value.line


def test_the_setting_has_the_logins() -> None:
    """A stream names a registry without its login, in any spelling."""
    given = "https://ann:hush@Registry.example:8081/ , http://r/api"
    settings = Settings(streams=StreamSettings(registries=given))  # type: ignore[arg-type]
    assert {"https://registry.example:8081": "ann:hush", "http://r/api": ""} == allowed_registries(settings)
    assert "hush" not in repr(settings)
    check_registry(settings, registry_url("https://REGISTRY.example:8081") or "")
    with pytest.raises(InputError, match='registry "http://r" may not be read') as refused:
        check_registry(settings, "http://r")
    assert "not-allowed" == refused.value.code


def test_records_that_are_read_again_are_the_same_events(server: Registry) -> None:
    """A record with an unknown id stays a dead letter, and the notes of tasks do not change."""
    notes = MemoryNotes()
    server.put(1, schema_answer(record(FIRST)))
    assert ([7, 7], 1) == ((found := DecodingWorker(server, notes).task([A, B, A]))[0], len(found[1]))
    server.put(2, schema_answer(record(SECOND)))
    before = dict(notes.unknown)
    assert [7, 7] == DecodingWorker(server, notes).folded(A, B, A)
    assert before == notes.unknown
    assert [7] == DecodingWorker(server, MemoryNotes()).folded(A), "the registry is asked if Redis was lost"
