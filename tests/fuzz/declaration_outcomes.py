"""Surfaces of declarations: a statement is refused with a reason, or its stream decodes whatever comes in."""

from __future__ import annotations

import random
from dataclasses import replace

from gateway.sources.inferred_columns import infer_columns
from gateway.sources.schema_columns import columns_of_statement
from gateway.sources.stream_statement import stream_statement
from gateway.testing import Stream as CheckedStream
from grouping.model.catalog import Stream
from grouping.model.errors import CODES, InputError
from grouping.model.query import CreateStream
from grouping.statements.command import parse
from grouping.statements.stream_declaration import declared_fields
from tests.fuzz.declarations import broken_declaration, inferred_declaration
from tests.fuzz.record_kinds import record_kinds
from tests.fuzz.record_outcomes import mixed_records, outcomes, records_batch

__all__ = ["declaration_refusal", "inference_refusal", "sample_refusal"]

_OF_JSON = ("json", "json nested", "json places", "json lenient millis", "json top array", "explode scalars")


def declaration_refusal(rng: random.Random) -> tuple[str, InputError] | None:
    """Carry out a broken CREATE STREAM. Return its text and refusal; None if the stream decoded records."""
    name, text = broken_declaration(rng)
    try:
        stream = CheckedStream(text).declared
    except InputError as error:
        return text, _checked(error)
    _decode(rng, name, stream)
    return None


def inference_refusal(rng: random.Random) -> tuple[str, InputError] | None:
    """Carry out a CREATE STREAM … FROM TOPIC, which has columns of a broken schema; the result is as above."""
    name, text = inferred_declaration(rng)
    try:
        statement = parse(text)
        found = columns_of_statement(statement) if isinstance(statement, CreateStream) else None
    except InputError as error:
        return text, _checked(error)
    if found is not None and isinstance(statement, CreateStream):
        _decode(rng, name, _carried_out(replace(statement, columns=found.columns, places=found.places)))
    return None


def sample_refusal(rng: random.Random) -> tuple[str, InputError] | None:
    """Infer columns from broken JSON records; the result is as above."""
    name = rng.choice(_OF_JSON)
    values = [record.value for record in mixed_records(rng, record_kinds()[name], 4)]
    explode = rng.choice((None, None, "$", "$.rows[*]"))
    try:
        found = infer_columns(values, "t", explode)
    except InputError as error:
        return b"".join(value or b"" for value in values).decode("latin-1"), _checked(error)
    statement = parse("CREATE STREAM s (a INT) WITH (topic = 'source', format = 'json')")
    assert isinstance(statement, CreateStream)
    _decode(
        rng, name, _carried_out(replace(statement, columns=found.columns, places=found.places, explode=explode or None))
    )
    return None


def _carried_out(statement: CreateStream) -> Stream:
    """Return the stream of a statement with inferred columns, which a user can also declare by the shown statement."""
    made = Stream("s_1", statement.name, start_offsets={"0": 0}, created_at="", **declared_fields(statement))  # type: ignore[arg-type]
    declared = CheckedStream(stream_statement(made)).declared
    assert declared.columns == made.columns
    return declared


def _decode(rng: random.Random, name: str, stream: Stream) -> None:
    kind = record_kinds()[name]
    outcomes(stream, records_batch([*kind.records, *mixed_records(rng, kind, 3)]))


def _checked(error: InputError) -> InputError:
    assert error.code in CODES
    assert len(error.message) < 1_000 and len(error.detail or "") < 3_000, error
    return error
