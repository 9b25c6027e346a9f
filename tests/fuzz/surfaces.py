"""Each place where input comes in, in process: only refusals of this place are raised, and they show no secrets."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterable
from functools import cache
from unittest import mock

import fastavro
import msgspec
import numpy as np
import pyarrow as pa

from gateway.sdk.errors import BadCursor
from gateway.sdk.records.cursor import decode_cursor, encode_cursor, place_of
from gateway.sdk.results import ContinuousQuery, Destination
from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import CODES, InputError, OperationalError
from grouping.model.query import CreateCq
from grouping.plan.group import CompiledQuery
from grouping.settings.given_settings import given_settings
from grouping.settings.settings import Settings
from grouping.statements.command import parse
from grouping.statements.cq_text import CqText
from schemas.avro_columns import AvroMismatch, check_avro_columns
from schemas.avro_writers import check_writers, id_header
from schemas.codec import Command, MalformedCommand, decode_command, encode_command
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.evaluate import match
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.rows.events import Events
from spark_jobs.runtime.kafka.range_reader import HEADERS
from tests.fuzz.corpus import COLUMNS, RECORDS, SCHEMA, statements
from tests.fuzz.declaration_outcomes import declaration_refusal, inference_refusal, sample_refusal
from tests.fuzz.inlined_texts import filled, inlined_catalog, inlined_template
from tests.fuzz.mutations import broken_bytes, broken_text
from tests.fuzz.odd_forms import odd_expression
from tests.fuzz.record_kinds import KafkaRecord, record_kinds
from tests.fuzz.record_outcomes import check_batch
from tests.fuzz.registry_answers import registry_refusal
from tests.unit.matching.matching import entry, snapshot

__all__ = ["SURFACES", "assert_detail", "assert_safe", "hostile_statement", "outcome"]

_SECRET = "hush-hush"
_UNSAFE = re.compile(
    r"Traceback|File \"[^\"]*\", line|\.py\b|site-packages| object at 0x|"
    rf"/(?:home|usr|work|root|tmp|var|opt)\b|{_SECRET}"
)
"""Contents forbidden in messages: a stack trace, a path of this machine, a secret."""


def assert_safe(messages: Iterable[str | None], given: str = "") -> None:
    """Check that messages tell nothing of the machine; a piece of the input may be quoted."""
    for message in messages:
        found = _UNSAFE.search(message or "")
        assert found is None or found[0] in given, message


def hostile_statement(rng: random.Random) -> str:
    """Return a statement that is broken, or nearly whole."""
    text = rng.choice(statements())
    if text.startswith("SELECT") and rng.random() < 0.8:
        text = f"CREATE CQ c{rng.randrange(5)} AS {text}"
    return broken_text(rng, text).encode("utf-8", "ignore").decode()  # half a surrogate pair cannot be sent


def _commands(rng: random.Random) -> None:
    command = Command(
        rng.choice(("1", "é" * 300, "x" * 1025, "\x00")), rng.choice(("alice", "a\x00b", "")), hostile_statement(rng),
        rng.choice(("json", "avro")), properties={"a": "b"},
    )  # fmt: skip
    value = broken_bytes(rng, encode_command(command))
    try:
        decode_command(value)
    except MalformedCommand as error:
        assert_safe([error.detail], command.text)


@cache
def _catalog() -> Catalog:
    columns = tuple(StreamColumn(name, kind) for name, kind in COLUMNS)
    return Catalog([Stream("s_1", "quotes", columns, "quotes", "json", {"0": 0}, "2026-11-22T00:00:00Z")])


def _statements(rng: random.Random) -> None:
    text = hostile_statement(rng)
    try:
        if isinstance(parse(text), CreateCq):
            Preparer(_catalog()).create(CqText.cut(text))
    except InputError as error:
        assert error.code in CODES
        assert_safe([error.message, error.detail, error.hint], text)


def outcome(preparer: Preparer, text: str) -> object:
    """Return all that a text is compiled to, or all that its refusal says."""
    try:
        return repr(preparer.create(CqText.cut(text)))
    except InputError as error:
        return error.code, error.message, error.detail, error.hint


def _fast_path(rng: random.Random) -> None:
    """Texts of one template are compiled by the fast path as by the whole path."""
    preparer, template = Preparer(inlined_catalog()), inlined_template(rng)
    first = filled(template, rng)
    for text in (first, filled(template, rng, first), filled(template, rng, first)):
        assert outcome(preparer, text) == outcome(Preparer(inlined_catalog()), text), text


def _records(stream: Stream, values: list[bytes]) -> Events:
    count = len(values)
    batch = pa.record_batch(
        {
            "key": pa.array([None] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", "UTC")),
            "headers": pa.array([None] * count, HEADERS),
        }
    )
    events, letters = decode(batch, stream, _settings())
    assert events.count + (0 if letters is None else letters.num_rows) == count
    for column in stream.columns:
        assert len(events.column(column.name)) == events.count
    return events


@cache
def _settings() -> Settings:
    return Settings()


def _evaluations(rng: random.Random) -> None:
    """An expression that was accepted has a value for whatever comes in."""
    text = rng.choice(statements()) if rng.random() < 0.5 else hostile_statement(rng)
    try:
        if not isinstance(parse(text), CreateCq):
            return
        _, query = Preparer(_catalog()).create(CqText.cut(text))
    except InputError:
        return
    _evaluate(query, rng)


def _odd_forms(rng: random.Random) -> None:
    """An expression that is nearly right is refused, or has a value for whatever comes in."""
    expression = odd_expression(rng)
    for text in (f"SELECT {expression} AS x FROM quotes", f"SELECT symbol FROM quotes WHERE ({expression}) IS NULL"):
        try:
            query = compile_select(text, _catalog())
        except InputError as error:
            assert error.code in CODES
            assert_safe([error.message, error.detail, error.hint], text)
        else:
            _evaluate(query, rng)


def _evaluate(query: CompiledQuery, rng: random.Random) -> None:
    """Evaluate the SELECT list and the predicate over a broken record and a whole one."""
    if query.select.aggregation is None and query.plan.computation is None:
        events = _records(_catalog().stream("quotes"), [broken_bytes(rng, rng.choice(RECORDS)), rng.choice(RECORDS)])
        for item in query.select.items:
            assert len(evaluate_expression(item.expression, events, np.arange(events.count))) == events.count
        match(snapshot(query.plan.conjuncts, [entry(0, query.row.type_texts, query.row.values)]), events)


def _json_records(rng: random.Random) -> None:
    stream = _catalog().stream("quotes")
    _records(stream, [broken_bytes(rng, rng.choice(RECORDS)) for _ in range(4)])


@cache
def _avro_stream() -> tuple[Stream, bytes]:
    columns = (
        StreamColumn("symbol", "STRING"),
        StreamColumn("price", "DOUBLE"),
        StreamColumn("amount", "DECIMAL(18,4)"),
    )
    stream = Stream("s_2", "a", columns, "a", "avro", {"0": 0}, "2026-11-22T00:00:00Z", SCHEMA, "raw")
    out = pa.BufferOutputStream()
    value = {"symbol": "INTC", "price": 1.5, "tags": ["a", "b"], "more": {"x": 1, "y": None}, "amount": b"\x05"}
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(SCHEMA)), value)
    return stream, out.getvalue().to_pybytes()


def _avro_records(rng: random.Random) -> None:
    stream, value = _avro_stream()
    _records(stream, [broken_bytes(rng, value) for _ in range(4)])
    several = msgspec.structs.replace(stream, framing="confluent", schemas=f'{{"7": {SCHEMA}}}')
    _records(several, [broken_bytes(rng, id_header(7) + value) for _ in range(4)])


def _records_of_all_kinds(rng: random.Random) -> None:
    """Records of one of many streams and tables, each beside itself alone."""
    records, found = check_batch(rng, rng.choice([*record_kinds()]), 4)
    for place, detail in found.letters.items():
        assert_detail(detail, records[place])


def assert_detail(detail: str, record: KafkaRecord) -> None:
    """Check the detail of a dead letter: a sentence of bounded length, which discloses nothing of the machine."""
    assert detail[0] in '"ACEFIT' and detail[-1] in ".)…" or len(detail) == 1_000, detail
    given = b"\n".join((record.value or b"", record.key or b"", *(text or b"" for _, text in record.headers)))
    assert_safe([detail], given.decode("latin-1"))


def _refused(carry_out: Callable[[random.Random], tuple[str, InputError] | None]) -> Callable[[random.Random], None]:
    """Return the surface of a statement that is refused, or carried out."""

    def surface(rng: random.Random) -> None:
        if (refusal := carry_out(rng)) is not None:
            text, error = refusal
            assert_safe([error.message, error.detail, error.hint], text)

    return surface


def _registry_answers(rng: random.Random) -> None:
    if (refusal := registry_refusal(rng)) is not None:
        assert_safe([refusal])


def _avro_schemas(rng: random.Random) -> None:
    text = broken_text(rng, SCHEMA)
    columns = (("symbol", "STRING"), ("price", "DOUBLE"))
    for check, given in ((check_avro_columns, text), (check_writers, f'{{"7": {text}}}')):
        try:
            check(given, columns)
        except AvroMismatch as error:
            assert_safe([error.message, error.detail], given)


def _cursors(rng: random.Random) -> None:
    query = ContinuousQuery("intel", "g_1", "", Destination("d_1", "shared", "cq.results", "d_1", 3, 7))
    text = encode_cursor([place_of(query)])
    if rng.random() < 0.5:
        text = broken_text(rng, text)
    else:
        text = broken_bytes(rng, text.encode()).decode("latin-1")
    try:
        decode_cursor(text)
    except BadCursor as error:
        assert_safe([str(error)], text)


_VARIABLES = {
    "CQ_KAFKA_EXTRA": json.dumps({"sasl.password": _SECRET}),
    "CQ_REDIS_URL": f"redis://:{_SECRET}@cache:6379/0?password={_SECRET}",
    "CQ_LIMITS_CQS_PER_SUBSCRIBER": "7",
    "CQ_TIMERS_WAIT_SECONDS": "1.5",
    "CQ_PREFIX": "dev.",
}


def _environment(rng: random.Random) -> None:
    name, value = rng.choice([*_VARIABLES.items()])
    broken = broken_text(rng, value).replace("\x00", "").encode("utf-8", "ignore").decode()
    with mock.patch.dict(os.environ, {name: broken}):
        try:
            shown = repr(given_settings())
        except OperationalError as error:
            shown = str(error)
    assert_safe([shown])


SURFACES: dict[str, Callable[[random.Random], None]] = {
    "commands": _commands,
    "statements": _statements,
    "fast path": _fast_path,
    "evaluations": _evaluations,
    "odd forms": _odd_forms,
    "json records": _json_records,
    "avro records": _avro_records,
    "records of all kinds": _records_of_all_kinds,
    "declarations": _refused(declaration_refusal),
    "columns of schemas": _refused(inference_refusal),
    "columns of records": _refused(sample_refusal),
    "registry answers": _registry_answers,
    "avro schemas": _avro_schemas,
    "cursors": _cursors,
    "settings": _environment,
}
"""By name; each takes one case."""
